import pytest
from google.genai.types import GenerateContentResponse

from kinference.shapes.answers import Answer, Counts, Finish, Frame
from kinference.shapes.citations import Citation, Place
from kinference.shapes.gemini.answer import counts_of, emit_answer, finish_of, parse_answer
from kinference.shapes.ir import Json, Reasoning, Refusal, Sealed, Text, ToolCall, Unread
from kinference.shapes.openai_chat.answer import call_id
from kinference.vocabulary import Api
from tests.unit.shapes.conversions import CHAT, GEMINI, MESSAGES, Stream, answered, data


def of(*parts: Json, reason: str = "STOP", **members: object) -> Json:
    candidate = {"content": {"role": "model", "parts": list(parts)}, "finishReason": reason}
    return {"candidates": [candidate], "responseId": "x", "modelVersion": "m", **members}


def test_what_an_answer_says() -> None:
    call = {"functionCall": {"name": "f", "args": {"a": 1}}}
    answer = parse_answer(of({"text": "r", "thought": True}, {"text": "t"}, call, {"executableCode": {}}))
    assert answer.blocks == (Reasoning("r"), Text("t"), ToolCall(call_id("x", 0), "f", '{"a":1}'))
    assert (answer.id, answer.model, answer.finish) == ("x", "m", Finish.TOOLS)


def test_b12_a_signed_call_becomes_a_plain_one() -> None:
    part = {"functionCall": {"name": "f", "args": {"q": "x"}}, "thoughtSignature": "s" * 999}
    kept, block = answered(of(part), MESSAGES, GEMINI)["content"]
    assert kept["type"] == "redacted_thinking"
    assert block["input"] == {"q": "x"}
    assert block["id"].replace("_", "").isalnum()


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("STOP", Finish.STOP),
        ("MAX_TOKENS", Finish.LENGTH),
        ("SAFETY", Finish.REFUSAL),
        ("IMAGE_PROHIBITED_CONTENT", Finish.REFUSAL),
        ("CONTINUATION", Finish.PAUSE),
        ("NEW", Finish.STOP),
        (1, Finish.STOP),
    ],
)
def test_c3_only_a_plain_stop_is_the_end_of_calling(reason: object, finish: Finish) -> None:
    assert finish_of(reason, calls=False) is finish
    assert finish_of(reason, calls=True) is (Finish.TOOLS if finish is Finish.STOP else finish)


def test_thoughts_that_took_all_of_the_cap_leave_an_empty_text() -> None:
    body = {"candidates": [{"finishReason": "MAX_TOKENS"}], "usageMetadata": {"thoughtsTokenCount": 9}}
    (choice,) = answered(body, CHAT, GEMINI)["choices"]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("", "length")


def test_a_blocked_prompt_is_a_refusal() -> None:
    body = {"promptFeedback": {"blockReason": "SAFETY"}}
    assert answered(body, CHAT, GEMINI)["choices"][0]["finish_reason"] == "content_filter"


@pytest.mark.parametrize("part", [{"text": "b"}, {"text": "b", "thought": True}, {"text": ""}])
def test_a_signature_beside_a_call_is_told_once(part: Json) -> None:
    signed = {**part, "thoughtSignature": "s"}
    answer = parse_answer(of({"text": "a"}, signed, signed))
    assert answer.blocks.count(Unread("thoughtSignature")) == 1
    assert answer.blocks[-1] == Unread("thoughtSignature")
    assert parse_answer(of({"text": "", "thoughtSignature": "s"})).blocks == ()


def test_counts() -> None:
    usage = {
        "promptTokenCount": 9,
        "toolUsePromptTokenCount": 1,
        "candidatesTokenCount": 4,
        "thoughtsTokenCount": 3,
        "cachedContentTokenCount": 2,
    }
    assert counts_of(usage) == Counts(10, 7, 2, None, 3)
    assert counts_of({"promptTokenCount": 9}) == Counts(9)
    assert counts_of(None) == Counts()


@pytest.mark.parametrize(
    "body", [{}, {"candidates": 7}, {"candidates": [7]}, {"candidates": [{"content": {"parts": [7]}}]}]
)
def test_an_answer_without_sense_is_empty(body: Json) -> None:
    assert parse_answer(body) == Answer()


def test_the_sdk_takes_every_answer() -> None:
    issuer = Api.ANTHROPIC_MESSAGES
    call, broken = ToolCall("c", "f", '{\n"a":1}'), ToolCall("d", "g", "5")
    blocks = (Reasoning("r"), Text("t"), Refusal("n"), Sealed("d", issuer), call, broken)
    body = emit_answer(Answer("", "m", blocks, Finish.LENGTH, counts=Counts(9, 5, 2, None, 3)), Frame("req_1"))
    response = GenerateContentResponse.model_validate(body)
    assert response.response_id == "req_1"
    assert response.usage_metadata is not None
    assert response.usage_metadata.candidates_token_count == 2
    assert response.function_calls is not None
    assert [call.args for call in response.function_calls] == [{"a": 1}]  # what was cut in the middle nobody could call
    whole = emit_answer(Answer("", "m", (call, broken), Finish.TOOLS), Frame("req_1"))
    assert [part["functionCall"]["args"] for part in whole["candidates"][0]["content"]["parts"]][1] == {"_raw": "5"}
    assert body["candidates"][0]["finishReason"] == "MAX_TOKENS"


def test_an_answer_that_declines_and_simply_stops_has_declined() -> None:
    choice = {"message": {"content": None, "refusal": "no"}, "finish_reason": "stop"}
    (candidate,) = answered({"id": "x", "choices": [choice]}, GEMINI, CHAT)["candidates"]
    assert candidate["finishReason"] == "SAFETY"
    assert candidate["content"]["parts"] == [{"text": "no"}]


def test_why_a_prompt_was_blocked_is_told() -> None:
    body = {"promptFeedback": {"blockReason": "SAFETY", "blockReasonMessage": "not that"}}
    assert parse_answer(body).blocks == (Refusal("not that"),)
    choices = [event["choices"][0] for event in Stream(CHAT, GEMINI).feed(data(body)).end().events[:3]]
    assert [choice["delta"].get("refusal") for choice in choices] == [None, "not that", None]
    assert choices[-1]["finish_reason"] == "content_filter"


@pytest.mark.parametrize("reason", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"])
def test_a_call_that_came_to_nothing_is_told(reason: str) -> None:
    answer = parse_answer({"candidates": [{"content": {"parts": [{"text": "t"}]}, "finishReason": reason}]})
    assert (answer.blocks, answer.finish) == ((Text("t"), Unread(reason)), Finish.STOP)


def test_what_rests_on_the_requests_own_documents_is_grounded_in_no_page() -> None:
    within = Citation("", "T", 0, 1, "x", Place("char_location", 0, 0, 1))
    page = Citation("https://a.example", "A", 0, 1)
    for citations, is_grounded in (((within,), False), ((within, page), True), ((), False)):
        answer = Answer(blocks=(Text("a"),), citations=citations)
        assert ("groundingMetadata" in emit_answer(answer, Frame())["candidates"][0]) is is_grounded
