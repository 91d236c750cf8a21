import pytest

from kinference.runtime.price_list import listed_price


@pytest.mark.parametrize(
    ("url", "model"),
    [
        ("https://api.openai.com:443/v1", "gpt-4o-mini"),
        ("https://api.anthropic.com:443", "claude-sonnet-4-5"),
        ("https://generativelanguage.googleapis.com:443", "gemini-2.5-pro"),
        ("https://somebody.openai.azure.com:443", "gpt-4o"),
        ("https://bedrock-runtime.us-east-1.amazonaws.com:443", "anthropic.claude-3-5-sonnet-20241022-v2:0"),
        ("https://us-central1-aiplatform.googleapis.com:443", "gemini-2.5-flash"),
    ],
)
def test_a_provider_is_known_by_its_url_and_cached_tokens_are_the_cheapest(url: str, model: str) -> None:
    price = listed_price(model, url)
    assert price is not None
    assert price.cached_input_usd is not None
    assert 0 < price.cached_input_usd < price.input_usd < price.output_usd


@pytest.mark.parametrize(
    ("url", "model"),
    [
        ("http://10.0.0.1:8000", "gpt-4o"),
        ("https://llm.example.com:443", "gpt-4o"),
        ("https://api.openai.com:443", "no-such-model"),
    ],
)
def test_an_unknown_host_or_model_has_no_price(url: str, model: str) -> None:
    assert listed_price(model, url) is None


def test_long_prompts_are_dearer_where_the_provider_says_so() -> None:
    price = listed_price("gemini-2.5-pro", "https://generativelanguage.googleapis.com:443")
    assert price is not None
    ((start, dearer),) = price.beyond
    assert price.of(start, 0, 0) == pytest.approx(start * price.input_usd / 1e6)
    assert price.of(start + 1, 0, 0) == pytest.approx((start + 1) * dearer.input_usd / 1e6)
    assert dearer.input_usd > price.input_usd
