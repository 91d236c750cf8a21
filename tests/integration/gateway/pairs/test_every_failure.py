"""Every official client, where a provider of any API fails, breaks off or has nothing to say."""

from collections.abc import Mapping

import anthropic
import openai
import pytest
from google.genai import errors as google

from kinference.vocabulary import Api
from tests.integration.gateway.pairs.meaning import Asked, Broken, Failed, Said, Tokens
from tests.integration.gateway.pairs.pair import Pair, both_ways, every_client, every_destination
from tests.integration.gateway.pairs.running import FAILING, PLAIN

TOO_LONG: Mapping[Api, str] = {
    Api.OPENAI_CHAT: "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000.",
    Api.OPENAI_RESPONSES: "Your input exceeds the context window of this model.",
    Api.ANTHROPIC_MESSAGES: "prompt is too long: 210000 tokens > 200000 maximum",
    Api.GEMINI: "The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).",
    Api.BEDROCK_CONVERSE: "Input is too long for requested model.",
}


def status_of(error: BaseException) -> int | None:
    status = getattr(error, "status_code", None) or getattr(error, "code", None)
    return status if isinstance(status, int) else None


def failed(pair: Pair, reply: Failed | Broken | Said, purpose: str = PLAIN) -> BaseException:
    """What the client raises."""
    with pytest.raises((openai.APIError, anthropic.APIError, google.APIError)) as caught:
        pair.ask(Asked(), reply, purpose)
    return caught.value


def retry_after(error: BaseException) -> str | None:
    headers: Mapping[str, str] = error.response.headers  # type: ignore[attr-defined]
    return headers.get("retry-after")


@both_ways
@every_destination
@every_client
def test_h5_what_the_provider_finds_wrong_is_told_as_it_says_it(pair: Pair) -> None:
    error = failed(pair, Failed(400, "messages: too many of them"))
    assert status_of(error) == 400
    assert "messages: too many of them" in str(error)


@both_ways
@every_destination
@every_client
def test_h1_a_provider_that_is_asked_too_often_says_when_to_come_back(pair: Pair) -> None:
    error = failed(pair, Failed(429, "slow down", "7"), FAILING)
    assert status_of(error) == 429
    assert retry_after(error) in ("7", "6") or not pair.is_translated  # Gemini says it in the body


@both_ways
@every_destination
@every_client
def test_a_prompt_that_is_too_long_is_told_so_that_agents_shorten_it(pair: Pair) -> None:
    error = failed(pair, Failed(400, TOO_LONG[pair.shape]))
    assert status_of(error) == 400
    if pair.is_translated:
        assert "prompt is too long" in str(error)
        assert getattr(error, "code", None) in ("context_length_exceeded", None, 400)


@pytest.mark.parametrize("streams", [True])
@every_destination
@every_client
def test_a10_a_stream_that_breaks_off_is_no_answer(pair: Pair) -> None:
    failed(pair, Broken(Said("It is warm in Rome.")), FAILING)


@pytest.mark.parametrize("streams", [True])
@every_destination
@every_client
def test_a13_an_error_in_a_stream_is_told_in_the_clients_words(pair: Pair) -> None:
    error = failed(pair, Broken(Said("It is warm in Rome."), "the model fell over"), FAILING)
    assert "the model fell over" in str(error)


@both_ways
@every_destination
@every_client
def test_an_empty_answer_is_one_where_something_was_read(pair: Pair) -> None:
    got = pair.ask(Asked(), Said(""))
    assert (got.text, got.calls) == ("", ())


@both_ways
@every_destination
@every_client
def test_c6_an_answer_that_says_nothing_and_cost_nothing_is_none(pair: Pair) -> None:
    nothing = Said("", tokens=Tokens(completion=0))
    if pair.is_translated:
        error = failed(pair, nothing, FAILING)
        assert status_of(error) == 502
        assert "the answer is empty" in str(error)
    elif pair.shape is not Api.GEMINI:  # whose streams begin with nothing now and then
        assert pair.ask(Asked(), nothing, FAILING).text == ""


@pytest.mark.parametrize("streams", [True])
@pytest.mark.parametrize("bytes_at_once", [1, 7])
@every_destination
@every_client
def test_a1_letters_that_are_cut_between_reads_are_whole(pair: Pair, bytes_at_once: int) -> None:
    pair.gateway.providers.bytes_at_once = bytes_at_once
    got = pair.ask(Asked(), Said("Grüße 🌧️ \u2028 你好"))
    assert got.text == "Grüße 🌧️ \u2028 你好"
