"""The store on a real PostgreSQL server, as two replicas of the control plane share it."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from kinference.control.errors import Overtaken, Referred, StoreFailed
from kinference.control.store.base import Booking, Kind, Row
from kinference.control.store.postgres import PostgresStore
from tests.integration.control.postgres import Server, server

PROVIDER = Row(Kind.PROVIDER, "p", b"{}")
ROUTE = Row(Kind.ROUTE, "r", b"[]", "p")


@pytest.fixture(scope="module")
def running() -> Iterator[Server]:
    with server() as started:
        yield started


@pytest.fixture
async def stores(running: Server) -> AsyncIterator[tuple[PostgresStore, PostgresStore]]:
    pair = PostgresStore(running.address), PostgresStore(running.address)
    await pair[0].load([])
    yield pair
    for store in pair:
        await store.close()


async def test_what_one_replica_writes_the_other_reads(stores: tuple[PostgresStore, PostgresStore]) -> None:
    one, other = stores
    assert await one.read(Kind.PROVIDER, "p") is None
    assert await one.write(PROVIDER) == 1
    assert await other.write(Row(Kind.PROVIDER, "p", b"more")) == 2
    assert await one.read(Kind.PROVIDER, "p") == Row(Kind.PROVIDER, "p", b"more", None, 2)
    assert await other.rows(Kind.PROVIDER) == [Row(Kind.PROVIDER, "p", b"more", None, 2)]


async def test_a_write_over_another_version_than_expected_is_overtaken(
    stores: tuple[PostgresStore, PostgresStore],
) -> None:
    one, other = stores
    assert await one.write(PROVIDER, expected=0) == 1
    for expected in (0, 2):
        with pytest.raises(Overtaken):
            await other.write(PROVIDER, expected)
    assert await other.write(PROVIDER, expected=1) == 2


async def test_racing_replicas_each_get_versions_of_their_own(stores: tuple[PostgresStore, PostgresStore]) -> None:
    versions = await asyncio.gather(*(store.write(PROVIDER) for store in stores * 50))
    assert sorted(versions) == list(range(1, 101))


async def test_one_of_two_racing_creations_wins(stores: tuple[PostgresStore, PostgresStore]) -> None:
    outcomes = await asyncio.gather(*(store.write(PROVIDER, 0) for store in stores), return_exceptions=True)
    assert {type(outcome) for outcome in outcomes} == {int, Overtaken}


async def test_a_provider_in_use_cannot_go_and_one_that_went_cannot_be_used(
    stores: tuple[PostgresStore, PostgresStore],
) -> None:
    one, other = stores
    with pytest.raises(Referred):
        await one.write(ROUTE)
    await one.write(PROVIDER)
    await other.write(ROUTE)
    with pytest.raises(Referred):
        await one.delete(Kind.PROVIDER, "p")
    assert await one.delete(Kind.ROUTE, "r")
    outcomes = await asyncio.gather(one.delete(Kind.PROVIDER, "p"), other.write(ROUTE), return_exceptions=True)
    assert sum(isinstance(outcome, Referred) for outcome in outcomes) == 1


async def test_loading_is_all_or_nothing(stores: tuple[PostgresStore, PostgresStore]) -> None:
    one, _ = stores
    await one.write(PROVIDER)
    with pytest.raises(Referred):
        await one.load([Row(Kind.ROUTE, "r", b"[]", "gone", 1)])
    assert await one.read(Kind.PROVIDER, "p") is not None
    rows = [Row(Kind.ROUTE, "r", b"[]", "q", 7), Row(Kind.PROVIDER, "q", b"{}", None, 3)]
    await one.load(rows)
    assert [*await one.rows(Kind.ROUTE), *await one.rows(Kind.PROVIDER)] == rows


async def test_a_server_that_goes_away_is_told_of_and_found_again(running: Server) -> None:
    store = PostgresStore(running.address)
    await store.write(PROVIDER)
    await asyncio.to_thread(running.stop)
    with pytest.raises(StoreFailed):
        await store.read(Kind.PROVIDER, "p")
    await asyncio.to_thread(running.start)
    assert await store.read(Kind.PROVIDER, "p") is not None
    await store.close()


async def test_a_tenant_with_a_name_that_no_text_holds_keeps_no_other_from_being_booked(
    stores: tuple[PostgresStore, PostgresStore],
) -> None:
    one, other = stores
    await one.spend(Booking("n", 1, "2026-10", {"a\0b": 7, "a": 7}))
    assert await other.spent("2026-10") == {"a": 7}


async def test_what_replicas_spend_at_the_same_time_adds_up(stores: tuple[PostgresStore, PostgresStore]) -> None:
    one, other = stores
    spends = [(store, spent) for store in stores for spent in ({"a": 7, "b": 1}, {"b": 1, "a": 7})] * 10
    bookings = [(store, Booking(f"b{place}", 1, "2026-11", spent)) for place, (store, spent) in enumerate(spends)]
    await asyncio.gather(*(store.spend(booking) for store, booking in bookings * 2))
    await one.spend(Booking("b0", 2, "2026-12", {"a": 1}))
    assert await other.spent("2026-11") == {"a": 280, "b": 40}
