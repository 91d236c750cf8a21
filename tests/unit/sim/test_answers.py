from kinference.sim.answers import Usage, named_sse, openai_usage, sse


def test_usage_adds_up() -> None:
    assert openai_usage(Usage(prompt_tokens=11, cached_tokens=8, completion_tokens=6)) == {
        "prompt_tokens": 11,
        "total_tokens": 17,
        "completion_tokens": 6,
        "prompt_tokens_details": {"cached_tokens": 8, "created_cache_tokens": 0},
    }


def test_events_end_with_an_empty_line() -> None:
    assert sse({"a": 1}) == b'data: {"a":1}\n\n'
    assert named_sse({"type": "ping"}) == b'event: ping\ndata: {"type":"ping"}\n\n'
