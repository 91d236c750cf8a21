"""Server certificates and their replacement."""

import ssl
from pathlib import Path

import pytest

from kinference.wire.tls import HTTP, ServerTls, TlsFiles
from tests.unit.wire.certificates import Pair, self_signed


def shake_hands(tls: ServerTls, trusted: Pair, own: Pair | None = None) -> ssl.SSLObject:
    """A client's side of a connection, after the server has seen all that it shows."""
    context = ssl.create_default_context(cafile=str(trusted.certificate))
    context.set_alpn_protocols(["h2", "http/1.1"])
    if own is not None:
        context.load_cert_chain(own.certificate, own.key)
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(back, there, server_hostname="127.0.0.1")
    server = tls.context.wrap_bio(there, back, server_side=True)
    for side in (client, server, client, server):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    return client


def test_callers_need_a_certificate_only_where_authorities_are_named(tmp_path: Path) -> None:
    pair = self_signed(tmp_path, "server")
    assert ServerTls(TlsFiles(pair.certificate, pair.key)).context.verify_mode is ssl.CERT_NONE
    mutual = ServerTls(TlsFiles(pair.certificate, pair.key, client_authorities=pair.certificate))
    assert mutual.context.verify_mode is ssl.CERT_REQUIRED


def test_the_protocol_is_the_first_that_both_speak(tmp_path: Path) -> None:
    pair = self_signed(tmp_path, "server")
    files = TlsFiles(pair.certificate, pair.key)
    assert shake_hands(ServerTls(files, HTTP), pair).selected_alpn_protocol() == "h2"
    assert shake_hands(ServerTls(files, ("http/1.1",)), pair).selected_alpn_protocol() == "http/1.1"


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        ServerTls(TlsFiles(tmp_path / "a", tmp_path / "b"))


def test_a_new_certificate_is_shown_once_the_files_are_read_again(tmp_path: Path) -> None:
    old, new = self_signed(tmp_path, "server"), self_signed(tmp_path, "new")
    old_trust = self_signed(tmp_path, "unused")
    old_trust.certificate.write_bytes(old.certificate.read_bytes())
    tls = ServerTls(TlsFiles(old.certificate, old.key))
    old.certificate.write_bytes(new.certificate.read_bytes())
    old.key.write_bytes(new.key.read_bytes())
    shake_hands(tls, old_trust)
    tls.reload()
    shake_hands(tls, new)
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(tls, old_trust)


def test_an_authority_that_was_taken_out_is_trusted_no_more(tmp_path: Path) -> None:
    server, caller, other = (self_signed(tmp_path, name) for name in ("server", "caller", "other"))
    authorities = tmp_path / "authorities.pem"
    authorities.write_bytes(caller.certificate.read_bytes())
    tls = ServerTls(TlsFiles(server.certificate, server.key, authorities))
    shake_hands(tls, server, caller)
    authorities.write_bytes(other.certificate.read_bytes())
    tls.reload()
    shake_hands(tls, server, other)
    with pytest.raises(ssl.SSLError):
        shake_hands(tls, server, caller)


def test_a_key_of_another_certificate_is_refused_and_the_old_pair_stays(tmp_path: Path) -> None:
    pair, other = self_signed(tmp_path, "server"), self_signed(tmp_path, "other")
    tls = ServerTls(TlsFiles(pair.certificate, pair.key))
    pair.key.write_bytes(other.key.read_bytes())
    with pytest.raises(ssl.SSLError):
        tls.reload()
    shake_hands(tls, pair)
