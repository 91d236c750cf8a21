import json

import pytest

from kinference.shapes.gemini.emit import emit_request
from kinference.shapes.ir import (
    Audio,
    Effort,
    File,
    Image,
    Json,
    Media,
    Reasoning,
    Request,
    Role,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolMode,
    ToolResult,
    Turn,
)
from kinference.shapes.json_text import dumps
from kinference.shapes.lost import Untranslatable
from kinference.shapes.seals import NO_SIGNATURE
from tests.unit.shapes.conversions import CHAT, GEMINI, HI, MESSAGES, TOOL, sent, warnings

USER = Turn(Role.USER, (Text("hi"),))
IMAGE = Image(Media("image/png", "AAAA"))


def emitted(request: Request) -> Json:
    body: Json = json.loads(dumps(emit_request(request)))
    return body


def test_a_chat_becomes_contents() -> None:
    calls = [{"id": str(n), "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}} for n in range(2)]
    turns = [
        {"role": "system", "content": "s"},
        *HI,
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "0", "content": "r"},
        {"role": "tool", "tool_call_id": "1", "content": ""},
    ]
    config = {"temperature": 1.5, "seed": 1, "max_tokens": 9, "stop": "a", "presence_penalty": 1}
    assert sent({"model": "m", "messages": turns, "tools": [TOOL], **config}, CHAT, GEMINI) == {
        "systemInstruction": {"parts": [{"text": "s"}]},
        "tools": [
            {"functionDeclarations": [{"name": "f", "description": "d", "parametersJsonSchema": {"type": "object"}}]}
        ],
        "generationConfig": {
            "temperature": 1.5,
            "seed": 1,
            "presencePenalty": 1,
            "maxOutputTokens": 9,
            "stopSequences": ["a"],
        },
        "contents": [
            {"role": "user", "parts": [{"text": "hi"}]},
            {
                "role": "model",
                "parts": [
                    {"functionCall": {"name": "f", "args": {"a": 1}}, "thoughtSignature": NO_SIGNATURE},  # e11
                    {"functionCall": {"name": "f", "args": {"a": 1}}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"name": "f", "response": {"output": "r"}}},
                    {"functionResponse": {"name": "f", "response": {"output": ""}}},
                ],
            },
        ],
    }


def test_what_gemini_lacks_is_told() -> None:
    body = {"model": "m", "messages": HI, "tools": [TOOL], "parallel_tool_calls": False, "verbosity": "low"}
    assert set(warnings(body, CHAT, GEMINI).split(";")) == {"dropped=parallel_tool_calls", "dropped=verbosity"}


@pytest.mark.parametrize(
    ("choice", "config"),
    [
        (ToolChoice(ToolMode.NONE), {"mode": "NONE"}),
        (ToolChoice(ToolMode.REQUIRED, ("f",)), {"mode": "ANY", "allowedFunctionNames": ["f"]}),
        (ToolChoice(ToolMode.AUTO, ("f",)), {"mode": "VALIDATED", "allowedFunctionNames": ["f"]}),
    ],
)
def test_tool_choices(choice: ToolChoice, config: Json) -> None:
    body = emitted(Request(turns=(USER,), tools=(Tool("f"),), tool_choice=choice))
    assert body["toolConfig"] == {"functionCallingConfig": config}
    assert body["tools"] == [{"functionDeclarations": [{"name": "f"}]}]


@pytest.mark.parametrize(
    ("model", "thinking", "config"),
    [
        ("gemini-3-pro", Thinking(Effort.XHIGH, is_shown=True), {"thinkingLevel": "HIGH", "includeThoughts": True}),
        ("gemini-3-flash", Thinking(Effort.NONE), {"thinkingLevel": "MINIMAL"}),
        ("gemini-2.5-flash", Thinking(Effort.NONE), {"thinkingBudget": 0}),
        ("gemini-2.5-pro", Thinking(Effort.MEDIUM), {"thinkingBudget": 2048}),
        ("gemini-2.5-pro", Thinking(Effort.HIGH, 3000), {"thinkingBudget": 3000}),
    ],
)
def test_thinking_by_generation(model: str, thinking: Thinking, config: Json) -> None:
    body = emitted(Request(model=model, turns=(USER,), thinking=thinking))
    assert body["generationConfig"] == {"thinkingConfig": config}


@pytest.mark.parametrize(
    "form", [{"type": "json_object"}, {"type": "json_schema", "json_schema": {"schema": {"type": "object"}}}]
)
def test_formats(form: Json) -> None:
    config = sent({"model": "m", "messages": HI, "response_format": form}, CHAT, GEMINI)["generationConfig"]
    assert config["responseMimeType"] == "application/json"
    assert config.get("responseJsonSchema") == (None if form["type"] == "json_object" else {"type": "object"})


