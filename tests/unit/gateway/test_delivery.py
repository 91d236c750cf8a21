import pytest

from kinference.errors import KinferenceError
from kinference.gateway.access_log import End, Record
from kinference.gateway.attempts import Delivery
from kinference.gateway.delivery import Deliverer
from kinference.gateway.options import GatewayOptions
from kinference.gateway.reply import Reply
from kinference.gateway.routes import Dialect, find
from kinference.gateway.ticket import Ticket
from kinference.ids import ResponseId
from kinference.ports import FinalTokenReport, FirstTokenReport
from kinference.vocabulary import AbortReason
from tests.unit.gateway.fakes import CUT, EVENTS, JSON, FakeAnswer, FakeExchange, World

ID = ResponseId(7)
CHUNK = b'data: {"choices":[{"delta":{"content":"hi"}}]}\n\n'
USAGE = (
    b'data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2,"prompt_tokens_details":'
    b'{"cached_tokens":4}}}\n\n'
)
DONE = b"data: [DONE]\n\n"


class Run:
    """One answer on its way through fakes."""

    def __init__(
        self,
        answer: FakeAnswer,
        exchange: FakeExchange | None = None,
        *,
        path: str = "/v1/chat/completions",
        hide_usage: bool = False,
    ) -> None:
        self.world, self.answer = World(), answer
        self.exchange = exchange or FakeExchange(path)
        self.record = Record("req_1", path, 100.0)
        self.record.model = "m"
        route = find(path)
        assert route is not None
        self.deliverer = Deliverer(self.world.outside, GatewayOptions(), self.record, route)
        self.delivery = Delivery(answer, Ticket(self.world.picker, ID), 99.75, 400)
        self.delivery.hide_usage = hide_usage

    async def deliver(self) -> FakeExchange:
        reply = Reply(self.exchange, Dialect.OPENAI, self.record, self.world.clock)
        await self.deliverer.deliver(self.delivery, reply)
        return self.exchange


async def test_a_stream_is_relayed_unbuffered_and_reported() -> None:
    run = Run(FakeAnswer(200, (*EVENTS, (b"content-length", b"9")), (CHUNK, CHUNK, USAGE, DONE)))
    exchange = await run.deliver()
    assert exchange.answer == CHUNK + CHUNK + USAGE + DONE
    assert exchange.field(b"content-type") == b"text/event-stream"
    assert exchange.field(b"x-accel-buffering") == b"no"
    assert exchange.field(b"cache-control") == b"no-cache"
    assert exchange.field(b"content-length") is None
    picker = run.world.picker
    assert picker.first == [FirstTokenReport(ID, 250, 200)]
    assert picker.final == [FinalTokenReport(ID, "m", 7, 2, 4, (1, *[0] * 14), 1)]
    assert (run.record.ttft_ms, run.record.end, run.record.usage_estimated) == (250.0, End.OK, False)


async def test_g13_a_usage_chunk_of_our_own_wish_is_kept_from_the_client() -> None:
    run = Run(FakeAnswer(200, EVENTS, (CHUNK, USAGE, DONE)), hide_usage=True)
    assert (await run.deliver()).answer == CHUNK + DONE
    assert run.world.picker.final[0].prompt_tokens == 7


async def test_g6_what_was_not_counted_is_estimated() -> None:
    run = Run(FakeAnswer(200, EVENTS, (CHUNK, CHUNK, DONE)))
    await run.deliver()
    (final,) = run.world.picker.final
    assert (final.prompt_tokens, final.completion_tokens, final.cached_tokens) == (100, 2, None)
    assert run.record.usage_estimated


async def test_an_answer_in_one_piece_keeps_its_length_and_bytes() -> None:
    body = b'{ "usage": {"prompt_tokens": 5, "completion_tokens": 1}, "model": "served" }'
    run = Run(FakeAnswer(200, (*JSON, (b"content-length", str(len(body)).encode())), (body,)))
    exchange = await run.deliver()
    assert exchange.answer == body
    assert exchange.field(b"content-length") == str(len(body)).encode()
    assert exchange.field(b"x-accel-buffering") is None
    assert run.world.picker.final == [FinalTokenReport(ID, "served", 5, 1)]


