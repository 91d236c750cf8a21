import pytest

from kinference.shapes.gemini.request import parse_request
from kinference.shapes.ir import Audio, File, Image, Media, Reasoning, Request, Role, Sealed, Text, ToolCall, ToolResult
from kinference.shapes.lost import Untranslatable
from kinference.shapes.scan import BadBody
from kinference.vocabulary import Api
from tests.unit.shapes.conversions import CHAT, GEMINI, sent

PNG = "iVBORw0KGgoAAAANSUhEUg=="
HI = {"role": "user", "parts": [{"text": "hi"}]}


def parse(*contents: object, **members: object) -> Request:
    return parse_request({"contents": list(contents), **members})


def blocks(*parts: object) -> tuple[object, ...]:
    return parse({"role": "user", "parts": list(parts)}).turns[0].blocks


def test_settings_in_either_case() -> None:
    config = {"temperature": 1, "top_p": 2, "topK": 3, "seed": 4, "max_output_tokens": 5, "stopSequences": ["a"]}
    request = parse(HI, system_instruction={"parts": [{"text": "s"}]}, generation_config=config)
    assert request.system == (Text("s"),)
    sampling = request.sampling
    assert (sampling.temperature, sampling.top_p, sampling.top_k, sampling.seed) == (1, 2, 3, 4)
    assert (request.max_tokens, request.stop, request.extras) == (5, ("a",), ())
    assert parse(HI, systemInstruction="s").system == (Text("s"),)


def test_what_is_lost_is_named_with_its_place() -> None:
    request = parse(HI, safetySettings=[{"x": 1}], generationConfig={"routingConfig": {"a": 1}, "candidateCount": 1})
    assert request.extras == ("safetySettings", "generationConfig.routingConfig")
    for members in ({"cachedContent": "c"}, {"generationConfig": {"responseModalities": ["AUDIO"]}}):
        with pytest.raises(Untranslatable):
            parse(HI, **members)


def test_parts_become_blocks() -> None:
    assert blocks(
        {"text": "t"},
        {"text": ""},
        {"thoughtSignature": "s"},
        {"inlineData": {"mimeType": "image/png", "data": PNG}},
        {"inline_data": {"mime_type": "audio/wav", "data": "-_-_"}},
        {"inlineData": {"mimeType": "application/pdf", "data": "AAAA"}},
        {"inlineData": {"mimeType": "text/plain", "data": "aGk="}},
        {"fileData": {"mimeType": "image/png", "fileUri": "https://x/y"}},
        {"fileData": {"mimeType": "application/pdf", "fileUri": "https://x/z"}},
        {"fileData": {"mimeType": "image/png", "fileUri": "gs://bucket/x"}},
    ) == (
        Text("t"),
        Sealed("s", Api.GEMINI),
        Image(Media("image/png", PNG)),
        Audio(Media("audio/wav", "+/+/")),
        File(Media("application/pdf", "AAAA")),
        File(Media(), text="hi"),
        Image(Media("image/png", url="https://x/y")),
        File(Media("application/pdf", url="https://x/z")),
        Image(Media(file_id="gs://bucket/x")),
    )


@pytest.mark.parametrize(
    "part",
    [
        {"text": "t"},
        {"text": ""},
        {"functionCall": {"name": "f", "args": {"a": 1.50}}},
        {"functionCall": {"id": "c", "name": "f"}},
        {"function_call": {"name": "f"}},
        {"functionResponse": {"name": "f", "response": {"output": "x"}}},
        {"functionResponse": {"name": "f", "response": {"error": {"a": [1]}}, "will_continue": False}},
        {"functionResponse": {"id": "c", "name": "f", "response": {}}},
        {"function_response": {"name": "f", "response": {"output": ""}}},
    ],
)
def test_a_part_that_stands_alone_is_read_as_one_with_more_members(part: dict[str, object]) -> None:
    assert blocks(part) == blocks({"videoMetadata": None, **part})


def test_results_find_their_calls_by_name_and_order() -> None:
    calls = {
        "role": "model",
        "parts": [
            {"text": "r", "thought": True},
            {"functionCall": {"name": "f", "args": {"a": 1}}, "thoughtSignature": "s"},
            {"functionCall": {"name": "f"}},
            {"functionCall": {"id": "own", "name": "g"}},
        ],
    }
    results = {
        "role": "user",
        "parts": [
            {"functionResponse": {"name": "f", "response": {"output": "one"}}},
            {"functionResponse": {"name": "f", "response": {"error": "two"}}},
            {"functionResponse": {"id": "own", "name": "g", "response": {"x": 1}}},
            {"functionResponse": {"name": "h", "response": {}}},
        ],
    }
    made, answered = parse(HI, calls, results).turns[1:]
    assert made.role is Role.ASSISTANT
    thought, _, first, second, third = made.blocks
    assert thought == Reasoning("r")
    assert isinstance(first, ToolCall)
    assert isinstance(second, ToolCall)
    assert first.id != second.id
    assert (first.arguments, third) == ('{"a":1}', ToolCall("own", "g", "{}"))
    assert answered.blocks == (
        ToolResult(first.id, (Text("one"),)),
        ToolResult(second.id, (Text("two"),), is_error=True),
        ToolResult("own", (Text('{"x":1}'),)),
        ToolResult("h", (Text("{}"),)),
    )


