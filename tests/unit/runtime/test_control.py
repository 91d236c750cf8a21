import stat
from pathlib import Path

import pytest

from kinference.config.schema import Config
from kinference.config.schema import Control as ControlSection
from kinference.config.values import StoreUrl
from kinference.control.errors import StoreFailed
from kinference.control.registry import ProviderChange
from kinference.control.routes import RouteRequest
from kinference.errors import ConfigError
from kinference.observe.metrics import Metrics
from kinference.runtime.clock import SystemClock
from kinference.runtime.control import backup, control_plane, restore, rotate_key

CHANGE = ProviderChange("openai", {"OPENAI_API_KEY": "sk-1"})


def files(folder: Path) -> dict[str, int]:
    return {str(file.relative_to(folder)): stat.S_IMODE(file.stat().st_mode) for file in folder.rglob("*")}


async def test_nothing_is_made_before_something_is_stored(tmp_path: Path) -> None:
    async with control_plane(Config(), {"XDG_STATE_HOME": str(tmp_path)}, SystemClock(), Metrics()) as control:
        assert files(tmp_path) == {}
        await control.registry.create("p", CHANGE, "test")
    made = files(tmp_path)
    assert made == {"kinference": 0o700, "kinference/control.db": 0o600, "kinference/secret.key": 0o600}


async def test_a_configured_file_is_opened_at_the_start(tmp_path: Path) -> None:
    config = Config(control=ControlSection(StoreUrl(f"sqlite:///{tmp_path}/deep/control.db")))
    async with control_plane(config, {"HOME": str(tmp_path)}, SystemClock(), Metrics()):
        assert "deep/control.db" in files(tmp_path)


async def test_a_store_that_cannot_be_used_is_named_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    config = Config(control=ControlSection(StoreUrl(f"sqlite:///{tmp_path}/file/control.db")))
    with pytest.raises(ConfigError, match=r"control\.store: the store .* cannot be used"):
        async with control_plane(config, {}, SystemClock(), Metrics()):
            pass


async def test_records_outlive_the_process(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path)}
    async with control_plane(Config(), environ, SystemClock(), Metrics()) as control:
        await control.registry.create("p", CHANGE, "test")
    async with control_plane(Config(), environ, SystemClock(), Metrics()) as control:
        provider = await control.registry.get("p")
        assert (await control.routes.resolved(provider, "m")).api_key == "sk-1"


async def test_a_backup_restores_everything_elsewhere(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path), "KINFERENCE_SECRET_KEY": "ab" * 32}
    async with control_plane(Config(), environ, SystemClock(), Metrics()) as control:
        await control.registry.create("p", CHANGE, "test")
        await control.routes.set(RouteRequest("", "p", "m", no_verify=True), "test")
        before = await control.routes.bundle()
    content = await backup(Config(), environ)
    assert b"sk-1" not in content
    elsewhere = environ | {"XDG_STATE_HOME": str(tmp_path / "other")}
    assert await restore(Config(), elsewhere, content) == 2
    async with control_plane(Config(), elsewhere, SystemClock(), Metrics()) as control:
        assert (await control.routes.bundle()).revision == before.revision


async def test_a_backup_that_does_not_hold_together_is_refused(tmp_path: Path) -> None:
    opening = b'{"format": "kinference-store-1", "rows": 1}\n'
    content = opening + b'{"kind": "route", "name": "r", "body": "", "provider": "gone", "version": 1}\n'
    with pytest.raises(StoreFailed, match="refers to a provider that is not in it"):
        await restore(Config(), {"XDG_STATE_HOME": str(tmp_path)}, content)


async def test_a_running_process_follows_a_rotated_key(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path)}
    async with control_plane(Config(), environ, SystemClock(), Metrics()) as control:
        await control.registry.create("p", CHANGE, "test")
        for key in ("sk-0", "sk-1"):
            assert await rotate_key(Config(), environ) == 1
            await control.registry.update("p", ProviderChange(credentials={"OPENAI_API_KEY": key}), "test")
        assert await rotate_key(Config(), environ) == 1
        provider = await control.registry.get("p")
        assert (await control.routes.resolved(provider, "m")).api_key == "sk-1"


async def test_a_key_in_the_environment_is_rotated_by_putting_a_new_one_in_front(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path), "KINFERENCE_SECRET_KEY": "ab" * 32}
    async with control_plane(Config(), environ, SystemClock(), Metrics()) as control:
        await control.registry.create("p", CHANGE, "test")
    await rotate_key(Config(), environ | {"KINFERENCE_SECRET_KEY": f"{'cd' * 32} {'ab' * 32}"})
    environ["KINFERENCE_SECRET_KEY"] = "cd" * 32
    async with control_plane(Config(), environ, SystemClock(), Metrics()) as control:
        assert (await control.routes.resolved(await control.registry.get("p"), "m")).api_key == "sk-1"