async def test_i6_an_encoded_answer_is_relayed_with_its_encoding() -> None:
    headers = (*EVENTS, (b"content-encoding", b"gzip"))
    exchange = await Run(FakeAnswer(200, headers, (b"\x1f\x8b...",))).deliver()
    assert (exchange.field(b"content-encoding"), exchange.answer) == (b"gzip", b"\x1f\x8b...")


async def test_g7_a_client_that_leaves_is_charged_for_what_it_got() -> None:
    exchange = FakeExchange("/v1/chat/completions", leaves_after_writes=2)
    run = Run(FakeAnswer(200, EVENTS, (CHUNK, CHUNK, CHUNK, DONE)), exchange)
    await run.deliver()
    assert run.record.end is End.CLIENT_CLOSED
    assert [(report.completion_tokens, report.broken) for report in run.world.picker.final] == [(3, False)]


async def test_a_stream_that_breaks_off_is_accounted_as_far_as_it_came() -> None:
    run = Run(FakeAnswer(200, EVENTS, (CHUNK, CUT)))
    await run.deliver()
    assert run.record.end is End.UPSTREAM_CUT
    assert [(report.completion_tokens, report.broken) for report in run.world.picker.final] == [(1, True)]


async def test_an_answer_that_breaks_off_before_its_first_byte_is_reported_as_a_failure() -> None:
    run = Run(FakeAnswer(200, EVENTS, (CUT,)))
    await run.deliver()
    assert [report.upstream_status for report in run.world.picker.first] == [502]
    assert (run.world.picker.final, run.world.picker.aborted) == ([], [(ID, AbortReason.UNSPECIFIED)])
    assert run.record.ttft_ms is None


@pytest.mark.parametrize("path", ["/v1/messages/count_tokens"])
async def test_counting_tokens_teaches_the_picker_nothing(path: str) -> None:
    run = Run(FakeAnswer(200, JSON, (b'{"input_tokens":9}',)), path=path)
    assert (await run.deliver()).answer == b'{"input_tokens":9}'
    picker = run.world.picker
    assert (picker.first, picker.final, picker.aborted) == ([], [], [(ID, AbortReason.NOT_DISPATCHED)])


@pytest.mark.parametrize(
    ("path", "told", "written"),
    [
        ("/v1/messages/count_tokens", b'{"count":7,"tokens":[1]}', b'{"input_tokens":7}'),
        ("/v1/responses/input_tokens", b'{"inputTokens":7}', b'{"object":"response.input_tokens","input_tokens":7}'),
        ("/v1beta/models/m:countTokens", b'{"input_tokens":7}', b'{"totalTokens":7}'),
    ],
)
async def test_a_count_of_another_api_is_told_in_the_clients(path: str, told: bytes, written: bytes) -> None:
    run = Run(FakeAnswer(200, JSON, (told,)), path=path)
    run.delivery.is_foreign_count = True
    exchange = await run.deliver()
    assert (exchange.status, exchange.answer) == (200, written)
    assert run.world.picker.aborted == [(ID, AbortReason.NOT_DISPATCHED)]
    assert run.answer.is_closed


@pytest.mark.parametrize("chunks", [(b"{}",), (b"not json",), (CUT,)])
async def test_a_count_that_is_none_is_a_failure(chunks: tuple[bytes | KinferenceError, ...]) -> None:
    run = Run(FakeAnswer(200, JSON, chunks), path="/v1/messages/count_tokens")
    run.delivery.is_foreign_count = True
    assert (await run.deliver()).status == 502


async def test_a_client_of_gemini_that_asks_for_no_events_gets_an_array() -> None:
    path, event = "/v1beta/models/m:streamGenerateContent", b'data: {"candidates":[{"finishReason":"STOP"}]}\r\n\r\n'
    for query, answer, kind in (
        ("", b'[{"candidates":[{"finishReason":"STOP"}]}]', b"application/json; charset=UTF-8"),
        ("alt=sse", event, b"text/event-stream"),
    ):
        run = Run(FakeAnswer(200, EVENTS, (event,)), FakeExchange(path, query=query), path=path)
        exchange = await run.deliver()
        assert (exchange.answer, exchange.field(b"content-type"), run.record.end) == (answer, kind, End.OK)
