"""An upstream for addresses that somebody else chose: it looks where a name leads, and connects just there.

Checking the name first and connecting by name later would leave time to change where it leads.
"""

import socket
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TypeAlias
from urllib.parse import urlsplit

from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver

from kinference.errors import UpstreamUnreachable
from kinference.ports import Upstream, UpstreamAnswer, UpstreamRequest
from kinference.wire.aiohttp_upstream import AiohttpUpstream

IpAddress: TypeAlias = IPv4Address | IPv6Address
Admits: TypeAlias = Callable[[IpAddress], bool]

_METADATA = (ip_address("100.100.100.200"), ip_address("fd00:ec2::254"))
_EMBEDDING = ip_network("64:ff9b::/96")
"""IPv6 addresses that a translator turns into the IPv4 address of their last four bytes."""


def admits_any(address: IpAddress) -> bool:
    """All but where machines ask for their own credentials: no model is served there."""
    inner = _inner(address)
    return not (inner.is_link_local or inner.is_multicast or inner.is_unspecified or inner in _METADATA)


def admits_public(address: IpAddress) -> bool:
    """Only what can be reached from anywhere."""
    return admits_any(address) and _inner(address).is_global


class GuardedUpstream(AiohttpUpstream, Upstream):
    """Refuses destinations that `admits` does not let pass, whether named or written as an address."""

    def __init__(self, admits: Admits) -> None:
        self._admits = admits
        super().__init__(_CheckedResolver(admits))

    async def send(self, request: UpstreamRequest) -> UpstreamAnswer:
        host = urlsplit(request.origin).hostname or ""
        try:
            address = ip_address(host)
        except ValueError:
            pass  # a name: the resolver checks where it leads
        else:
            _check(host, address, self._admits)
        return await super().send(request)


class _CheckedResolver(AbstractResolver):
    def __init__(self, admits: Admits) -> None:
        self._resolver, self._admits = ThreadedResolver(), admits

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        found = await self._resolver.resolve(host, port, family)
        for each in found:
            _check(host, ip_address(each["host"].partition("%")[0]), self._admits)
        return found

    async def close(self) -> None:
        await self._resolver.close()


def _check(host: str, address: IpAddress, admits: Admits) -> None:
    if not admits(address):
        raise UpstreamUnreachable(
            f"{host} is a private, link-local or metadata address, which is not tried (control.verify.allow_private)"
        )


def _inner(address: IpAddress) -> IpAddress:
    """The IPv4 address that an IPv6 one stands for, else the address itself."""
    if not isinstance(address, IPv6Address):
        return address
    if address in _EMBEDDING:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address
