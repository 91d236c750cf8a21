"""A request against its candidates: what of its prompt each holds, and what each would have to compute."""

from collections.abc import Sequence
from typing import Final

import msgspec
from xxhash import xxh3_64_intdigest

from kinference.core.candidates import Group, Shortlist
from kinference.core.cost import REQUEST_TOKENS, Case
from kinference.core.decision import Weighed
from kinference.core.limits import Account
from kinference.core.prefix.hashing import BLOCK_BYTES, chain_seed, hash_blocks
from kinference.core.prefix.index import PrefixIndex
from kinference.core.prices import Price
from kinference.core.recording import Recording
from kinference.core.request import Request
from kinference.core.standing import collect
from kinference.ids import Milliseconds, Seconds
from kinference.structs import FrozenRecord

ROOM_KNOWN_S: Final[Seconds] = 10.0
"""A scrape older than this tells of no full KV cache any more: a hung exporter must not close an engine for ever."""
ALL: Final = -1
"""The bits of all slots."""
HOUR_MS: Final[Milliseconds] = 3_600_000.0
_DIGEST: Final = xxh3_64_intdigest


class Prompt:
    """The prompt's blocks under each model name it may be served by, and how many of them each slot holds."""

    __slots__ = ("blocks", "changes", "depths", "key", "masks", "shared", "truncated")

    def __init__(
        self,
        blocks: dict[str, list[int]] | None = None,
        depths: dict[str, dict[int, int]] | None = None,
        masks: dict[str, int] | None = None,
        changes: int = 0,
    ) -> None:
        self.blocks: dict[str, list[int]] = {} if blocks is None else blocks
        self.depths: dict[str, dict[int, int]] = {} if depths is None else depths
        self.masks = masks
        """Whom it was looked up for."""
        self.changes = changes
        """How many changes of the index were seen then."""
        self.truncated = False
        self.key = 0
        """Equal for prompts with an equal head, 0 for one too short to tell."""
        self.shared: tuple[Group, int, list[float]] | None = None
        """Of these: the last block that any holds, 0 where all hold as much, and how much of all up to it each has."""


class Weighing(FrozenRecord, frozen=True):
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
    """Hash the prompt, unless its blocks are known, and find it in the index.

    Where it was looked up for the same destinations before, only who has changed since is asked about.
    """
    before = known if known is not None and known.masks == group.masks else None
    if before is not None and before.changes == index.changes:
        return before
    changed = ALL if before is None else index.changed_since(before.changes)
    found, salt = Prompt(None, None, group.masks, index.changes), request.salt
    for model, mask in group.masks.items():
        blocks = None if known is None else known.blocks.get(model)
        if blocks is None:
            seed = chain_seed(model, salt) if salt else group.seeds[model]
            blocks, found.truncated = hash_blocks(request.prompt, seed)
        elif known is not None:
            found.truncated = known.truncated
        found.blocks[model] = blocks
        depths = index.match(blocks, mask & changed)
        if before is not None:
            depths = {slot: depth for slot, depth in before.depths[model].items() if not changed >> slot & 1} | depths
        found.depths[model] = depths
        found.key = found.key or (blocks[0] if blocks else 0)
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


def make_case(request: Request, group: Group, prompt: Prompt, changes: int, now: Seconds) -> Case:
    """The columns that the cost terms read. Those that depend on no request stay while nothing changes at a moment."""
    standing = group.standing
    if standing is None or standing.at != now or standing.changes != changes:
        standing = group.standing = collect(group.loads, group.rates, changes, now)
    hits, uncached, longest = _hits(request.prompt_bytes, group, prompt)
    output_tokens, slopes, session = expected_output(request, group), standing.slopes, request.session
    is_tight = standing.least_room < longest + output_tokens
    return Case(  # by place: names cost more than all the rest of it
        group.destinations,
        group.names,
        group.rates,
        group.loads,
        group.circuits,
        standing.bases,
        slopes,
        standing.ahead,
        standing.beside,
        standing.left,
        standing.hung,
        hits,
        uncached,
        [slope * uncached[place] for place, slope in enumerate(slopes)],
        output_tokens,
        _fitting(group, uncached, output_tokens, now) if is_tight else range(len(uncached)),
        now,
        next(group.turns),
        prompt.key,
        _DIGEST(session.encode("utf-8", "surrogatepass")) if session else 0,
        standing.common,
    )


def _fitting(group: Group, uncached: Sequence[int], output_tokens: int, now: Seconds) -> list[int]:
    """The places whose KV cache has room for this request, or is not known to have none."""
    return [
        place
        for place, (load, tokens) in enumerate(zip(group.loads, uncached, strict=True))
        if load.room - load.resident >= tokens + output_tokens or now - load.seen_at > ROOM_KNOWN_S
    ]


def _hits(prompt_bytes: int, group: Group, prompt: Prompt) -> tuple[list[int], list[int], int]:
    """Tokens expected to be cached at each place, and to be computed; and the whole prompt's, at the most.

    What was sent to a place is cached there by as far as its engine confirms such beliefs. The prompt is as long as
    each place's own model has it, and never less than REQUEST_TOKENS.
    """
    count, destinations, longest = len(group.models), group.destinations, 0
    hits, uncached = [0] * count, [0] * count
    for model, traits in group.traits.items():
        length = traits.prompt_tokens(prompt_bytes)
        if length < REQUEST_TOKENS:
            length = REQUEST_TOKENS
        if length > longest:
            longest = length
        if len(group.traits) == 1:
            uncached = [length] * count
        else:
            uncached = [length if name == model else left for name, left in zip(group.models, uncached, strict=True)]
        depths = prompt.depths.get(model)
        if depths:
            places, block_tokens = group.places[model], BLOCK_BYTES / traits.bytes_per_token
            for slot, depth in depths.items():
                place = places.get(slot)
                if place is not None:  # None: left out since the prompt was looked up, for a wider group
                    hit = hits[place] = int(depth * block_tokens * destinations[place].hit_trust)
                    left = length - hit
                    uncached[place] = left if left > REQUEST_TOKENS else REQUEST_TOKENS
    return hits, uncached, longest


def expected_output(request: Request, group: Group) -> int:
    """The tokens that the answer is likely to have: what is usual for the model, within the client's own limit."""
    return group.traits[group.models[0]].answer_tokens(request.output_tokens)
