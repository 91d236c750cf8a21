from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from kinference.config.destinations import Backend
from kinference.config.schema import Config, Peer, Planes
from kinference.config.values import Name, Url
from kinference.errors import ConfigError
from kinference.picker.apart import PickerApart
from kinference.picker.inprocess import InProcessPicker
from kinference.ports import Upstream
from kinference.runtime.build import Parts, build_parts
from kinference.runtime.links import check_reach, link
from kinference.runtime.planes import ALL, Plane
from kinference.runtime.wires import Wire, http_upstream
from kinference.vocabulary import Api

NOWHERE = Peer(Url("http", "127.0.0.1", 1))
GATEWAY = frozenset({Plane.GATEWAY})
BY_RECORD = Backend(Name("b"), Api.OPENAI_CHAT, {"m": "n"}, provider=Name("p"))
BY_ROUTE = replace(BY_RECORD, provider=None, route=Name("claude"))


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    async with http_upstream(Wire.OWN) as upstream:
        yield upstream


@pytest.fixture
def parts(upstream: Upstream) -> Parts:
    return build_parts(Config(), upstream, Wire.OWN)


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        (Config(), r"planes\.picker: a gateway by itself asks a picker; write http://HOST:PORT"),
        (Config(planes=Planes(NOWHERE), backends=(BY_RECORD,)), r"backends\[0\]\.provider: records stay"),
        (Config(planes=Planes(NOWHERE), backends=(BY_ROUTE,)), r"planes\.control: backends\[0\] follows a route"),
    ],
)
def test_a_gateway_by_itself_has_to_know_whom_to_ask(config: Config, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        check_reach(config, GATEWAY)
    check_reach(config, ALL)
    check_reach(config, frozenset({Plane.PICKER}))


async def test_planes_of_one_process_call_each_other(parts: Parts, tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        links = await link(Config(), parts, ALL, {"XDG_STATE_HOME": str(tmp_path)}, stack)
        assert isinstance(links.picker, InProcessPicker)
        assert links.control is not None
        assert links.trouble() is None


async def test_a_gateway_by_itself_says_that_its_picker_does_not_answer(parts: Parts) -> None:
    config = Config(planes=Planes(NOWHERE, NOWHERE), backends=(BY_ROUTE,))
    async with AsyncExitStack() as stack:
        links = await link(config, parts, GATEWAY, {}, stack)
        assert isinstance(links.picker, PickerApart)
        assert links.control is None
        assert links.backends.get(BY_ROUTE.ref) is None
        assert "planes.picker" in (links.trouble() or "")
