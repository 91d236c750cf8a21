import pytest

from kinference.shapes.anthropic_messages.request import parse_request
from kinference.shapes.ir import (
    CacheMark,
    Effort,
    File,
    Image,
    Media,
    Reasoning,
    Request,
    Role,
    Sealed,
    Searched,
    Text,
    ToolCall,
    ToolResult,
)
from kinference.shapes.lost import Untranslatable
from kinference.shapes.scan import BadBody
from kinference.vocabulary import Api
from tests.unit.shapes.conversions import HI

ISSUER = Api.ANTHROPIC_MESSAGES
MARK = {"cache_control": {"type": "ephemeral", "ttl": "5m"}}


def parse(*messages: object, **members: object) -> Request:
    return parse_request({"model": "m", "max_tokens": 9, "messages": list(messages), **members})


def blocks(*content: object, role: str = "user") -> tuple[object, ...]:
    return parse({"role": role, "content": list(content)}).turns[0].blocks


def test_the_system_prompt_in_both_forms() -> None:
    assert parse({"role": "user", "content": "x"}, system="s").system == (Text("s"),)
    parts = [
        {"type": "text", "text": "x-anthropic-billing-header: hash=1"},
        {"type": "text", "text": "s", **MARK},
        {"type": "text", "text": ""},
    ]
    assert parse({"role": "user", "content": "x"}, system=parts).system == (Text("s", CacheMark("5m")),)


def test_blocks_of_every_kind() -> None:
    png = {"type": "base64", "media_type": "image/jpeg", "data": "iVBORw0KGgoAAAANSUhEUg=="}
    assert blocks(
        {"type": "text", "text": "t"},
        {"type": "image", "source": png},
        {"type": "image", "source": {"type": "url", "url": "https://x/y"}},
        {"type": "image", "source": {"type": "file", "file_id": "f1"}},
        {"type": "document", "title": "n", "context": "c", "source": {"type": "text", "data": "d"}},
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "AAAA"}},
        {"type": "document", "source": {"type": "content", "content": "d"}, "citations": {"enabled": True}},
        {"type": "search_result", "title": "n", "source": "u", "content": [{"type": "text", "text": "d"}]},
        {"type": "tool_result", "tool_use_id": "t", "content": "r", "is_error": True},
    ) == (
        Text("t"),
        Image(Media("image/png", png["data"])),
        Image(Media(url="https://x/y")),
        Image(Media(file_id="f1")),
        File(Media(), "n", "c\nd"),
        File(Media("application/pdf", "AAAA")),
        File(Media(), text="d", cites=True),
        Text("n\nu\nd"),
        ToolResult("t", (Text("r"),), is_error=True),
    )


def test_what_an_assistant_thought_and_called() -> None:
    assert blocks(
        {"type": "thinking", "thinking": "r", "signature": "s"},
        {"type": "thinking", "thinking": "r", "signature": ""},
        {"type": "redacted_thinking", "data": "d"},
        {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}},
        role="assistant",
    ) == (Reasoning("r", "s", ISSUER), Reasoning("r"), Sealed("d", ISSUER), ToolCall("t", "f", '{"a":1}'))


def test_a_system_turn_within_the_conversation() -> None:
    turns = parse({"role": "user", "content": "x"}, {"role": "system", "content": "s"}).turns
    assert [turn.role for turn in turns] == [Role.USER, Role.SYSTEM]


def test_what_only_its_provider_knows_goes_nowhere_else() -> None:
    with pytest.raises(Untranslatable, match=r"messages\[0\].content\[0\].type"):
        blocks({"type": "server_tool_use", "id": "x"})
    with pytest.raises(Untranslatable, match="container"):
        parse({"role": "user", "content": "x"}, container="c")


@pytest.mark.parametrize(
    "message",
    [
        {"role": "tool", "content": "x"},
        {"role": "user", "content": {"type": "text"}},
        {"role": "user", "content": [{"type": "image", "source": {"type": "sketch"}}]},
        {"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "file:///etc/passwd"}}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": "text"}]},
    ],
)
def test_what_cannot_be_read_is_named_by_its_place(message: object) -> None:
    with pytest.raises(BadBody, match=r"messages\[0\]"):
        parse(message)


@pytest.mark.parametrize(
    ("members", "place"),
    [
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, r"tools\[0\].function"),
        ({"messages": [{"role": "tool", "content": "x"}]}, r"messages\[0\].role"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, r"messages\[0\].content\[0\].type"),
    ],
)
def test_a_body_of_chat_completions_is_told_where_it_belongs(members: dict[str, object], place: str) -> None:
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}], **members}
    with pytest.raises(BadBody, match=f"^{place}: .*/v1/chat/completions$"):
        parse_request(body)


def test_a_search_result_that_is_to_be_cited_is_a_document() -> None:
    said = [{"type": "text", "text": "d"}]
    block = {"type": "search_result", "title": "n", "source": "u", "content": said, "citations": {"enabled": True}}
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": [block]}]}
    assert parse_request(body).turns[0].blocks == (File(Media(), "n", "u\nd", cites=True),)


def test_a_budget_for_the_task_is_told() -> None:
    output = {"effort": "low", "task_budget": {"type": "tokens", "total": 9}}
    body = {"model": "m", "max_tokens": 9, "messages": HI, "output_config": output}
    assert parse_request(body).extras == ("output_config.task_budget",)


def test_thinking_between_tools_is_thinking_and_told() -> None:
    for kind, told in (("between_tools", ("thinking.type",)), ("adaptive", ()), ("disabled", ())):
        request = parse_request({"model": "m", "max_tokens": 9, "messages": HI, "thinking": {"type": kind}})
        assert request.thinking is not None
        assert (request.extras, request.thinking.effort is Effort.NONE) == (told, kind == "disabled")


def test_tools_that_are_found_within_the_conversation() -> None:
    """As Claude Code finds them: all are offered at once, and what was found is told in words."""
    tools = [
        {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"},
        {"name": "f", "input_schema": {"type": "object"}, "defer_loading": True},
    ]
    search = {"type": "server_tool_use", "id": "s", "name": "tool_search_tool_regex", "input": {"query": "f"}}
    found = {"type": "tool_search_tool_result", "tool_use_id": "s", "content": {}}
    call = {"type": "tool_use", "id": "c", "name": "ToolSearch", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "tool_reference", "tool_name": "f"}]}
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [search, found, call]},
        {"role": "user", "content": [result]},
    ]
    request = parse_request({"model": "m", "max_tokens": 9, "messages": messages, "tools": tools})
    assert [tool.name for tool in request.tools] == ["f"]
    assert request.turns[1].blocks == (Searched(), Searched(), ToolCall("c", "ToolSearch", "{}"))
    assert request.turns[2].blocks == (ToolResult("c", (Text("f"),)),)


def test_what_is_said_about_a_document_that_is_no_text_stands_beside_it() -> None:
    pdf = {"type": "base64", "media_type": "application/pdf", "data": "AAAA"}
    about = {"type": "document", "context": "of 1999", "source": pdf}
    assert blocks(about) == (File(Media("application/pdf", "AAAA")), Text("of 1999"))


def test_a_document_of_blocks_keeps_its_images() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
    source = {"type": "content", "content": [{"type": "text", "text": "a"}, image]}
    content = [{"type": "document", "source": source, "title": "T"}]
    request = parse_request({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": content}]})
    assert request.turns[0].blocks == (
        File(Media(), "T", "a"),
        Image(Media(mime="image/png", data="iVBORw0KGgo=")),
    )
