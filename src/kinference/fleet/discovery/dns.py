"""Discovery by DNS: the addresses of a name, or the hosts and ports of its SRV records, asked for again and again."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from random import Random
from typing import Final, TypeAlias

import dns.asyncresolver
import dns.exception
import dns.rdatatype
import dns.rdtypes.IN.A
import dns.rdtypes.IN.AAAA
import dns.rdtypes.IN.SRV
import dns.resolver

from kinference.fleet.discovery.place import PLACES_MAX, Place
from kinference.fleet.discovery.source import SourceFailed
from kinference.ids import Address, Seconds

LIFETIME: Seconds = 5.0
"""Of one question, over all servers and tries."""
AT_ONCE: Final = 16
"""Questions about the hosts of SRV records."""
_ADDRESSES: Final = (dns.rdtypes.IN.A.A, dns.rdtypes.IN.AAAA.AAAA)
_EMPTY_BELIEVED: Final = 2
"""Empty answers in a row after which a pool is empty: a server that has just started knows nothing yet."""


@dataclass(frozen=True, slots=True)
class Service:
    """One SRV record."""

    priority: int
    host: str
    port: int


class NoRecord(Exception):
    """The servers say that there is none; nothing is wrong with them."""


@dataclass(frozen=True, slots=True)
class Resolver:
    """The system's resolver, or one server. Its configuration is read anew for each question, since it may change."""

    server: tuple[str, int] | None = None

    async def addresses(self, name: str) -> list[str]:
        """Of IPv4, else of IPv6: whoever has both is one engine. Raises NoRecord or SourceFailed."""
        for kind in (dns.rdatatype.A, dns.rdatatype.AAAA):
            with suppress(NoRecord):
                records = await self._records(name, kind)
                return [one.address for one in records if isinstance(one, _ADDRESSES)]
        raise NoRecord(f"{name} has no address in DNS")

    async def services(self, name: str) -> list[Service]:
        """Raises NoRecord or SourceFailed."""
        records = await self._records(name, dns.rdatatype.SRV)
        known = [one for one in records if isinstance(one, dns.rdtypes.IN.SRV.SRV)]
        return [Service(one.priority, one.target.to_text(), one.port) for one in known]

    async def _records(self, name: str, kind: dns.rdatatype.RdataType) -> Iterable[object]:
        try:
            resolver = dns.asyncresolver.Resolver(configure=self.server is None)
            if self.server is not None:
                resolver.nameservers, resolver.port = [self.server[0]], self.server[1]
            return await resolver.resolve(name, kind, lifetime=LIFETIME, search=self.server is None)
        except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
            raise NoRecord(f"{name} has no record of type {dns.rdatatype.to_text(kind)}") from None
        except dns.resolver.NoResolverConfiguration:
            raise SourceFailed("this machine has no resolver (/etc/resolv.conf); name one as dns.server") from None
        except dns.exception.Timeout:
            raise SourceFailed(f"no DNS server answered within {LIFETIME:g} s") from None
        except (dns.exception.DNSException, OSError) as error:
            raise SourceFailed(f"DNS failed: {type(error).__name__}") from None


Sleep: TypeAlias = Callable[[Seconds], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class DnsQuestion:
    """What is asked, and how often."""

    name: str
    port: int | None
    """None: SRV records tell it."""
    interval: Seconds


class DnsSource:
    """Asks again every interval. An empty answer is believed when it is given again."""

    def __init__(self, question: DnsQuestion, resolver: Resolver, rng: Random, sleep: Sleep = asyncio.sleep) -> None:
        self._question, self._resolver, self._rng, self._sleep = question, resolver, rng, sleep
        self._empty = 0

    @property
    def name(self) -> str:
        port = "SRV" if self._question.port is None else f"port {self._question.port}"
        return f"DNS {self._question.name}, {port}"

    async def sets(self) -> AsyncGenerator[Sequence[Place], None]:
        """Raises SourceFailed."""
        while True:
            yield await self._resolved()
            await self._sleep(self._question.interval * self._rng.uniform(0.9, 1.1))

    async def _resolved(self) -> Sequence[Place]:
        try:
            places = await self._found()
        except NoRecord as error:
            self._empty += 1
            if self._empty < _EMPTY_BELIEVED:
                raise SourceFailed(f"{error}; is the name right, and an engine up?") from None
            return ()
        self._empty = 0
        return places

    async def _found(self) -> Sequence[Place]:
        name, port = self._question.name, self._question.port
        if port is not None:
            return [place_of(one, port) for one in await self._resolver.addresses(name)]
        hosts = first_hosts(await self._resolver.services(name))
        room = asyncio.Semaphore(AT_ONCE)
        found = await asyncio.gather(*(self._of_host(one, room) for one in hosts))
        places = [place for each in found for place in each]
        if not places:
            raise NoRecord(f"no host of the SRV records of {name} has an address")
        return places

    async def _of_host(self, service: Service, room: asyncio.Semaphore) -> Sequence[Place]:
        async with room:
            try:
                return [place_of(one, service.port) for one in await self._resolver.addresses(service.host)]
            except NoRecord:  # it has just gone
                return ()


def first_hosts(services: Iterable[Service]) -> list[Service]:
    """Those that come first by priority, without what SRV has for "there is no such service"; bounded."""
    usable = sorted({one for one in services if one.host != "." and one.port}, key=lambda one: (one.host, one.port))
    first = min((one.priority for one in usable), default=0)
    return [one for one in usable if one.priority == first][:PLACES_MAX]


def place_of(ip: str, port: int) -> Place:
    """An address of either family as an endpoint's."""
    host = f"[{ip}]" if ip_address(ip).version == 6 else ip  # noqa: PLR2004 - the number of the protocol
    return Place(Address(f"{host}:{port}"))
