"""What engines say that they hold, block by block in their own tokens, carried over to the prompt index.

An engine names its blocks by hashes that mean nothing elsewhere, often not even after its restart. Here a block is
named by a chain over its tokens and over whatever else sets it apart (adapter, salt): the same name on every engine. A
*link* ties a block of a prompt, which is a stretch of bytes, to the block of tokens that ends in the same place. It is
learned once, when the prompt has been put into tokens, and that is done aside: a decision never waits for it. From
then on whatever an engine stores or removes is known for what it is, whoever sent it there.

Without links the events still tell of restarts and of caches that were cleared.
"""

from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from xxhash import xxh3_64_intdigest

from kinference.core.prefix.hashing import BLOCK_BYTES
from kinference.core.prefix.index import PrefixIndex

TRACKED_MAX: Final = 1 << 20
"""Blocks of all engines together whose names are kept."""
LINKS_MAX: Final = 1 << 19
BLOCK_SIZES_MAX: Final = 4
"""Different sizes of an engine's block, in tokens, over the whole fleet; prompts are linked for each."""
_TOKEN_BYTES: Final = array("I").itemsize
_ROOT: Final = xxh3_64_intdigest(b"kinference token blocks")


@dataclass(frozen=True, slots=True)
class BlocksStored:
    """A run of blocks that an engine holds from now on, one after the other."""

    hashes: tuple[int, ...]
    parent: int | None
    tokens: Sequence[int]
    block_tokens: int
    extras: tuple[bytes, ...]
    """What sets each block apart beside its tokens; b"" for nothing."""


@dataclass(frozen=True, slots=True)
class BlocksRemoved:
    """Blocks that an engine holds no more."""

    hashes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BlocksCleared:
    """The engine holds nothing."""


CacheEvent = BlocksStored | BlocksRemoved | BlocksCleared


@dataclass(frozen=True, slots=True)
class LinkedPrompt:
    """A prompt as bytes and as tokens. `extra` sets every block apart, and `first_extra` the first one."""

    blocks: Sequence[int]
    prompt_bytes: int
    tokens: Sequence[int]
    extra: bytes = b""
    first_extra: bytes = b""


@dataclass(slots=True, eq=False)
class _Stream:
    """One engine's names for its blocks: of one rank, where an endpoint has several."""

    slot: int
    bit: int
    """What stands for it where a token block says who holds it."""
    block_tokens: int = 0
    keys: dict[int, int] = field(default_factory=dict)
    is_complete: bool = False
    """Everything that the engine holds is here: it was empty when we began, and nothing was lost."""


