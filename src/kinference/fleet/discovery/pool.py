"""One pool of the fleet whose endpoints a source tells."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from kinference.core.fleet import EndpointSpec, Fleet
from kinference.fleet.discovery.place import Place, Step, step
from kinference.ids import Address, ObjectRef


class DiscoveredPool:
    """Makes the fleet follow what is told. Endpoints that stay keep all that is known of them."""

    def __init__(self, fleet: Fleet, template: EndpointSpec) -> None:
        self._fleet, self._template = fleet, template
        self._known: dict[Address, Place] = {}
        self._asked: set[Address] = set()
        """Those that an operator had drain before their source did."""
        self.left_out = 0

    @property
    def ref(self) -> ObjectRef:
        return self._template.pool

    def respecify(self, template: EndpointSpec) -> None:
        """The configuration says something else of each endpoint from now on."""
        if template == self._template:
            return
        self._template = template
        known = self._present()
        self._fleet.set_pool(self.ref, [self._spec(known[address]) for address in sorted(known)])

    def release(self) -> None:
        """Another source will tell from now on: what this one has drained takes requests again, until that does."""
        for address, place in self._known.items():
            if not place.is_open and address not in self._asked:
                self._fleet.set_draining(self.ref, address, False)
        self._known = {}

    def take(self, told: Iterable[Place]) -> Step | None:
        """Follow what is told; None where it is what was told before."""
        known = self._present()
        taken = step(known, told)
        self.left_out = taken.left_out
        after = {place.address: place for place in taken.places}
        if after == known and not taken.anew:
            self._known = after
            return None
        specs = [self._spec(place) for place in taken.places]
        if taken.anew:
            self._fleet.set_pool(self.ref, [spec for spec in specs if spec.address not in taken.anew])
        self._fleet.set_pool(self.ref, specs)
        self._known = {address: place for address, place in known.items() if address not in taken.anew}
        for place in taken.places:
            self._drain(place)
        self._known = after
        self._asked &= after.keys()
        return taken

    def _spec(self, place: Place) -> EndpointSpec:
        spec = replace(self._template, address=place.address)
        feed = spec.cache_feed
        if feed is None or not place.rank:
            return spec
        above = place.rank * feed.ranks
        replay = None if feed.replay_port is None else feed.replay_port + above
        return replace(spec, cache_feed=replace(feed, port=feed.port + above, replay_port=replay))

    def _present(self) -> Mapping[Address, Place]:
        """As the fleet has them: a reload may have brought some that no source has told of."""
        present = [one.spec.address for one in self._fleet.endpoints() if one.spec.pool == self.ref]
        return {address: self._known.get(address, Place(address)) for address in present}

    def _drain(self, place: Place) -> None:
        before = self._known.get(place.address)
        was_open = before is None or before.is_open
        if was_open == place.is_open:
            return
        if not place.is_open and self._drains(place.address):
            self._asked.add(place.address)
        elif place.address not in self._asked:
            self._fleet.set_draining(self.ref, place.address, not place.is_open)

    def _drains(self, address: Address) -> bool:
        return any(
            one.draining for one in self._fleet.endpoints() if (one.spec.pool, one.spec.address) == (self.ref, address)
        )
