"""What providers charge, as genai-prices has it: bundled data, nothing is fetched."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal

from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import TieredPrices

from kinference.core.prices import Price

_HTTPS_PORT = re.compile(r"(?<=[^/:]):443(?=/|$)")
"""Which the list's own patterns do not expect."""


def listed_price(model: str, base_url: str) -> Price | None:
    """The price of a model at the provider that has this URL; None when one of the two is unknown.

    Only text is priced: what providers charge beside tokens, for searches or for writing their cache, is not in it.
    """
    try:
        _, found = get_snapshot().find_provider_model(model, None, None, _HTTPS_PORT.sub("", base_url, 1))
    except LookupError:
        return None
    listed = vars(found.get_prices(datetime.now(UTC)))
    if listed.get("input_mtok") is None:
        return None
    starts = {tier.start for value in listed.values() if isinstance(value, TieredPrices) for tier in value.tiers}
    dearer = tuple((start, _price(listed, start)) for start in sorted(starts))
    base = _price(listed, None)
    return Price(base.input_usd, base.output_usd, base.cached_input_usd, dearer)


def _price(listed: Mapping[str, Decimal | TieredPrices | None], start: int | None) -> Price:
    """The price of requests with so many prompt tokens; None: the fewest."""
    values = (_value(listed.get(name), start) for name in ("input_mtok", "output_mtok", "cache_read_mtok"))
    input_usd, output_usd, cached_usd = values
    return Price(input_usd or 0.0, output_usd or 0.0, cached_usd)


def _value(listed: Decimal | TieredPrices | None, start: int | None) -> float | None:
    if not isinstance(listed, TieredPrices):
        return None if listed is None else float(listed)
    reached = [tier.price for tier in listed.tiers if start is not None and tier.start <= start]
    return float(reached[-1] if reached else listed.base)
