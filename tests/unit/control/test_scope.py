import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinference.control.scope import EVERYONE, SANDBOX_NAME, Scope, read_key, scope_of_sandbox
from kinference.errors import InvalidArgument

NAMES = st.text("abcz019._-", min_size=1, max_size=12)
SANDBOXES = st.just("") | st.from_regex(SANDBOX_NAME, fullmatch=True)


@given(NAMES, SANDBOXES, NAMES)
def test_a_key_tells_whose_route_it_is(workspace: str, sandbox: str, name: str) -> None:
    scope = Scope(workspace, sandbox)
    assert read_key(scope.key(name)) == (scope, name)


def test_a_route_of_everyone_goes_by_its_name_alone() -> None:
    assert EVERYONE.key("inference.local") == "inference.local"
    assert read_key("inference.local") == (EVERYONE, "inference.local")


def test_a_workspaces_route_covers_its_sandboxes_and_a_sandboxs_only_itself() -> None:
    team, box, other = Scope("team"), Scope("team", "box"), Scope("team", "other")
    assert [team.covers(each) for each in (team, box, other, EVERYONE)] == [True, True, True, False]
    assert [box.covers(each) for each in (team, box, other, Scope(sandbox="box"))] == [False, True, False, False]


@pytest.mark.parametrize("name", ["a/b", " ", "-a", "x" * 129, "é"])
def test_a_name_that_no_sandbox_can_have_is_refused_where_a_route_is_set(name: str) -> None:
    with pytest.raises(InvalidArgument, match="no name of a sandbox"):
        Scope(sandbox=name)
    assert scope_of_sandbox("", name) == EVERYONE
