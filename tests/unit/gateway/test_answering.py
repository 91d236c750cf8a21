import pytest

from kinference.gateway.access_log import End, Record
from kinference.gateway.answering import Answering, as_array, translated_head
from kinference.gateway.array import ArrayPassage
from kinference.gateway.attempts import Delivery
from kinference.gateway.passage import EventPassage, PlainPassage
from kinference.gateway.routes import find
from kinference.gateway.ticket import Ticket
from kinference.gateway.translation import TranslatedPassage
from kinference.ids import ResponseId
from kinference.ports import FinalTokenReport, FirstTokenReport, Headers
from kinference.shapes.translate import Way, WayBack, translated
from kinference.vocabulary import AbortReason, Api, Loss
from kinference.wire.fields import table
from tests.unit.gateway.fakes import EVENTS, JSON, FakeAnswer, FakeExchange, World

ID = ResponseId(7)
CHAT, COUNT = "/v1/chat/completions", "/v1/messages/count_tokens"
GEMINI = "/v1beta/models/m:streamGenerateContent"
BODY = b'{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true}'
NOT_BUFFERED = ((b"cache-control", b"no-cache"), (b"x-accel-buffering", b"no"))


class Run:
    """One answer between fakes, sent for a quarter of a second ago."""

    def __init__(self, headers: Headers = JSON, path: str = CHAT, way_back: WayBack | None = None) -> None:
        self.world, self.record = World(), Record("req_1", path, 100.0)
        self.answer, self.exchange = FakeAnswer(200, headers), FakeExchange(path)
        route = find(path)
        assert route is not None
        delivery = Delivery(self.answer, Ticket(self.world.picker, ID), 99.75, 400)
        delivery.way_back = way_back
        self.answering = Answering(self.world.outside, self.record, route, delivery)
        self.flow, self.head = self.answering.flow(table(headers), self.exchange)
        self.passage = self.flow.passage

    def take(self, chunk: bytes) -> None:
        self.exchange.status = 200
        self.flow.take(chunk)


def in_anthropics() -> WayBack:
    return translated(BODY, Way(Api.OPENAI_CHAT, Api.ANTHROPIC_MESSAGES, "m", Loss.SILENT))[1]


@pytest.mark.parametrize(
    ("headers", "kind", "head"),
    [
        (JSON, PlainPassage, list(JSON)),
        ((*JSON, (b"content-length", b"2"), (b"server", b"x")), PlainPassage, (*JSON, (b"content-length", b"2"))),
        ((*EVENTS, (b"content-length", b"2")), EventPassage, (*EVENTS, *NOT_BUFFERED)),
        ((*EVENTS, (b"content-encoding", b"br")), PlainPassage, (*EVENTS, (b"content-encoding", b"br"), *NOT_BUFFERED)),
    ],
)
def test_an_answer_passes_by_what_its_head_says_it_is(headers: Headers, kind: type, head: Headers) -> None:
    run = Run(headers)
    assert (type(run.passage), run.head) == (kind, head)


def test_a_translated_stream_has_a_head_of_its_own() -> None:
    run = Run((*EVENTS, (b"openai-processing-ms", b"1")), way_back=in_anthropics())
    assert isinstance(run.passage, TranslatedPassage)
    assert run.head == ((b"content-type", b"text/event-stream; charset=utf-8"), *NOT_BUFFERED)


def test_what_a_translation_lost_is_in_its_head() -> None:
    back = in_anthropics()
    lossy = WayBack(back.back, "lost=top_k")
    assert (b"x-kinference-warnings", b"lost=top_k") in translated_head(lossy)


def test_a_client_of_gemini_that_asks_for_no_events_gets_an_array() -> None:
    run = Run(EVENTS, GEMINI)
    assert isinstance(run.passage, ArrayPassage)
    assert run.head == as_array((*EVENTS, *NOT_BUFFERED))
    assert (b"content-type", b"application/json; charset=UTF-8") in run.head


def test_the_first_byte_is_reported_and_an_end_accounted_for() -> None:
    run = Run()
    run.take(b'{"usage":{"prompt_tokens":5,"completion_tokens":1},"model":"served"}')
    run.answering.relayed(run.flow, End.OK)
    assert run.world.picker.first == [FirstTokenReport(ID, 250, 200)]
    assert run.world.picker.final == [FinalTokenReport(ID, "served", 5, 1)]
    record = run.record
    assert (record.end, record.ttft_ms, record.prompt_tokens, record.usage_estimated) == (End.OK, 250.0, 5, False)


def test_what_was_not_counted_is_estimated_and_a_broken_answer_said_to_be() -> None:
    run = Run()
    run.take(b"12345678")
    run.answering.relayed(run.flow, End.UPSTREAM_CUT)
    assert run.world.picker.final == [FinalTokenReport(ID, "", 100, 2, broken=True)]
    assert run.record.usage_estimated


@pytest.mark.parametrize(("end", "told"), [(End.UPSTREAM_CUT, [502]), (End.CLIENT_CLOSED, [])])
def test_nothing_at_all_is_a_failure_of_a_destination_that_broke_off(end: End, told: list[int]) -> None:
    run = Run()
    run.answering.relayed(run.flow, end)
    assert [report.upstream_status for report in run.world.picker.first] == told
    assert run.world.picker.aborted == [(ID, AbortReason.UNSPECIFIED)] * len(told)
    assert (run.world.picker.final, run.record.ttft_ms) == ([], None)


def test_a_count_teaches_the_picker_nothing() -> None:
    run = Run(path=COUNT)
    run.take(b"{}")
    run.answering.relayed(run.flow, End.OK)
    picker = run.world.picker
    assert (picker.first, picker.final, picker.aborted) == ([], [], [(ID, AbortReason.NOT_DISPATCHED)])
