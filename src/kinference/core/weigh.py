"""A request against its candidates: what of its prompt each holds, and what each would have to compute."""

from collections.abc import Sequence
from operator import mul

import msgspec

from kinference.core.candidates import Group, Shortlist
from kinference.core.cost import REQUEST_TOKENS, Case
from kinference.core.decision import Weighed
from kinference.core.ledger import SCRAPE_FADES_S
from kinference.core.limits import Account
from kinference.core.prefix.hashing import BLOCK_BYTES, chain_seed, hash_prompt
from kinference.core.prefix.index import PrefixIndex
from kinference.core.prices import Price
from kinference.core.recording import Recording
from kinference.core.request import Request
from kinference.ids import Milliseconds, Seconds

ROOM_KNOWN_S: Seconds = 10.0
"""A scrape older than this tells of no full KV cache any more: a hung exporter must not close an engine for ever."""
HOUR_MS: Milliseconds = 3_600_000.0


class Prompt(msgspec.Struct, eq=False, gc=False):
    """The prompt's blocks under each model name it may be served by, and how many of them each slot holds."""

    blocks: dict[str, list[int]] = {}
    depths: dict[str, dict[int, int]] = {}
    truncated: bool = False


class Weighing(msgspec.Struct, frozen=True, eq=False, gc=False):
    """The chosen place in a group, with everything that led there; nothing is changed by it yet."""

    request: Request
    group: Group
    prompt: Prompt
    case: Case
    weighed: Weighed
    shortlist: Shortlist
    account: Account | None = None
    """The tenant's, where it has limits."""
    recording: Recording | None = None
    """Where decisions are recorded."""

    def at(self, place: int) -> "Weighing":
        """The same, with another one chosen, which no replay would choose."""
        if place == self.weighed.chosen:
            return self
        return msgspec.structs.replace(
            self, weighed=msgspec.structs.replace(self.weighed, chosen=place), recording=None
        )


def look_up(request: Request, group: Group, index: PrefixIndex, known: Prompt | None = None) -> Prompt:
    """Hash the prompt, unless its blocks are known, and find it in the index."""
    found = Prompt()
    for model, mask in group.masks.items():
        blocks = None if known is None else known.blocks.get(model)
        if blocks is None:
            seed = chain_seed(model, request.salt) if request.salt else group.seeds[model]
            blocks, found.truncated = hash_prompt(request.prompt, seed)
        elif known is not None:
            found.truncated = known.truncated
        found.blocks[model] = blocks
        found.depths[model] = index.match(blocks, mask)
    return found


def prompt_tokens(request: Request, group: Group, model: str) -> int:
    """The prompt's length in the tokens of a model, estimated."""
    return group.traits[model].prompt_tokens(request.prompt_bytes)


def expected_tokens(weighing: Weighing) -> int:
    """Those of the prompt and of the answer at the chosen place."""
    group, case = weighing.group, weighing.case
    return prompt_tokens(weighing.request, group, group.models[weighing.weighed.chosen]) + case.output_tokens


def expected_cost(weighing: Weighing) -> tuple[Price | None, float]:
    """The price at the chosen place, and what it comes to with nothing cached."""
    group, chosen = weighing.group, weighing.weighed.chosen
    model = group.models[chosen]
    price, tokens = group.destinations[chosen].price(model), prompt_tokens(weighing.request, group, model)
    return price, 0.0 if price is None else price.of(tokens, 0, weighing.case.output_tokens)


def price_column(group: Group, case: Case, usd_per_hour: float) -> list[Milliseconds]:
    """What each place costs, as the time that the tenant would rather wait than pay that."""
    column = []
    for destination, model, hit, uncached in zip(
        group.destinations, group.models, case.hits, case.uncached, strict=True
    ):
        price = destination.price(model)
        assert price is not None  # the filters have removed those of unknown price
        column.append(price.of(hit + uncached, hit, case.output_tokens) / usd_per_hour * HOUR_MS)
    return column


