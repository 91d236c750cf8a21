"""Discovery by DNS against a server on real sockets."""

import asyncio
from random import Random

import dns.rcode
import pytest

from kinference.config.destinations import Pool
from kinference.config.discovery import Discovery, DnsDiscovery
from kinference.config.schema import Config, Listen
from kinference.config.values import Count, Duration, HostPort, Name
from kinference.fleet.discovery.dns import DnsQuestion, DnsSource, Resolver
from kinference.fleet.discovery.source import SourceFailed
from kinference.ports import UpstreamRequest
from kinference.runtime.service import Service, running
from kinference.sim.options import EngineOptions
from kinference.sim.serving import serve_engine
from kinference.wire.aiohttp_upstream import AiohttpUpstream
from tests.integration.fleet.dns_server import DnsServer, dns_server
from tests.unit.fleet.discovery.fakes import Waits

NAME = "engines.models.svc."


def source(server: DnsServer, port: int | None = 8000) -> DnsSource:
    question = DnsQuestion(NAME, port, 10.0)
    return DnsSource(question, Resolver(("127.0.0.1", server.port)), Random(1), Waits())


async def told(asked: DnsSource) -> list[str]:
    sets = asked.sets()
    try:
        return sorted(place.address for place in await anext(sets))
    finally:
        await sets.aclose()


async def test_a_name_is_asked_for_again_and_again() -> None:
    zone = {(NAME, "A"): ["10.0.0.1", "10.0.0.2"]}
    async with dns_server(DnsServer(zone)) as server:
        asked = source(server)
        sets = asked.sets()
        first = sorted(place.address for place in await anext(sets))
        server.zone = {(NAME, "A"): ["10.0.0.2", "10.0.0.3"]}
        second = sorted(place.address for place in await anext(sets))
        await sets.aclose()
    assert first == ["10.0.0.1:8000", "10.0.0.2:8000"]
    assert second == ["10.0.0.2:8000", "10.0.0.3:8000"]


async def test_an_engine_with_an_address_of_each_family_is_one_engine() -> None:
    async with dns_server(DnsServer({(NAME, "A"): ["10.0.0.1"], (NAME, "AAAA"): ["fd00::1"]})) as server:
        assert await told(source(server)) == ["10.0.0.1:8000"]
        server.zone = {(NAME, "AAAA"): ["fd00::1"]}
        assert await told(source(server)) == ["[fd00::1]:8000"]


async def test_srv_records_are_followed_to_the_addresses_of_their_hosts() -> None:
    zone = {
        (NAME, "SRV"): ["0 100 8000 a.models.svc.", "0 100 8001 b.models.svc.", "0 100 8002 gone.models.svc."],
        ("a.models.svc.", "A"): ["10.0.0.1"],
        ("b.models.svc.", "AAAA"): ["fd00::2"],
    }
    async with dns_server(DnsServer(zone)) as server:
        assert await told(source(server, None)) == ["10.0.0.1:8000", "[fd00::2]:8001"]


async def test_an_answer_that_is_too_long_for_a_datagram_comes_over_tcp() -> None:
    many = [f"10.0.{place // 250}.{place % 250}" for place in range(400)]
    async with dns_server(DnsServer({(NAME, "A"): many})) as server:
        assert len(await told(source(server))) == 400
        assert server.over_tcp


async def test_a_name_that_is_unknown_twice_has_no_endpoints() -> None:
    async with dns_server(DnsServer()) as server:
        asked = source(server)
        with pytest.raises(SourceFailed, match="has no address in DNS; "):
            await told(asked)
        assert await told(asked) == []


async def test_a_server_that_fails_is_no_empty_answer() -> None:
    async with dns_server(DnsServer(rcode=dns.rcode.SERVFAIL)) as server:
        asked = source(server)
        for _ in range(3):
            with pytest.raises(SourceFailed, match="DNS failed: NoNameservers"):
                await told(asked)


async def test_a_server_that_is_silent_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kinference.fleet.discovery.dns.LIFETIME", 0.05)
    async with dns_server(DnsServer(is_silent=True)) as server:
        with pytest.raises(SourceFailed, match=r"no DNS server answered within 0\.05 s"):
            await told(source(server))


async def test_the_service_follows_a_name_and_serves_on_while_dns_fails() -> None:
    any_port = HostPort("127.0.0.1", 0)
    async with serve_engine(EngineOptions(("m",), host="127.0.2.1")) as engine, dns_server(DnsServer()) as server:
        server.zone = {(NAME, "A"): ["127.0.2.1"]}
        asked = DnsDiscovery(Name(NAME), Count(engine.port), Duration(0.01), HostPort("127.0.0.1", server.port))
        pool = Pool(Name("chat"), discovery=Discovery(dns=asked))
        async with running(Config(listen=Listen(any_port, any_port, any_port), pools=(pool,))) as service:
            await service.settled()
            assert service.unready_reason() is None
            server.rcode = dns.rcode.SERVFAIL
            async with asyncio.timeout(20):
                while b"NoNameservers" not in (told := await discovery_of(service)):
                    pass
            assert b'"endpoints":1' in told
            assert list(service.in_flight()) == [f"127.0.2.1:{engine.port}"]
            server.rcode, server.zone = dns.rcode.NOERROR, {(NAME, "A"): ["127.0.2.1", "127.0.2.2"]}
            async with asyncio.timeout(20):
                while len(service.in_flight()) < 2:  # noqa: ASYNC110 - the service is plain state
                    await asyncio.sleep(0.005)


async def discovery_of(service: Service) -> bytes:
    async with AiohttpUpstream() as upstream:
        origin = f"http://127.0.0.1:{service.ports.admin}"
        answer = await upstream.send(UpstreamRequest("GET", origin, "/api/v1/discovery", ()))
        return b"".join([chunk async for chunk in answer.chunks()])
