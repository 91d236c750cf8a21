import asyncio
import logging
from pathlib import Path

import pytest

from kinference.control.catalogue import Catalogue, Provider
from kinference.control.credentials import Credentials
from kinference.control.errors import Missing, Overtaken, Taken, Unmet
from kinference.control.providers import place_of
from kinference.control.registry import ProviderChange, Registry, redacted
from kinference.control.routes import RouteRequest, Routes
from kinference.control.store.keys import KeySource
from kinference.control.store.sealing import Sealed, Sealer
from kinference.errors import InvalidArgument


async def secret_of(registry: Registry, credentials: Credentials, key: str) -> str:
    return credentials.reveal((await registry.get("p")).credentials[key], place_of("p", key))


def on_disk(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir())


async def test_a_record_is_created_and_read_without_its_secrets(registry: Registry, openai: ProviderChange) -> None:
    created = await registry.create("p", openai, "test")
    assert created == await registry.get("p")
    assert [provider.name for provider in await registry.all()] == ["p"]
    assert redacted(created) == {
        "name": "p",
        "type": "openai",
        "credentials": {"OPENAI_API_KEY": "REDACTED"},
        "config": {"OPENAI_BASE_URL": "https://up.test/v1"},
        "version": 1,
    }


async def test_no_secret_is_on_the_disk_in_the_log_or_in_a_repr(
    registry: Registry, openai: ProviderChange, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        created = await registry.create("p", openai, "test")
    stored = on_disk(tmp_path)
    assert b"openai" in stored
    assert b"sk-test" not in stored
    assert "sk-test" not in repr((created, openai)) + str([vars(record) for record in caplog.records])


async def test_without_a_name_it_gets_one(registry: Registry, openai: ProviderChange) -> None:
    name = (await registry.create("", openai, "test")).name
    assert len(name) == 6
    assert name.isascii()
    assert name.islower()


async def test_a_name_can_be_had_once(registry: Registry, openai: ProviderChange) -> None:
    outcomes = await asyncio.gather(*(registry.create("p", openai, "test") for _ in range(5)), return_exceptions=True)
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Provider", *["Taken"] * 4]
    with pytest.raises(Taken, match="'p' already exists; change it with: kinference provider update"):
        await registry.create("p", openai, "test")


@pytest.mark.parametrize(
    ("name", "change", "problem"),
    [
        ("p", ProviderChange(" "), "type is required"),
        (" ", ProviderChange("openai"), "name is required"),
        ("n" * 254, ProviderChange("openai"), "name must be at most 253"),
        ("a\nb", ProviderChange("openai"), "control characters"),
        ("p", ProviderChange("t" * 65), "at most 64"),
        ("p", ProviderChange("openai", {f"K{n}": "v" for n in range(33)}), "at most 32"),
        ("p", ProviderChange("openai", config={f"K{n}": "v" for n in range(65)}), "at most 32 credentials and 64"),
        ("p", ProviderChange("openai", {"k" * 257: "v"}), "1 to 256 bytes"),
        ("p", ProviderChange("openai", {"": "v"}), "1 to 256 bytes"),
        ("p", ProviderChange("openai", {"K": "v" * 8193}), "longer than 8192"),
        ("p", ProviderChange("openai", {"K": "sk\r\nhost: evil"}), "control characters"),
        ("p", ProviderChange("openai", {"K": "sk-é"}), "no HTTP header may"),
        ("p", ProviderChange("openai", {}, {"K": "literal"}), "must refer to"),
        ("p", ProviderChange("openai", config={"OPENAI_BASE_URL": "https://u:pw@h"}), "URL with a user"),
        ("p", ProviderChange("openai", config={"OPENAI_API_KEY": "sk-1"}), "looks like a secret"),
    ],
)
async def test_what_breaks_a_rule_is_refused(
    registry: Registry, name: str, change: ProviderChange, problem: str
) -> None:
    with pytest.raises(InvalidArgument, match=problem) as refusal:
        await registry.create(name, change, "test")
    assert "pw@" not in str(refusal.value)
    assert await registry.all() == []


async def test_an_update_merges_and_an_empty_value_deletes(
    registry: Registry, credentials: Credentials, openai: ProviderChange
) -> None:
    await registry.create("p", openai, "test")
    change = ProviderChange(" OpenAI ", {"OPENAI_API_KEY": "", "NEW": "sk-new"}, {"REF": "${X}"}, {"OTHER": "1"})
    updated = await registry.update("p", change, "test")
    assert updated.version == 2
    assert set(updated.credentials) == {"NEW", "REF"}
    assert await secret_of(registry, credentials, "NEW") == "sk-new"
    assert updated.config == {"OPENAI_BASE_URL": "https://up.test/v1", "OTHER": "1"}
    assert redacted(updated)["credentials"] == {"NEW": "REDACTED", "REF": "${X}"}
    emptied = await registry.update("p", ProviderChange(config={"OTHER": ""}), "test")
    assert emptied.config == {"OPENAI_BASE_URL": "https://up.test/v1"}


async def test_many_updates_cannot_grow_a_record_over_its_limit(registry: Registry, openai: ProviderChange) -> None:
    await registry.create("p", openai, "test")
    await registry.update("p", ProviderChange(credentials={f"K{n}": "v" for n in range(31)}), "test")
    with pytest.raises(InvalidArgument, match="at most 32"):
        await registry.update("p", ProviderChange(credentials={"ONE_MORE": "v"}), "test")


async def test_a_type_stays_what_it_is(registry: Registry, openai: ProviderChange) -> None:
    await registry.create("p", openai, "test")
    with pytest.raises(InvalidArgument, match="cannot be changed"):
        await registry.update("p", ProviderChange("anthropic"), "test")


async def test_what_is_not_there_is_missing(registry: Registry) -> None:
    with pytest.raises(Missing, match="provider 'p' not found; see: kinference provider list"):
        await registry.get("p")
    with pytest.raises(Missing):
        await registry.update("p", ProviderChange(), "test")
    assert not await registry.delete("p", "test")


async def test_racing_updates_lose_none_silently(registry: Registry, openai: ProviderChange) -> None:
    await registry.create("p", openai, "test")
    changes = [ProviderChange(config={f"K{n}": "1"}) for n in range(8)]
    outcomes = await asyncio.gather(*(registry.update("p", each, "test") for each in changes), return_exceptions=True)
    assert {type(outcome) for outcome in outcomes} <= {Provider, Overtaken}
    done = [outcome for outcome in outcomes if isinstance(outcome, Provider)]
    assert len((await registry.get("p")).config) == 1 + len(done)


async def test_a_provider_in_use_cannot_be_deleted(
    registry: Registry, routes: Routes, openai: ProviderChange, used_elsewhere: list[str]
) -> None:
    await registry.create("p", openai, "test")
    used_elsewhere.append("backend default/b")
    with pytest.raises(Unmet, match="used by backend default/b"):
        await registry.delete("p", "test")
    used_elsewhere.clear()
    await routes.set(RouteRequest("", "p", "m"), "test")
    with pytest.raises(Unmet, match=r"used by route inference\.local"):
        await registry.delete("p", "test")
    await routes.delete("", "test")
    assert await registry.delete("p", "test")


async def test_rewrapping_puts_every_secret_under_the_current_key(
    registry: Registry, catalogue: Catalogue, openai: ProviderChange, environ: dict[str, str], tmp_path: Path
) -> None:
    await registry.create("p", openai, "test")
    rotated = {"KINFERENCE_SECRET_KEY": f"{'cd' * 32},{environ['KINFERENCE_SECRET_KEY']}"}
    fresh = Credentials(Sealer(KeySource(rotated, tmp_path / "unused").load), rotated)
    assert await Registry(catalogue, fresh, lambda _name: ()).rewrap() == 1
    only_new = {"KINFERENCE_SECRET_KEY": "cd" * 32}
    stored = (await registry.get("p")).credentials["OPENAI_API_KEY"]
    assert isinstance(stored, Sealed)
    reader = Credentials(Sealer(KeySource(only_new, tmp_path / "unused").load), only_new)
    assert reader.reveal(stored, place_of("p", "OPENAI_API_KEY")) == "sk-test-secret"
