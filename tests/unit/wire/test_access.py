import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from kinference.vocabulary import Role
from kinference.wire.access import Access, Caller, Certificate, Denied, Fields, Token, Unauthenticated
from tests.unit.wire.signing import sandbox_tokens, signed

ALICE, BOX = Token("alice", Role.USER, "user-token"), Token("box", Role.SANDBOX, "box-token")
BOTH = Access([ALICE, BOX])


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_a_token_names_its_holder(scheme: str) -> None:
    assert BOTH.check((("x", "y"), ("authorization", f"{scheme} user-token")), Role.USER).name == "alice"
    assert BOTH.check((("authorization", f"{scheme} box-token "),), Role.SANDBOX).name == "box"


def test_header_fields_are_read_like_metadata() -> None:
    assert BOTH.check(((b"x", b"y"), (b"authorization", b"Bearer user-token")), Role.USER).name == "alice"


def test_any_of_several_roles_will_do() -> None:
    assert BOTH.check((("authorization", "Bearer box-token"),), Role.USER, Role.SANDBOX).name == "box"


def test_fact37_a_token_of_another_role_is_denied_and_told_which_it_takes() -> None:
    with pytest.raises(Denied, match="a credential of the role user does not open this, only one of sandbox or picker"):
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
def test_fact37_whoever_shows_no_known_token_is_not_let_in(fields: Fields) -> None:
    with pytest.raises(Unauthenticated, match="Bearer TOKEN"):
        BOTH.check(fields, Role.USER)


def test_several_tokens_of_one_role_count_while_one_is_replaced_by_another() -> None:
    rotating = Access([ALICE, Token("alice", Role.USER, "next-token")])
    for secret in ("user-token", "next-token"):
        assert rotating.check((("authorization", f"Bearer {secret}"),), Role.USER).name == "alice"


def test_a_token_that_was_replaced_opens_nothing_any_more() -> None:
    access = Access([ALICE])
    access.replace([Token("alice", Role.USER, "next-token")])
    assert access.check((("authorization", "Bearer next-token"),), Role.USER).name == "alice"
    with pytest.raises(Unauthenticated):
        access.check((("authorization", "Bearer user-token"),), Role.USER)


def test_without_tokens_nobody_is_asked() -> None:
    assert not Access().asks
    assert Access().check((), Role.SANDBOX).name == ""
    assert BOTH.asks


def test_a_certificate_speaks_for_who_shows_no_token() -> None:
    access = Access([ALICE], [Certificate("spiffe://cluster/agents/*", Role.SANDBOX, "team-a")])
    names = ("spiffe://cluster/agents/7f3a", "agent.local")
    assert access.check((), Role.SANDBOX, names=names) == Caller("7f3a", Role.SANDBOX, "team-a")
    with pytest.raises(Denied):
        access.check((), Role.USER, names=names)
    with pytest.raises(Unauthenticated):
        access.check((), Role.SANDBOX, names=("spiffe://elsewhere/agents/7f3a",))
    assert access.check((("authorization", "Bearer user-token"),), Role.USER, names=names).name == "alice"
    assert Access(certificates=[Certificate("*", Role.USER)]).asks


def test_a_signed_token_names_a_sandbox_and_nothing_else() -> None:
    key = Ed25519PrivateKey.generate()
    access = Access(sandbox_tokens=sandbox_tokens(key))
    token = signed(key, sub="spiffe://openshell/sandbox/7f3a", workspace="team-a")
    fields = (("authorization", f"Bearer {token}"),)
    assert access.check(fields, Role.SANDBOX) == Caller("7f3a", Role.SANDBOX, "team-a")
    with pytest.raises(Denied):
        access.check(fields, Role.USER)
    with pytest.raises(Unauthenticated):
        access.check((("authorization", "Bearer user-token"),), Role.SANDBOX)


def test_no_token_is_printed() -> None:
    assert "user-token" not in repr(ALICE)
