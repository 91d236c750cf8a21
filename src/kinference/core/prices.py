"""What tokens cost, in US dollars for a million of them."""

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

TOKENS_PRICED = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """The price of one model at one destination."""

    input_usd: float
    output_usd: float
    cached_input_usd: float | None = None
    """None: cached tokens cost what others do."""
    beyond: tuple[tuple[int, "Price"], ...] = ()
    """Prices of whole requests whose prompts have more tokens than the number; ascending."""

    def of(self, prompt_tokens: int, cached_tokens: int, output_tokens: int) -> float:
        """What a request costs; the cached tokens are among those of the prompt."""
        price = self
        for tokens, dearer in self.beyond:
            if prompt_tokens > tokens:
                price = dearer
        cached = min(max(cached_tokens, 0), prompt_tokens)
        cached_usd = price.input_usd if price.cached_input_usd is None else price.cached_input_usd
        usd = (prompt_tokens - cached) * price.input_usd + cached * cached_usd + output_tokens * price.output_usd
        return usd / TOKENS_PRICED


FREE = Price(0.0, 0.0)


@dataclass(frozen=True, slots=True)
class PricedModel:
    """The price of every model whose name matches."""

    pattern: str
    price: Price


def price_of(model: str, prices: Iterable[PricedModel]) -> Price | None:
    """The first that matches; None when nobody has said what the model costs."""
    return next((priced.price for priced in prices if fnmatchcase(model, priced.pattern)), None)
