"""The certificates that a configuration names."""

import asyncio
import logging
import ssl
from pathlib import Path

import pytest

from kinference.config.schema import Config, Listen, Tls
from kinference.errors import ConfigError
from kinference.runtime.certificates import Certificates, certificates
from kinference.runtime.wires import Wire
from tests.unit.wire.certificates import self_signed


def named(folder: Path) -> Tls:
    pair = self_signed(folder, "server")
    return Tls(str(pair.certificate), str(pair.key))


def test_none_are_needed() -> None:
    assert certificates(Config(), Wire.OWN) is None
    assert certificates(Config(), Wire.GRPCIO) is None


def test_callers_need_one_where_their_authorities_are_named(tmp_path: Path) -> None:
    tls = named(tmp_path)
    mutual = Config(listen=Listen(tls=Tls(tls.cert, tls.key, client_ca=tls.cert)))
    for config, mode in ((Config(listen=Listen(tls=tls)), ssl.CERT_NONE), (mutual, ssl.CERT_REQUIRED)):
        made = certificates(config, Wire.OWN)
        assert made is not None
        assert [each.context.verify_mode for each in (made.http, made.grpc)] == [mode, mode]


def test_the_wire_of_the_libraries_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"listen\.tls: .* --wire own"):
        certificates(Config(listen=Listen(tls=named(tmp_path))), Wire.GRPCIO)


@pytest.mark.parametrize("broken", ["absent", "empty"])
def test_files_that_are_no_use_are_named(tmp_path: Path, broken: str) -> None:
    tls = named(tmp_path)
    if broken == "absent":
        Path(tls.cert).unlink()
    else:
        Path(tls.cert).write_bytes(b"")
    with pytest.raises(ConfigError, match=r"listen\.tls: the files are no use"):
        certificates(Config(listen=Listen(tls=tls)), Wire.OWN)


def put(path: str, content: bytes) -> None:
    Path(path).write_bytes(content)


async def test_files_that_change_are_taken_over_and_bad_ones_are_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tls, fresh = named(tmp_path), self_signed(tmp_path, "fresh")
    watched = Certificates(tls, poll_seconds=0.02)
    running = asyncio.ensure_future(watched.run())
    good_key = fresh.key.read_bytes()
    with caplog.at_level(logging.INFO):
        attempt = 0
        while "the old ones stay" not in caplog.text:
            attempt += 1  # the first may come before the files have been seen as they were
            put(tls.key, b"no key %d" % attempt)
            await asyncio.sleep(0.1)
        put(tls.key, good_key)
        put(tls.cert, fresh.certificate.read_bytes())
        while "certificates taken over" not in caplog.text:  # noqa: ASYNC110 - a log signals nothing
            await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert caplog.text.count("certificates taken over") == 1
