"""Authorities whose file changes."""

from pathlib import Path

import pytest

from kinference.wire.trust import Trust
from tests.unit.wire.certificates import self_signed


def test_a_file_that_stays_is_read_once(tmp_path: Path) -> None:
    trust = Trust(self_signed(tmp_path, "one").certificate)
    assert trust.context is trust.context


def test_a_file_that_changed_is_read_again(tmp_path: Path) -> None:
    one, two = self_signed(tmp_path, "one").certificate, self_signed(tmp_path, "two").certificate
    trust = Trust(one)
    before = trust.context
    one.write_bytes(one.read_bytes() + two.read_bytes())
    assert trust.context is not before
    assert trust.context.cert_store_stats()["x509"] == 2


def test_a_file_that_became_useless_changes_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = self_signed(tmp_path, "one").certificate
    trust = Trust(file)
    before = trust.context
    file.write_text("half of a")
    assert trust.context is before
    file.unlink()
    assert trust.context is before
    assert caplog.text.count("authorities not taken over") == 2


def test_a_file_that_was_never_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        _ = Trust(tmp_path / "none").context


def test_the_system_s_file_is_followed_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    file = self_signed(tmp_path, "one").certificate
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    trust = Trust()
    before = trust.context
    file.write_bytes(file.read_bytes() + self_signed(tmp_path, "two").certificate.read_bytes())
    after = trust.context
    assert after.cert_store_stats()["x509"] > before.cert_store_stats()["x509_ca"]
    file.write_text("half of a")
    assert trust.context is after
    assert "there is none in their file" in caplog.text
