import asyncio
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from kinference.config.load import load
from kinference.config.schema import Config, Listen
from kinference.config.values import HostPort
from kinference.config.watch import Reloader
from kinference.errors import ConfigError
from kinference.runtime.serve import ServeOptions, serve

ANY = HostPort("127.0.0.1", 0)
FREE = Config(listen=Listen(ANY, ANY, ANY))


class Announced:
    """Keeps the ready line and lets a test wait for it."""

    def __init__(self) -> None:
        self.line = ""
        self.told = asyncio.Event()

    def __call__(self, line: str) -> None:
        self.line = line
        self.told.set()


async def test_it_says_where_it_listens_and_ends_when_asked(tmp_path: Path) -> None:
    announced, ports_file = Announced(), tmp_path / "ports.json"
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        serving = group.create_task(serve(ServeOptions(FREE, announced, ports_file=ports_file)))
        await announced.told.wait()
        assert ports_file.exists()
        assert announced.line.startswith("kinference: ready, picker 127.0.0.1:")
        assert ", gateway http://127.0.0.1:" in announced.line
        assert ":0" not in announced.line
        os.kill(os.getpid(), signal.SIGTERM)
        await serving


async def test_a_hangup_reads_the_file_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "kinference.yaml"
    listen = "listen: {picker: '127.0.0.1:0', gateway: '127.0.0.1:0', admin: '127.0.0.1:0'}\n"
    file.write_text(listen)
    config, announced = load(file), Announced()
    with caplog.at_level("INFO", "kinference.runtime.serve"):
        async with asyncio.timeout(20), asyncio.TaskGroup() as group:
            options = ServeOptions(config, announced, file, Reloader(file, {}, config))
            serving = group.create_task(serve(options))
            await announced.told.wait()
            file.write_text(listen + "routing: {policy: round_robin}\n")
            os.kill(os.getpid(), signal.SIGHUP)
            while "configuration taken over" not in caplog.text:  # noqa: ASYNC110 - a log line raises no event
                await asyncio.sleep(0.01)
            os.kill(os.getpid(), signal.SIGTERM)
            await serving


async def test_a_port_that_cannot_be_had_ends_it_before_it_says_ready() -> None:
    announced = Announced()
    elsewhere = replace(FREE, listen=replace(FREE.listen, gateway=HostPort("192.0.2.1", 0)))
    with pytest.raises(ConfigError, match=r"listen\.gateway"):
        await serve(ServeOptions(elsewhere, announced))
    assert not announced.line
