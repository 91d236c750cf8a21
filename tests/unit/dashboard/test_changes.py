"""Who may change something, with what body, and how a refusal is told."""

import json
from typing import Any

import msgspec
import pytest

from kinference.control import errors
from kinference.dashboard.changes import BODY_BYTES_MAX, STATUS, Request, answer, asked, body
from kinference.errors import InvalidArgument, KinferenceError
from kinference.ports import Headers
from tests.unit.dashboard.asked import JSON, AskedExchange


class Wish(msgspec.Struct):
    word: str


async def echo(request: Request) -> object:
    return {"word": (await body(request.exchange, Wish)).word, "actor": request.actor}


async def ask(content: bytes = b'{"word":"yes"}', headers: Headers = JSON, asker: str = "alice") -> tuple[int, Any]:
    exchange = AskedExchange("POST", "/here", content, headers)
    await answer(exchange, asker, echo)
    return exchange.status, json.loads(exchange.sent)


def test_every_refusal_has_its_status() -> None:
    own = {each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, KinferenceError)}
    assert own - {KinferenceError} - STATUS.keys() == {errors.Referred}


async def test_the_log_learns_who_asks() -> None:
    assert await ask(headers=(*JSON, (b"user-agent", b"curl/8"))) == (
        200,
        {"word": "yes", "actor": "admin alice 127.0.0.1:5 curl/8"},
    )


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"{", "not understood"),
        (b"[" * 100_000, "not understood"),
        (b"\xff", "not understood"),
        (b" " * (BODY_BYTES_MAX + 1), "over 1048576 bytes"),
    ],
)
async def test_a_hostile_body_is_refused(content: bytes, problem: str) -> None:
    status, told = await ask(content)
    assert (status, told["error"]["code"]) == (400, "INVALID_ARGUMENT")
    assert problem in told["error"]["message"]


@pytest.mark.parametrize("headers", [(), ((b"content-type", b"text/plain"),)])
async def test_a_body_that_a_page_may_send_without_asking_is_refused(headers: Headers) -> None:
    assert (await ask(headers=headers))[0] == 400


async def test_a_query_of_many_fields_is_refused() -> None:
    assert asked("a=1&a=2&b=") == {"a": ["1", "2"]}
    with pytest.raises(InvalidArgument, match="more than 16"):
        asked("&".join(["a=1"] * 17))


async def test_a_failure_of_our_own_is_not_dressed_up_as_a_refusal() -> None:
    async def fail(_request: Request) -> object:
        raise errors.Referred("no such row")

    with pytest.raises(errors.Referred):
        await answer(AskedExchange("POST", "/here", b"", JSON), "", fail)
