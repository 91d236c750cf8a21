import msgspec

from kinference.shapes.usage_fields import Answer, Counts, Details, GeminiCounts


def test_geminis_names_come_to_those_of_the_others() -> None:
    counts = GeminiCounts(9, 2, 3, 1, 4).counts
    assert counts == Counts(prompt_tokens=13, completion_tokens=5, prompt_tokens_details=Details(1))


def test_what_gemini_does_not_tell_is_not_made_up() -> None:
    counts = GeminiCounts().counts
    assert (counts.prompt_tokens, counts.completion_tokens) == (None, None)


def test_members_that_nobody_asks_for_are_passed_over() -> None:
    answer = msgspec.json.decode(b'{"id": 1, "model": "m", "modelVersion": "v", "usage": {"cost": 2}}', type=Answer)
    assert (answer.model, answer.model_version, answer.usage) == ("m", "v", Counts())
