"""Server certificates and their replacement."""

import ssl
from pathlib import Path

import pytest

from kinference.wire.tls import ServerTls, TlsFiles
from tests.unit.wire.certificates import self_signed


def test_callers_need_a_certificate_only_where_authorities_are_named(tmp_path: Path) -> None:
    pair = self_signed(tmp_path, "server")
    assert ServerTls(TlsFiles(pair.certificate, pair.key)).context.verify_mode is ssl.CERT_NONE
    mutual = ServerTls(TlsFiles(pair.certificate, pair.key, client_authorities=pair.certificate))
    assert mutual.context.verify_mode is ssl.CERT_REQUIRED


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        ServerTls(TlsFiles(tmp_path / "a", tmp_path / "b"))


def test_a_key_of_another_certificate_is_refused_and_the_old_pair_stays(tmp_path: Path) -> None:
    pair, other = self_signed(tmp_path, "server"), self_signed(tmp_path, "other")
    tls = ServerTls(TlsFiles(pair.certificate, pair.key))
    pair.key.write_bytes(other.key.read_bytes())
    with pytest.raises(ssl.SSLError):
        tls.reload()
