import pytest

from kinference.sim.text import (
    TOKEN_BYTES,
    as_prompts,
    block_hashes,
    from_token_ids,
    pad,
    render_chat,
    root_hash,
    token_count,
    token_ids,
    words,
)

SYSTEM = {"role": "system", "content": "You are brief."}
QUESTION = {"role": "user", "content": "Why is the sky blue, of all colours?"}


def test_four_bytes_are_a_token() -> None:
    assert token_count(pad("abcdefgh")) == 2
    assert token_count(pad("abcdefghi")) == 3
    assert pad("") == b""


def test_a_turn_with_its_answer_is_a_prefix_of_the_next_turn() -> None:
    first = render_chat([SYSTEM, QUESTION])
    answer = "".join(words(first, 10))
    second = render_chat([SYSTEM, QUESTION, {"role": "assistant", "content": answer}, {"role": "user", "content": "?"}])
    assert second.startswith(first + answer.encode())


def test_every_word_is_one_token_and_depends_on_the_prompt() -> None:
    said = list(words(b"one", 50))
    assert {len(word.encode()) for word in said} == {TOKEN_BYTES}
    assert said == list(words(b"one", 50))
    assert said != list(words(b"two", 50))


def test_content_in_parts_reads_as_its_text() -> None:
    parts = [{"type": "text", "text": "Why is the sky blue, "}, {"type": "text", "text": "of all colours?"}]
    assert render_chat([{"role": "user", "content": parts}]) == render_chat([QUESTION])


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:x"}}]},
        {"role": "user", "content": ["plain"]},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
        {"role": "user", "content": {"odd": 1}},
        {"role": "user", "content": [{"type": "text", "text": 5}]},
        {},
    ],
)
def test_any_message_has_tokens(message: dict[str, object]) -> None:
    assert len(render_chat([message])) % TOKEN_BYTES == 0


def test_what_tools_say_comes_first() -> None:
    plain = render_chat([QUESTION])
    with_tools = render_chat([QUESTION], [{"type": "function"}])
    assert with_tools.endswith(plain)
    assert len(with_tools) > len(plain)


def test_token_ids_come_back_as_the_same_tokens() -> None:
    tokens = pad("some text that is tokenised")
    assert from_token_ids(token_ids(tokens)) == tokens


def test_equal_prefixes_have_equal_block_names_and_partial_blocks_have_none() -> None:
    one, two = pad("a" * 64 + "b" * 64 + "cc"), pad("a" * 64 + "x" * 64)
    first, second = block_hashes(one, 16, 1), block_hashes(two, 16, 1)
    assert len(first) == len(second) == 2
    assert first[0] == second[0]
    assert first[1] != second[1]


def test_a_block_is_named_for_all_that_comes_before_it() -> None:
    assert block_hashes(pad("a" * 64 + "c" * 64), 16, 1)[1] != block_hashes(pad("b" * 64 + "c" * 64), 16, 1)[1]


def test_a_salt_or_another_seed_names_the_same_tokens_otherwise() -> None:
    assert len({root_hash(0, ""), root_hash(0, "tenant"), root_hash(1, "")}) == 3


@pytest.mark.parametrize(
    ("prompt", "count"),
    [
        ("text", 1),
        ([1, 2, 3], 1),
        (["a", "b"], 2),
        ([[1], [2, 3]], 2),
        ("", 0),
        ([], 0),
        (["a", ""], 0),
        (5, 0),
        ([["a"]], 0),
        (None, 0),
    ],
)
def test_prompts_come_in_four_kinds(prompt: object, count: int) -> None:
    assert len(as_prompts(prompt)) == count