def adapter_column(group: Group) -> list[Milliseconds]:
    """The time to load the adapter, where the model is one that is not loaded."""
    return [
        0.0 if destination.is_loaded(model) else rates.typical.adapter_ms
        for destination, model, rates in zip(group.destinations, group.models, group.rates, strict=True)
    ]


def make_case(request: Request, group: Group, prompt: Prompt, now: Seconds) -> Case:
    """The columns that the cost terms read."""
    hits = _hits(group, prompt)
    uncached = _uncached(request, group, hits)
    ahead, beside = _loads(group, now)
    output_tokens = expected_output(request, group)
    slopes = [rates.line.ms_per_token for rates in group.rates]
    return Case(
        destinations=group.destinations,
        names=group.names,
        rates=group.rates,
        loads=group.loads,
        circuits=group.circuits,
        bases=[rates.line.base_ms for rates in group.rates],
        slopes=slopes,
        ahead=ahead,
        beside=beside,
        hits=hits,
        uncached=uncached,
        work=list(map(mul, slopes, uncached)),
        output_tokens=output_tokens,
        fitting=_fitting(group, uncached, output_tokens, now),
        now=now,
        turn=next(group.turns),
        key=_key(prompt),
    )


def _uncached(request: Request, group: Group, hits: Sequence[int]) -> list[int]:
    """What is left to compute at each place of a prompt as long as its own model has it."""
    if len(group.traits) == 1:
        size = prompt_tokens(request, group, group.models[0])
        rests = [size - hit for hit in hits]
    else:
        sizes = {model: prompt_tokens(request, group, model) for model in group.traits}
        rests = [sizes[model] - hit for model, hit in zip(group.models, hits, strict=True)]
    return [rest if rest > REQUEST_TOKENS else REQUEST_TOKENS for rest in rests]  # noqa: FURB136 - a call is slow


def _key(prompt: Prompt) -> int:
    for blocks in prompt.blocks.values():
        if blocks:
            return blocks[0]
    return 0


def _loads(group: Group, now: Seconds) -> tuple[list[float], list[float]]:
    """Prompt tokens ahead and requests beside, at each place: our own, and what the scrape, aged, shows beyond."""
    ahead: list[float] = [load.prefill_tokens for load in group.loads]
    beside: list[float] = [load.requests for load in group.loads]
    shared = [place for place, load in enumerate(group.loads) if load.foreign_requests or load.foreign_tokens]
    for place in shared:
        load = group.loads[place]
        fresh = SCRAPE_FADES_S / (SCRAPE_FADES_S + abs(now - load.seen_at))
        ahead[place] += load.foreign_tokens * fresh
        beside[place] += load.foreign_requests * fresh
    return ahead, beside


def _fitting(group: Group, uncached: Sequence[int], output_tokens: int, now: Seconds) -> Sequence[int]:
    """The places whose KV cache has room for this request, or is not known to have none. Mostly all: looked into only
    where the least has little.
    """
    rooms = [load.room - load.resident for load in group.loads]
    if min(rooms) >= max(uncached) + output_tokens:
        return range(len(rooms))
    seen_at = [load.seen_at for load in group.loads]
    return [
        place
        for place, room in enumerate(rooms)
        if room >= uncached[place] + output_tokens or now - seen_at[place] > ROOM_KNOWN_S
    ]


def _hits(group: Group, prompt: Prompt) -> list[int]:
    """Tokens expected to be cached at each place: what was sent there, by how far the engine confirms such beliefs."""
    hits, destinations = [0] * len(group.destinations), group.destinations
    for model, depths in prompt.depths.items():
        block_tokens, places = BLOCK_BYTES / group.traits[model].bytes_per_token, group.places[model]
        for slot, depth in depths.items():
            place = places.get(slot)
            if place is not None:
                hits[place] = int(depth * block_tokens * destinations[place].hit_trust)
    return hits


def expected_output(request: Request, group: Group) -> int:
    """The tokens that the answer is likely to have: what is usual for the model, within the client's own limit."""
    return group.traits[group.models[0]].answer_tokens(request.output_tokens)
