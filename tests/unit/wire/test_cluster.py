from pathlib import Path

import pytest

from kinference.ports import UpstreamTimeouts
from kinference.wire.cluster import Cluster

ORIGIN = "https://10.0.0.1:443"


def test_the_token_is_read_for_each_request(tmp_path: Path) -> None:
    token = tmp_path / "token"
    cluster = Cluster(ORIGIN, token)
    for text in ("first", "second"):
        token.write_text(f"{text}\n")
        request = cluster.get("/api", UpstreamTimeouts())
        assert (b"authorization", f"Bearer {text}".encode()) in request.headers
    assert (request.method, request.origin, request.target) == ("GET", ORIGIN, "/api")


def test_a_proxy_is_given_no_token() -> None:
    sent = dict(Cluster(ORIGIN, None).get("/api", UpstreamTimeouts()).headers)
    assert b"authorization" not in sent
    assert (sent[b"accept"], sent[b"accept-encoding"]) == (b"application/json", b"identity")


def test_a_token_that_is_missing_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="absent"):
        Cluster(ORIGIN, tmp_path / "absent").get("/api", UpstreamTimeouts())
