import pytest

from kinference.vocabulary import Role
from kinference.wire.access import Access, Denied, Fields, Token, Unauthenticated

ALICE, BOX = Token("alice", Role.USER, "user-token"), Token("box", Role.SANDBOX, "box-token")
BOTH = Access([ALICE, BOX])


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_a_token_names_its_holder(scheme: str) -> None:
    assert BOTH.check((("x", "y"), ("authorization", f"{scheme} user-token")), Role.USER) == "alice"
    assert BOTH.check((("authorization", f"{scheme} box-token "),), Role.SANDBOX) == "box"


def test_header_fields_are_read_like_metadata() -> None:
    assert BOTH.check(((b"x", b"y"), (b"authorization", b"Bearer user-token")), Role.USER) == "alice"


def test_any_of_several_roles_will_do() -> None:
    assert BOTH.check((("authorization", "Bearer box-token"),), Role.USER, Role.SANDBOX) == "box"


def test_f37_a_token_of_another_role_is_denied_and_told_which_it_takes() -> None:
    with pytest.raises(Denied, match="a token of the role user does not open this, only one of sandbox or picker"):
        BOTH.check((("authorization", "Bearer user-token"),), Role.SANDBOX, Role.PICKER)


@pytest.mark.parametrize(
    "fields",
    [
        (),
        (("authorization", "Bearer "),),
        (("authorization", "Bearer"),),
        (("authorization", "Bearer wrong"),),
        (("authorization", "Bearer user-token-and-more"),),
        (("authorization", "Bearer user-toke"),),
        (("authorization", "user-token"),),
        (("authorization", "Basic user-token"),),
        (("authorization", "Bearer \udcff"),),
        (("authorization", "Bearer wrong"), ("authorization", "Bearer user-token")),
        ((b"authorization", b"Bearer \xff"),),
    ],
)
def test_f37_whoever_shows_no_known_token_is_not_let_in(fields: Fields) -> None:
    with pytest.raises(Unauthenticated, match="Bearer TOKEN"):
        BOTH.check(fields, Role.USER)


def test_several_tokens_of_one_role_count_while_one_is_replaced_by_another() -> None:
    rotating = Access([ALICE, Token("alice", Role.USER, "next-token")])
    for secret in ("user-token", "next-token"):
        assert rotating.check((("authorization", f"Bearer {secret}"),), Role.USER) == "alice"


def test_a_token_that_was_replaced_opens_nothing_any_more() -> None:
    access = Access([ALICE])
    access.replace([Token("alice", Role.USER, "next-token")])
    assert access.check((("authorization", "Bearer next-token"),), Role.USER) == "alice"
    with pytest.raises(Unauthenticated):
        access.check((("authorization", "Bearer user-token"),), Role.USER)


def test_without_tokens_nobody_is_asked() -> None:
    assert not Access().asks
    assert Access().check((), Role.SANDBOX) == ""
    assert BOTH.asks


def test_no_token_is_printed() -> None:
    assert "user-token" not in repr(ALICE)