def test_media_also_in_results() -> None:
    blocks = (IMAGE, Audio(Media("audio/wav", "AAAA")), File(Media("application/pdf", "AAAA")), File(Media(), "n", "x"))
    linked = Image(Media("image/png", url="https://x"))
    call = Turn(Role.ASSISTANT, (ToolCall("c", "f", "{}"),))
    result = Turn(Role.USER, (ToolResult("c", (IMAGE,), is_error=True),))
    first, _, last = emitted(Request(turns=(Turn(Role.USER, (*blocks, linked)), call, result)))["contents"]
    inline = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
    assert first["parts"][0] == inline
    assert first["parts"][3:] == [{"text": "n\nx"}, {"fileData": {"fileUri": "https://x", "mimeType": "image/png"}}]
    assert last["parts"] == [{"functionResponse": {"name": "f", "response": {"error": ""}}}, inline]


@pytest.mark.parametrize("block", [ToolCall("c", "f", "5"), Reasoning("r")])
def test_what_cannot_be_written_is_refused(block: ToolCall | Reasoning) -> None:
    with pytest.raises(Untranslatable):
        emit_request(Request(turns=(USER, Turn(Role.ASSISTANT, (block,)))))


def test_e11_the_first_call_of_each_step_has_the_placeholder_of_a_lost_signature() -> None:
    def called(*names: str) -> list[Json]:
        calls = [{"id": name, "type": "function", "function": {"name": name, "arguments": "{}"}} for name in names]
        results: list[Json] = [{"role": "tool", "tool_call_id": name, "content": "1"} for name in names]
        return [{"role": "assistant", "tool_calls": calls}, *results]

    body = sent({"model": "m", "messages": [*HI, *called("a", "b"), *called("c")]}, CHAT, GEMINI)
    parts = [part for content in body["contents"] for part in content["parts"] if "functionCall" in part]
    assert [part.get("thoughtSignature") for part in parts] == [NO_SIGNATURE, None, NO_SIGNATURE]


def test_results_stand_together_and_what_they_show_comes_after() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
    said = {"type": "text", "text": "and?"}
    calls: list[Json] = [{"type": "tool_use", "id": name, "name": name, "input": {}} for name in ("f", "g")]
    results = [{"type": "tool_result", "tool_use_id": name, "content": [image]} for name in ("f", "g")]
    turns = [*HI, {"role": "assistant", "content": calls}, {"role": "user", "content": [*results, said]}]
    parts = sent({"model": "m", "max_tokens": 9, "messages": turns}, MESSAGES, GEMINI)["contents"][-1]["parts"]
    assert [next(iter(part)) for part in parts] == [
        *["functionResponse"] * 2,
        *["inlineData"] * 2,
        "text",
    ]


def test_an_image_by_its_address_has_the_type_that_this_says() -> None:
    parts = [{"type": "image_url", "image_url": {"url": "https://x/a.png"}}]
    body = sent({"model": "m", "messages": [{"role": "user", "content": parts}]}, CHAT, GEMINI)
    assert body["contents"][0]["parts"] == [{"fileData": {"fileUri": "https://x/a.png", "mimeType": "image/png"}}]


@pytest.mark.parametrize(
    ("detail", "level"),
    [("low", "LOW"), ("high", "HIGH"), ("original", "ULTRA_HIGH"), ("auto", "")],
)
def test_newer_models_are_told_how_closely_to_look(detail: str, level: str) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo=", "detail": detail}}
    body = {"model": "m", "messages": [{"role": "user", "content": [image]}]}
    part = sent(body, CHAT, GEMINI, "gemini-3-pro")["contents"][0]["parts"][0]
    assert part.get("mediaResolution") == ({"level": f"MEDIA_RESOLUTION_{level}"} if level else None)
    assert "mediaResolution" not in sent(body, CHAT, GEMINI, "gemini-2.5-pro")["contents"][0]["parts"][0]


@pytest.mark.parametrize(
    ("tier", "got", "told"),
    [
        ("flex", "flex", ""),
        ("priority", "priority", ""),
        ("default", "standard", ""),
        ("auto", None, ""),
        ("scale", "priority", "clamped=service_tier:scale->priority"),
    ],
)
def test_e16_google_has_tiers_of_its_own(tier: str, got: str | None, told: str) -> None:
    body = {"model": "m", "messages": HI, "service_tier": tier}
    assert sent(body, CHAT, GEMINI).get("serviceTier") == got
    assert warnings(body, CHAT, GEMINI) == told