@dataclass(slots=True, eq=False)
class _Links:
    """Ties between prompt blocks and token blocks of one size."""

    key_of: dict[int, int] = field(default_factory=dict)
    blocks_of: dict[int, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    """For a token block, each prompt block that ends there, and the prompt block before that."""


class EngineBlocks:
    """Tells the index what the engines' events mean. Everything in it is bounded, whatever an engine says."""

    def __init__(self, index: PrefixIndex, tracked_max: int = TRACKED_MAX, links_max: int = LINKS_MAX) -> None:
        self._index = index
        self._tracked_max, self._links_max = tracked_max, links_max
        self._streams: dict[int, dict[int, _Stream]] = {}
        """By slot and rank."""
        self._by_bit: dict[int, _Stream] = {}
        self._holders: dict[int, int] = {}
        """The streams, as bits, that hold a token block."""
        self._tracked = 0
        self._links: dict[int, _Links] = {}
        """By the size of the engines' blocks."""

    def apply(self, slot: int, rank: int, event: CacheEvent) -> None:
        """An engine did this to its cache."""
        match event:
            case BlocksStored():
                self._stored(self._stream(slot, rank), event)
            case BlocksRemoved(hashes):
                self._removed(self._stream(slot, rank), hashes)
            case BlocksCleared():
                self._cleared(slot, rank)

    def begin(self, slot: int, rank: int) -> None:
        """All that the engine does is told from here on, from an empty cache. What we sent to one that we had not
        heard of before is part of that.
        """
        if rank in self._streams.get(slot, {}):
            self._cleared(slot, rank)
        self._stream(slot, rank).is_complete = True

    def lose(self, slot: int, rank: int) -> None:
        """Some of what the engine did to its cache is not known."""
        self._stream(slot, rank).is_complete = False

    def forget(self, slot: int) -> None:
        """The endpoint is gone."""
        for stream in self._streams.pop(slot, {}).values():
            self._removed(stream, list(stream.keys))
            del self._by_bit[stream.bit]

    def retell(self, slot: int) -> None:
        """The index has forgotten an endpoint whose engines are still known here: tell it anew what they hold."""
        for stream in self._streams.get(slot, {}).values():
            links = self._links.get(stream.block_tokens, _Links())
            for key in stream.keys.values():
                for block, before in links.blocks_of.get(key, ()):
                    self._index.add(slot, block, before)

    def is_complete(self, slot: int, rank: int) -> bool:
        """Whether all that the engine holds is known."""
        return self._stream(slot, rank).is_complete

    def tracked(self, slot: int) -> int:
        """The engine's blocks at an endpoint that have names here."""
        return sum(len(stream.keys) for stream in self._streams.get(slot, {}).values())

    def expect(self, block_tokens: int) -> None:
        """An engine has blocks of this size, though it has not told of one yet: prompts are worth linking for it."""
        if block_tokens not in self._links and len(self._links) < BLOCK_SIZES_MAX:
            self._links[block_tokens] = _Links()

    def is_linked(self, block: int) -> bool:
        """Whether a prompt that ends with this block need not be put into tokens: it has been, or nobody would know."""
        return all(block in links.key_of for links in self._links.values())

    def link(self, prompt: LinkedPrompt, held_by: int | None = None) -> int:
        """Remember which token blocks a prompt's blocks are, and believe the engines that hold them already; where
        `held_by` says who was sent it, only as far as that one is seen to hold them. Returns how many token blocks that
        are.

        A prompt's bytes are spread evenly over its tokens: where a block ends is known to a few tokens in a text of one
        kind, and to some percent of them where tools and texts follow each other.
        """
        tied = 0
        for block_tokens, links in self._links.items():
            chain = _prompt_chain(prompt, block_tokens)
            if held_by is not None:
                chain = chain[: self._held_of(chain, held_by)]
            tied += len(chain)
            before = 0
            for place, block in enumerate(prompt.blocks):
                whole = (place + 1) * BLOCK_BYTES * len(prompt.tokens) // max(1, prompt.prompt_bytes) // block_tokens
                if 0 < whole <= len(chain):
                    self._tie(links, chain[whole - 1], block, before)
                    self._believe(chain[whole - 1], block, before)
                before = block
        return tied

    def _held_of(self, chain: Sequence[int], slot: int) -> int:
        """How many leading ones of these token blocks an endpoint holds."""
        mine = sum(stream.bit for stream in self._streams.get(slot, {}).values())
        return next((place for place, key in enumerate(chain) if not self._holders.get(key, 0) & mine), len(chain))

    def settle(self, slot: int, blocks: Sequence[int], confirmed: int | None) -> None:
        """A prompt was answered there: what the engine has not stored of it, it does not hold.

        As many leading blocks as it says that it had cached are there, told of or not. Where it does not say, and not
        all that it holds is known, nothing can be said.
        """
        streams = self._streams.get(slot)
        if not streams or (confirmed is None and not all(stream.is_complete for stream in streams.values())):
            return
        links = self._links.get(next(iter(streams.values())).block_tokens)
        if links is not None:
            mine = sum(stream.bit for stream in streams.values())
            tied = ((block, links.key_of.get(block)) for block in blocks[confirmed or 0 :])
            missing = (block for block, key in tied if key is not None and not self._holders.get(key, 0) & mine)
            self._index.drop(slot, missing)

    def _cleared(self, slot: int, rank: int) -> None:
        stream = self._stream(slot, rank)
        self._removed(stream, list(stream.keys))
        stream.block_tokens, stream.is_complete = 0, True
        if len(self._streams[slot]) == 1:
            self._index.forget(slot)

    def _stream(self, slot: int, rank: int) -> _Stream:
        streams = self._streams.setdefault(slot, {})
        if rank not in streams:
            bit = next(1 << number for number in range(len(self._by_bit) + 1) if 1 << number not in self._by_bit)
            streams[rank] = self._by_bit[bit] = _Stream(slot, bit)
        return streams[rank]

    def _stored(self, stream: _Stream, event: BlocksStored) -> None:
        links = self._links_for(stream, event.block_tokens)
        key = _ROOT if event.parent is None else stream.keys.get(event.parent)
        if key is None or links is None:
            return  # its beginning was stored before we listened, or was too much to remember
        extras = dict(enumerate(event.extras))
        chain = _chain(event.tokens, event.block_tokens, lambda place: extras.get(place, b""), key)
        for name, key in zip(event.hashes, chain, strict=False):
            if name not in stream.keys:
                stream.keys[name] = key
                self._tracked += 1
                self._holders[key] = self._holders.get(key, 0) | stream.bit
            for block, before in links.blocks_of.get(key, ()):
                self._index.add(stream.slot, block, before)
        if self._tracked > self._tracked_max:
            excess = len(stream.keys) - self._tracked_max // len(self._by_bit)
            for name in list(islice(stream.keys, max(0, excess))):
                self._forget(stream, name)  # what the index believes of it stays

    def _removed(self, stream: _Stream, hashes: Iterable[int]) -> None:
        links = self._links.get(stream.block_tokens)
        mine = sum(one.bit for one in self._streams.get(stream.slot, {}).values())
        gone: list[int] = []
        for name in hashes:
            key = self._forget(stream, name)
            if key is not None and links is not None and not self._holders.get(key, 0) & mine:
                gone += [block for block, _ in links.blocks_of.get(key, ())]
        self._index.drop(stream.slot, gone)

    def _forget(self, stream: _Stream, name: int) -> int | None:
        key = stream.keys.pop(name, None)
        if key is not None:
            self._tracked -= 1
            left = self._holders.pop(key, 0) & ~stream.bit
            if left:
                self._holders[key] = left
        return key

    def _links_for(self, stream: _Stream, block_tokens: int) -> _Links | None:
        """The ties for an engine's size of block; None for one size too many, or another than it began with."""
        if not stream.block_tokens:
            self.expect(block_tokens)
            stream.block_tokens = block_tokens
        return self._links.get(block_tokens) if block_tokens == stream.block_tokens else None

    def _tie(self, links: _Links, key: int, block: int, before: int) -> None:
        if block in links.key_of:
            return
        if len(links.key_of) >= self._links_max:
            oldest = next(iter(links.key_of))
            links.blocks_of.pop(links.key_of.pop(oldest), None)
        links.key_of[block] = key
        links.blocks_of[key] = (*links.blocks_of.get(key, ())[-3:], (block, before))

    def _believe(self, key: int, block: int, before: int) -> None:
        holders = self._holders.get(key, 0)
        while holders:
            bit = holders & -holders
            self._index.add(self._by_bit[bit].slot, block, before)
            holders ^= bit


def _chain(tokens: Sequence[int], size: int, extra: Callable[[int], bytes], key: int) -> list[int]:
    """The names of the full blocks, each made of the one before it."""
    packed, width = array("I", tokens).tobytes(), size * _TOKEN_BYTES
    starts = range(0, len(packed) - width + 1, width)
    return [
        key := xxh3_64_intdigest(packed[start : start + width] + extra(place), key)
        for place, start in enumerate(starts)
    ]


def _prompt_chain(prompt: LinkedPrompt, size: int) -> list[int]:
    def extra(place: int) -> bytes:
        return prompt.extra if place else prompt.first_extra

    return _chain(prompt.tokens, size, extra, _ROOT)
