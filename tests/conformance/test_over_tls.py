"""The suite over mutual TLS, by its command line: grpcio's channel and the frames of its own alike."""

import asyncio
from pathlib import Path

import pytest

from kinference.cli import main
from kinference.wire.grpc_server import GrpcServer
from kinference.wire.tls import ServerTls, TlsFiles
from tests.conformance.serving import ROOMY, served
from tests.unit.wire.certificates import self_signed

CASES = ("flow.an-answer-is-not-compressed-*", "push.a-half-close-*", "push.a-push-that-has-not-ended-has-no-answer")


async def test_cases_run_over_mutual_tls(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ours, theirs = self_signed(tmp_path, "server"), self_signed(tmp_path, "caller")
    tls = ServerTls(TlsFiles(ours.certificate, ours.key, client_authorities=theirs.certificate))
    async with served(ROOMY, lambda service: GrpcServer("127.0.0.1:0", [service], tls=tls)) as server:
        files = ("--tls-ca", ours.certificate, "--tls-cert", theirs.certificate, "--tls-key", theirs.key)
        only = [flag for name in CASES for flag in ("--only", name)]
        command = ["conformance", "--target", server.target.address, "--model", "llama", *map(str, files), *only]
        assert await asyncio.to_thread(main, command) == 0
    assert "3 cases: 3 passed" in capsys.readouterr().out
