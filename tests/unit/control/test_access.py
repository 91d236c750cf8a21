from collections.abc import Sequence

import pytest

from kinference.control.access import Access, Role, Token
from kinference.control.errors import Denied, Unauthenticated

ALICE, BOX = Token("alice", Role.USER, "user-token"), Token("box", Role.SANDBOX, "box-token")
BOTH = Access([ALICE, BOX])
Metadata = Sequence[tuple[str, str | bytes]]


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_a_token_names_its_holder(scheme: str) -> None:
    assert BOTH.check((("x", "y"), ("authorization", f"{scheme} user-token")), Role.USER) == "alice"
    assert BOTH.check((("authorization", f"{scheme} box-token "),), Role.SANDBOX) == "box"


def test_f37_a_token_of_the_other_role_is_denied() -> None:
    with pytest.raises(Denied, match="a user may not make this call, only a sandbox"):
        BOTH.check((("authorization", "Bearer user-token"),), Role.SANDBOX)


@pytest.mark.parametrize(
    "metadata",
    [
        (),
        (("authorization", "Bearer "),),
        (("authorization", "Bearer wrong"),),
        (("authorization", "user-token"),),
        (("authorization", "Basic user-token"),),
        (("authorization", b"Bearer user-token"),),
        (("authorization", "Bearer wrong"), ("authorization", "Bearer user-token")),
    ],
)
def test_f37_whoever_shows_no_known_token_is_not_let_in(metadata: Metadata) -> None:
    with pytest.raises(Unauthenticated, match="Bearer TOKEN"):
        BOTH.check(metadata, Role.USER)


def test_without_tokens_nobody_is_asked() -> None:
    assert Access([]).check((), Role.SANDBOX) == ""


def test_no_token_is_printed() -> None:
    assert "user-token" not in repr(ALICE)
