from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

import pytest

from kinference.fleet.discovery.dns import DnsQuestion, DnsSource, NoRecord, Resolver, Service, first_hosts, place_of
from kinference.fleet.discovery.place import Place
from kinference.fleet.discovery.source import SourceFailed
from kinference.ids import Address
from tests.unit.fleet.discovery.fakes import Waits

NAME = "engines.models.svc"


@dataclass(frozen=True)
class FakeResolver(Resolver):
    """Answers by name: addresses, or why there are none."""

    known: dict[str, list[str] | Exception] = field(default_factory=dict)
    records: list[Service] = field(default_factory=list)

    async def addresses(self, name: str) -> list[str]:
        found = self.known.get(name, NoRecord(f"{name} has no address"))
        if isinstance(found, Exception):
            raise found
        return found

    async def services(self, name: str) -> list[Service]:
        return self.records


def source(resolver: Resolver, port: int | None = 8000, waits: Waits | None = None) -> DnsSource:
    return DnsSource(DnsQuestion(NAME, port, 10.0), resolver, Random(1), waits or Waits())


async def first(asked: DnsSource) -> Sequence[Place]:
    sets = asked.sets()
    places = await anext(sets)
    await sets.aclose()
    return places


async def test_every_address_of_a_name_is_an_endpoint() -> None:
    told = await first(source(FakeResolver(known={NAME: ["10.0.0.1", "fd00::1"]})))
    assert told == [Place(Address("10.0.0.1:8000")), Place(Address("[fd00::1]:8000"))]


async def test_it_is_asked_again_after_the_interval_and_not_in_step_with_others() -> None:
    waits = Waits()
    asked = source(FakeResolver(known={NAME: ["10.0.0.1"]}), waits=waits)
    sets = asked.sets()
    for _ in range(3):
        await anext(sets)
    await sets.aclose()
    assert len(waits.asked) == 2
    assert all(9.0 <= one <= 11.0 for one in waits.asked)
    assert len(set(waits.asked)) == 2


async def test_srv_records_tell_host_and_port_of_each() -> None:
    records = [Service(0, "a.", 8000), Service(0, "b.", 8001), Service(0, "gone.", 8002), Service(5, "c.", 1)]
    resolver = FakeResolver(known={"a.": ["10.0.0.1"], "b.": ["10.0.0.2"], "c.": ["10.0.0.3"]}, records=records)
    assert [one.address for one in await first(source(resolver, None))] == ["10.0.0.1:8000", "10.0.0.2:8001"]


async def test_an_empty_answer_is_believed_when_it_is_given_again() -> None:
    asked = source(FakeResolver())
    with pytest.raises(SourceFailed, match="has no address; is the name right"):
        await first(asked)
    assert await first(asked) == ()


async def test_hosts_of_srv_records_without_an_address_are_no_endpoints() -> None:
    asked = source(FakeResolver(records=[Service(0, "gone.", 8002)]), None)
    with pytest.raises(SourceFailed, match="no host of the SRV records"):
        await first(asked)


async def test_a_resolver_that_fails_is_no_empty_answer() -> None:
    asked = source(FakeResolver(known={NAME: SourceFailed("no DNS server answered")}))
    for _ in range(3):
        with pytest.raises(SourceFailed, match="no DNS server"):
            await first(asked)


def test_what_srv_has_for_no_such_service_is_left_out() -> None:
    assert first_hosts([Service(0, ".", 0), Service(1, "a.", 8000), Service(2, "b.", 8000)]) == [Service(1, "a.", 8000)]


def test_an_address_of_the_new_family_stands_in_brackets() -> None:
    assert place_of("::1", 80) == Place(Address("[::1]:80"))


@pytest.mark.parametrize(("port", "name"), [(8000, f"DNS {NAME}, port 8000"), (None, f"DNS {NAME}, SRV")])
def test_its_name_tells_what_is_asked(port: int | None, name: str) -> None:
    assert source(FakeResolver(), port).name == name
