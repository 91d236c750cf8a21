import ssl
from datetime import UTC, datetime

from cryptography import x509

from kinference.sandbox.authority import HOST, Authority


def handshake(client: ssl.SSLContext, server: ssl.SSLContext, name: str) -> ssl.SSLObject:
    """Both ends in memory."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    outer = client.wrap_bio(to_client, to_server, server_hostname=name)
    inner = server.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(4):
        for end in (outer, inner):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return outer


def test_programs_that_trust_the_authority_reach_the_one_name() -> None:
    authority = Authority()
    client = ssl.create_default_context(cadata=authority.pem().decode())
    client.set_alpn_protocols(["h2", "http/1.1"])
    ended = handshake(client, authority.server_context(), HOST)
    assert ended.selected_alpn_protocol() == "http/1.1"
    assert ended.version() == "TLSv1.3"


def test_no_other_name_and_no_other_authority_is_believed() -> None:
    authority, stranger = Authority(), Authority()
    for trusted, name in ((authority, "api.openai.com"), (stranger, HOST)):
        client = ssl.create_default_context(cadata=trusted.pem().decode())
        try:
            handshake(client, authority.server_context(), name)
        except ssl.SSLCertVerificationError:
            continue
        raise AssertionError(name)


def test_it_is_an_authority_for_a_year_and_every_process_has_its_own() -> None:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    certificate = x509.load_pem_x509_certificate(Authority(now).pem())
    assert certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert certificate.not_valid_before_utc < now < certificate.not_valid_after_utc
    assert Authority(now).pem() != Authority(now).pem()
