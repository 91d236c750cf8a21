"""What a source of endpoints tells, and what it comes to for a pool that knows some already. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from kinference.ids import Address

PLACES_MAX: Final = 1024
"""Endpoints of one pool: a source that tells more is taken at its word for so many."""


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """One endpoint as a source sees it."""

    address: Address
    is_open: bool = True
    """Whether it takes new requests; one that does not finishes what it has."""
    life: str = ""
    """Who is there, such as a pod's UID: another one is another engine, at the same address."""
    rank: int = 0
    """Which of the engines of one host: each further one publishes its KV events at ports above those of the others."""

    def succeeds(self, other: "Place") -> bool:
        """Whether somebody else was there before."""
        return bool(self.life and other.life) and self.life != other.life


@dataclass(frozen=True, slots=True)
class Step:
    """From one set of places to the next."""

    places: tuple[Place, ...]
    """All that the pool has from now on, by address."""
    anew: frozenset[Address] = frozenset()
    """Those of them where another engine is than before: nothing that was learned there holds."""
    left_out: int = 0
    """How many there was no room for."""


def step(known: Mapping[Address, Place], told: Iterable[Place], places_max: int = PLACES_MAX) -> Step:
    """What becomes of a pool that is told so. Whoever takes nothing new is kept for what it still has to finish, and
    not added; where there is no room for all, those that are known stay.
    """
    wanted: dict[Address, Place] = {}
    for place in sorted(told, key=lambda one: (one.address, not one.is_open, _is_news(known, one), one.life)):
        if place.is_open or not _is_news(known, place):
            wanted.setdefault(place.address, place)
    kept = sorted(wanted, key=lambda address: (address not in known, address))[:places_max]
    anew = frozenset(one for one in kept if one in known and wanted[one].succeeds(known[one]))
    return Step(tuple(wanted[one] for one in sorted(kept)), anew, len(wanted) - len(kept))


def _is_news(known: Mapping[Address, Place], place: Place) -> bool:
    """Whether nobody, or somebody else, was known at its address."""
    before = known.get(place.address)
    return before is None or place.succeeds(before)