def test_results_with_ids_of_the_clients_own_find_the_calls_that_had_none() -> None:
    calls = [
        {"functionCall": {"name": "f"}},
        {"functionCall": {"id": "c", "name": "f"}},
        {"functionCall": {"name": "f"}},
    ]
    results = [
        {"functionResponse": {"id": given, "name": "f", "response": {"output": given}}}
        for given in ("f-1", "c", "f-2", "f-3")
    ]
    said, shown = (
        turn.blocks for turn in parse({"role": "model", "parts": calls}, {"role": "user", "parts": results}).turns
    )
    first, second, third = (block.id for block in said if isinstance(block, ToolCall))
    assert [block.id for block in shown if isinstance(block, ToolResult)] == [first, second, third, "f-3"]
    assert [block.content for block in shown if isinstance(block, ToolResult)][1] == (Text("c"),)


@pytest.mark.parametrize(
    "contents",
    [[], [7], [{"parts": [{"hologram": 1}]}], [{"parts": [{"functionCall": 7}]}], [{"parts": [{"text": 7}]}]],
)
def test_what_cannot_be_read_is_named_by_its_place(contents: list[object]) -> None:
    with pytest.raises(BadBody, match="contents"):
        parse(*contents)


def test_what_only_google_could_run_goes_nowhere_else() -> None:
    with pytest.raises(Untranslatable, match="toolCall"):
        blocks({"toolCall": {"toolType": "GOOGLE_MAPS"}})


def test_one_content_and_bare_strings_are_contents() -> None:
    assert parse_request({"contents": HI}).turns == parse(HI).turns
    assert parse("hi").turns == parse(HI).turns


def test_a_question_for_tokens_may_hold_the_whole_request() -> None:
    whole = {"model": "models/g", "contents": [HI], "system_instruction": {"parts": [{"text": "s"}]}}
    for name in ("generateContentRequest", "generate_content_request"):
        assert parse_request({name: whole}) == parse_request({"contents": [HI], "systemInstruction": "s"})
    with pytest.raises(BadBody, match="generateContentRequest"):
        parse_request({"generateContentRequest": []})


def test_all_that_a_function_had_to_say_is_kept() -> None:
    image = {"inlineData": {"mimeType": "image/png", "data": PNG}}
    for response, text in (
        ({"result": {"a": 1}}, '{"a":1}'),
        ({"output": "o", "status": 2}, '{"output":"o","status":2}'),
        ({"error": "e", "code": 5}, '{"error":"e","code":5}'),
    ):
        (result,) = blocks({"functionResponse": {"name": "f", "response": response, "parts": [image]}})
        assert result == ToolResult("f", (Text(text), Image(Media("image/png", PNG))), "error" in response)
    with pytest.raises(BadBody, match=r"functionResponse\.parts"):
        blocks({"functionResponse": {"name": "f", "parts": [{"text": "x"}]}})


def test_a_file_is_what_its_address_says_where_nothing_else_does() -> None:
    assert blocks({"fileData": {"fileUri": "https://x/a.png"}}) == (Image(Media("image/png", url="https://x/a.png")),)
    assert blocks({"fileData": {"fileUri": "https://x/watch"}}) == (File(Media(url="https://x/watch")),)


@pytest.mark.parametrize(
    "part",
    [
        {"inlineData": {"mimeType": "video/mp4", "data": "AAAA"}},
        {"fileData": {"mimeType": "video/mp4", "fileUri": "https://x/y"}},
    ],
)
def test_a_video_goes_nowhere_else(part: object) -> None:
    with pytest.raises(Untranslatable, match="video"):
        blocks(part)


@pytest.mark.parametrize("name", ["googleMaps", "google_maps", "urlContext", "fileSearch"])
def test_a_tool_that_only_google_runs_is_asked_for_by_an_empty_object(name: str) -> None:
    with pytest.raises(Untranslatable, match="tools"):
        parse(HI, tools=[{name: {}}])


@pytest.mark.parametrize(
    ("level", "detail"), [("MEDIA_RESOLUTION_LOW", "low"), ("media_resolution_high", "high"), ("", None)]
)
def test_how_closely_to_look_at_an_image(level: str, detail: str | None) -> None:
    part = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}, "mediaResolution": {"level": level}}
    made = sent({"contents": [{"parts": [part]}]}, GEMINI, CHAT)["messages"][0]["content"][0]
    assert made["image_url"].get("detail") == detail


def test_a_tier_that_nobody_named_is_none() -> None:
    body = {"contents": [{"parts": [{"text": "hi"}]}], "serviceTier": "SERVICE_TIER_FLEX"}
    assert sent(body, GEMINI, CHAT)["service_tier"] == "flex"
    assert "service_tier" not in sent(body | {"serviceTier": "unspecified"}, GEMINI, CHAT)
