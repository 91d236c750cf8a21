import pytest

from kinference.control.catalogue import DAMAGED, Catalogue, Provider, Route
from kinference.control.errors import Overtaken, StoreFailed
from kinference.control.store.base import Kind, Row
from kinference.control.store.sealing import Sealed
from kinference.control.store.sqlite import SqliteStore

PROVIDER = Provider("p", "openai", {"KEY": Sealed("id", b"w", b"s"), "OTHER": "${NAME}"}, {"URL": "https://h"})


async def test_records_come_back_as_they_were_written(catalogue: Catalogue) -> None:
    assert await catalogue.write_provider(PROVIDER) == 1
    assert await catalogue.provider("p") == Provider("p", "openai", PROVIDER.credentials, PROVIDER.config, 1)
    assert await catalogue.write_route(Route("r", "p", "m", 2**64 - 1)) == 1
    assert await catalogue.route("r") == Route("r", "p", "m", 2**64 - 1, 1)
    assert [len(await catalogue.providers()), len(await catalogue.routes())] == [1, 1]


async def test_what_is_not_there_is_none(catalogue: Catalogue) -> None:
    assert await catalogue.provider("p") is None
    assert await catalogue.route("r") is None


async def test_a_provider_is_written_over_the_version_that_was_read(catalogue: Catalogue) -> None:
    await catalogue.write_provider(PROVIDER)
    with pytest.raises(Overtaken):
        await catalogue.write_provider(PROVIDER)


async def test_every_write_is_told_to_followers(catalogue: Catalogue) -> None:
    for write in (catalogue.write_provider(PROVIDER), catalogue.delete_provider("p")):
        catalogue.changed.clear()
        await write
        assert catalogue.changed.is_set()


@pytest.mark.parametrize("kind", list(Kind))
async def test_a_row_that_cannot_be_understood_is_told_so(catalogue: Catalogue, store: SqliteStore, kind: Kind) -> None:
    await store.write(Row(kind, "x", b'{"type": 1}'))
    with pytest.raises(StoreFailed, match=rf"stored {kind.value} 'x' cannot be understood"):
        await (catalogue.provider("x") if kind is Kind.PROVIDER else catalogue.route("x"))


async def test_a_row_that_cannot_be_understood_hides_no_other(catalogue: Catalogue, store: SqliteStore) -> None:
    for kind in Kind:
        await store.write(Row(kind, "x", b"\xff"))
    await store.write(Row(Kind.ROUTE, "team-a/no name/x", b'{"model_id": "m", "timeout_secs": 0}'))
    await catalogue.write_provider(PROVIDER)
    assert [(each.name, each.type) for each in await catalogue.providers()] == [("p", "openai"), ("x", DAMAGED)]
    assert [(each.key, each.model_id) for each in await catalogue.routes()] == [("team-a/no name/x", ""), ("x", "")]
