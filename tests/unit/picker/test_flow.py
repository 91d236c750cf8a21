import json

from kinference.core.decision import BackendChoice, Decision, EndpointChoice
from kinference.ids import Address, ObjectRef, ResponseId, StreamId
from kinference.picker.flow import Flow, FlowHistory, destination
from kinference.ports import FinalTokenReport, PickArguments
from kinference.vocabulary import Api, Outcome, QosClass

ENDPOINT = EndpointChoice(ObjectRef("default", "gpu"), Address("10.0.0.1:8000"), "m", 1)
BACKEND = BackendChoice(ObjectRef("cloud", "openai"), "m", Api.OPENAI_CHAT, "")


def flow(name: str = "m") -> Flow:
    arguments = PickArguments(StreamId(9), "acme", "req-1", ObjectRef("default", "gpu"), "77", QosClass.BATCH)
    return Flow(1.0, arguments, name, Decision(Outcome.OK, "warmest", ENDPOINT, expected_ttft_ms=12.34), remote=True)


def test_a_destination_is_named_once_for_everyone() -> None:
    assert destination(ENDPOINT) == "default/gpu/10.0.0.1:8000"
    assert destination(BACKEND) == "cloud/openai"
    assert destination(None) == ""


def test_the_log_line_tells_what_was_asked_decided_and_seen() -> None:
    told = flow()
    told.observed_ttft_ms, told.upstream_status, told.ended = 15, 200, "final"
    told.final = FinalTokenReport(ResponseId(3), "m", 100, 20, 0)
    fields = told.fields()
    assert fields["client_request_id"] == "req-1"
    assert (fields["tenant"], fields["qos_class"], fields["pool"]) == ("acme", "batch", "default/gpu")
    assert (fields["outcome"], fields["destination"]) == ("ok", "default/gpu/10.0.0.1:8000")
    assert (fields["expected_ttft_ms"], fields["observed_ttft_ms"], fields["upstream_status"]) == (12.3, 15, 200)
    assert (fields["prompt_tokens"], fields["completion_tokens"], fields["cached_tokens"]) == (100, 20, 0)


def test_the_log_line_is_plain_json_and_names_no_id_that_opens_something() -> None:
    assert "9" not in json.dumps([value for key, value in flow().fields().items() if key.endswith("_id")])


def test_tokens_that_were_not_reported_are_absent_and_not_zero() -> None:
    assert flow().fields()["prompt_tokens"] is None


def test_the_history_is_bounded_and_newest_first_and_tells_who_leaves_it_and_runs_on() -> None:
    history = FlowHistory(3)
    ended = flow("b")
    ended.ended = "final"
    left = [history.add(ended if name == "b" else flow(name)) for name in "abcde"]
    assert [one and one.requested_model for one in left] == [None, None, None, "a", None]
    assert [kept.requested_model for kept in history.newest(2)] == ["e", "d"]
    assert [kept.requested_model for kept in history.newest(99)] == ["e", "d", "c"]


def test_what_has_ended_is_the_same_when_it_was_packed_and_what_runs_goes_on() -> None:
    history, running, ended = FlowHistory(3), flow("a"), flow("b")
    ended.ended, ended.final = "final", FinalTokenReport(ResponseId(3), "m", 100, 20, 0)
    history.add(running)
    history.add(ended)
    before = ended.fields()
    history.pack()
    running.observed_ttft_ms = 15
    unpacked, same = history.newest(2)
    assert unpacked.fields() == before
    assert unpacked.decision.choice == ENDPOINT
    assert same is running
    history.pack()
    assert [one.requested_model for one in history.newest(9)] == ["b", "a"]
    assert [history.add(flow("c")), history.add(flow("d")), history.add(flow("e"))] == [None, running, None]
