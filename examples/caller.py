"""A complete caller of the picker: sends one request to where it is served best, and survives every status.

It needs `grpcio`, `grpcio-tools` and proto/kinference/v1/picker.proto, and nothing of kinference itself:

    python examples/caller.py --picker 127.0.0.1:50051 request.json
    echo '{"model": "m", "messages": [{"role": "user", "content": "hi"}]}' | python examples/caller.py --stream

docs/how-to/write-a-caller.md explains each step.
"""

# A script, which prints; and messages that are generated at run time have no types.
# ruff: noqa: INP001, T201, ANN401

import argparse
import json
import re
import sys
import time
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import grpc

sys.path.insert(0, str(Path(__file__).parents[1] / "proto/kinference/v1"))
pb, services = grpc.protos_and_services("picker.proto")

CHUNK_BYTES = 256 * 1024  # 1 MiB is the most that a server takes in one chunk
ATTEMPTS = 3
CALL_TIMEOUT = 30
ITL_EDGES_MS = (5, 10, 15, 20, 30, 40, 50, 75, 100, 150, 200, 300, 500, 1000)  # layout 1; the 15th bucket is the rest
STREAMED = re.compile(rb"^data: ?(\{.*)$", re.MULTILINE)


class Refused(Exception):
    """The request ends here: the HTTP status and the message for whoever sent it."""

    def __init__(self, status: int, message: str) -> None:
        self.status, self.message = status, message
        super().__init__(message)


class StartOver(Exception):
    """The picker lost the request before it was dispatched: a fresh push, to whichever instance answers, may help."""


HTTP_STATUS = {
    grpc.StatusCode.INVALID_ARGUMENT: 400,  # the length that the client announced is not the length that came
    grpc.StatusCode.DEADLINE_EXCEEDED: 408,  # the client stopped sending
    grpc.StatusCode.RESOURCE_EXHAUSTED: 413,  # the body, or all bodies together: the message says which
    grpc.StatusCode.UNAUTHENTICATED: 502,  # our own credential is wrong; no client can help it
    grpc.StatusCode.PERMISSION_DENIED: 502,
}
LOST = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.NOT_FOUND)  # draining or gone; expired or another instance


class Caller:
    """One of these for the life of the process: its one connection keeps every request at one instance."""

    def __init__(self, picker: str, backends: dict[str, str], tenant: str, token: str = "") -> None:
        self.channel = grpc.insecure_channel(picker, [("grpc.max_receive_message_length", 2 * 1024 * 1024)])
        self.picker = services.PickerStub(self.channel)
        self.backends, self.tenant = backends, tenant
        self.credential = [("authorization", f"Bearer {token}")] if token else []  # goes with every call

    def send(self, body: bytes, path: str) -> Iterator[bytes]:
        """The answer of whoever was picked, as it comes. Raises Refused."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                picked = self.pick(self.push(body), path)
            except StartOver as error:
                if attempt == ATTEMPTS:
                    raise Refused(503, f"the picker does not answer: {error}") from error
                time.sleep(0.1 * attempt)
            else:
                return self.dispatch(picked, path)
        raise AssertionError("the last attempt returned or raised")

    # --- 1. push -----------------------------------------------------------------------------------

    def push(self, body: bytes) -> int:
        """Stream the body in. A proxy passes chunks on as they arrive; nothing needs to be buffered."""
        chunks = (pb.BodyChunk(chunk=body[at : at + CHUNK_BYTES]) for at in range(0, len(body), CHUNK_BYTES))
        # The declared length is what tells a whole body from one that was cut short: always send it when it is known.
        metadata = [*self.credential, ("kinference-declared-length", str(len(body)))]
        try:
            return int(self.picker.PushBody(chunks, metadata=metadata).stream_id)
        except grpc.RpcError as error:
            raise failure(error) from error

    # --- 2. pick -----------------------------------------------------------------------------------

    def pick(self, stream_id: int, path: str) -> Any:
        """Where it goes. Dispatch at once: the choice counts from now on."""
        request = pb.PickRequest(body_stream_id=stream_id, tenant=self.tenant)
        metadata = [*self.credential, ("kinference-request-path", path)]
        try:
            picked = self.picker.Pick(request, metadata=metadata, timeout=CALL_TIMEOUT)
        except grpc.RpcError as error:
            raise failure(error) from error
        outcome = pb.PickResponse.Outcome.Name(picked.outcome)
        if outcome in ("OK", "DEGRADED"):
            return picked
        if outcome == "BAD_REQUEST":
            raise Refused(400, picked.reason)
        if outcome == "POLICY_REJECTED":
            raise Refused(403 if picked.reason.startswith("policy:") else 429, picked.reason)
        raise Refused(503, picked.reason)

    # --- 3. dispatch, with the body pulled as it is sent ------------------------------------------

    def dispatch(self, picked: Any, path: str) -> Iterator[bytes]:
        """Forward the body and relay the answer, with a report for whatever becomes of it."""
        base, path = self.resolve(picked, path)
        url = urlsplit(base)
        connection = (HTTPSConnection if url.scheme == "https" else HTTPConnection)(url.netloc, timeout=600)
        headers = {"content-type": "application/json", "content-length": str(picked.body_total_bytes)}
        began = time.monotonic()
        try:
            connection.connect()
            connection.request("POST", url.path.rstrip("/") + path, body=self.pull(picked), headers=headers)
            answer = connection.getresponse()
        except grpc.RpcError as error:
            self.abort(picked, "PULL_FAILED", str(error))
            raise Refused(502, "the body could not be read back") from error
        except (OSError, HTTPException) as error:
            self.abort(picked, "NOT_DISPATCHED", str(error))
            raise Refused(502, f"{url.netloc} does not answer: {error}") from error
        if picked.HasField("provider") and answer.status in (401, 403):
            self.abort(picked, "BACKEND_UNAUTHORIZED", f"HTTP {answer.status}")
        return self.relay(picked, answer, began)

    def resolve(self, picked: Any, path: str) -> tuple[str, str]:
        """The base URL and the path. A provider's are ours to know: the picker holds neither URL nor credential."""
        if picked.HasField("local"):
            return f"http://{picked.local.endpoint}", path
        name = picked.provider.backend_ref.name
        if name not in self.backends:
            self.abort(picked, "BACKEND_UNRESOLVED", f"no URL for backend {name}")  # else it would be chosen for ever
            raise Refused(502, f"backend {name} is not known here")
        return self.backends[name], picked.provider.path or path

    def pull(self, picked: Any) -> Iterator[bytes]:
        """The body as the destination wants it, once, and exactly as long as body_total_bytes says."""
        total = 0
        request = pb.PullBodyRequest(response_id=picked.response_id)
        for message in self.picker.PullBody(request, metadata=self.credential):
            total += len(message.chunk)
            yield message.chunk
        if total != picked.body_total_bytes:
            raise HTTPException(f"{total} bytes came where {picked.body_total_bytes} were announced")

    # --- 4. and 5. relay and report -----------------------------------------------------------------

    def relay(self, picked: Any, answer: HTTPResponse, began: float) -> Iterator[bytes]:
        """Each chunk as it comes; the first one and the end are reported."""
        gaps, last, is_whole = [0] * 15, 0.0, False
        model, usage = "", dict[str, Any]()
        try:
            while chunk := answer.read1(65536):
                now = time.monotonic()
                if last:
                    gaps[bisect_left(ITL_EDGES_MS, (now - last) * 1000)] += 1
                else:
                    self.report_first(picked, round((now - began) * 1000), answer.status)
                last = now
                model, usage = read_usage(chunk, model, usage)
                yield chunk
            is_whole = True
        except (OSError, HTTPException) as error:
            raise Refused(502, f"the answer broke off: {error}") from error
        finally:
            if is_whole:
                self.report_final(picked, model, usage, gaps if any(gaps) else [])
            else:  # it broke off, or whoever asked is gone
                self.abort(picked, "REASON_UNSPECIFIED", "the answer was not relayed to its end")

    def report_first(self, picked: Any, ttft_ms: int, status: int) -> None:
        report = pb.ReportFirstTokenRequest(
            response_id=picked.response_id, observed_ttft_ms=ttft_ms, upstream_status=status
        )
        with suppress(grpc.RpcError):  # a lost report never fails a request
            self.picker.ReportFirstToken(report, metadata=self.credential, timeout=CALL_TIMEOUT)

    def report_final(self, picked: Any, model: str, usage: dict[str, Any], gaps: list[int]) -> None:
        report = pb.ReportFinalTokenRequest(
            response_id=picked.response_id,
            model=model,
            prompt_tokens=usage.get("prompt_tokens", 0),
            completion_tokens=usage.get("completion_tokens", 0),
            itl_bucket_counts=gaps,
            itl_bucket_layout=1 if gaps else 0,
        )
        cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens")
        if cached is not None:  # absent means "not reported", 0 means "nothing was cached"
            report.cached_tokens = cached
        with suppress(grpc.RpcError):
            self.picker.ReportFinalToken(report, metadata=self.credential, timeout=CALL_TIMEOUT)

    def abort(self, picked: Any, reason: str, detail: str) -> None:
        request = pb.AbortRequest(
            response_id=picked.response_id, reason=pb.AbortRequest.Reason.Value(reason), detail=detail[:200]
        )
        with suppress(grpc.RpcError):  # the picker finds out by itself in time
            self.picker.Abort(request, metadata=self.credential, timeout=CALL_TIMEOUT)


def failure(error: grpc.RpcError) -> Exception:
    """What a failed PushBody or Pick means for the client. FAILED_PRECONDITION and INTERNAL are faults: 502."""
    code, details = error.code(), error.details() or ""
    if code in LOST:
        return StartOver(details)
    return Refused(HTTP_STATUS.get(code, 502), details)


def read_usage(chunk: bytes, model: str, usage: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The served model and the token counts where this chunk names them; a stream does so in its last event."""
    for text in STREAMED.findall(chunk) or [chunk]:
        with suppress(ValueError):
            found = json.loads(text)
            model, usage = found.get("model") or model, found.get("usage") or usage
    return model, usage


def main() -> int:
    parser = argparse.ArgumentParser(description="Send one request through a picker.")
    parser.add_argument("request", nargs="?", type=argparse.FileType("rb"), default=sys.stdin.buffer, metavar="FILE")
    parser.add_argument("--picker", default="127.0.0.1:50051", metavar="HOST:PORT")
    parser.add_argument("--path", default="/v1/chat/completions", help="the path that the client asked for")
    parser.add_argument("--tenant", default="", help='who asks; "" says that nobody knows')
    parser.add_argument("--backend", action="append", default=[], metavar="NAME=URL", help="where a provider is")
    parser.add_argument("--token-file", type=Path, metavar="FILE", help="holds the token that the picker asks for")
    parser.add_argument("--stream", action="store_true", help="ask for a streamed answer")
    args = parser.parse_args()
    body = args.request.read()
    if args.stream:
        body = json.dumps({**json.loads(body), "stream": True, "stream_options": {"include_usage": True}}).encode()
    token = args.token_file.read_text().strip() if args.token_file else ""
    caller = Caller(args.picker, dict(backend.split("=", 1) for backend in args.backend), args.tenant, token)
    try:
        for chunk in caller.send(body, args.path):
            sys.stdout.buffer.write(chunk)
            sys.stdout.buffer.flush()
    except Refused as refused:
        print(f"HTTP {refused.status}: {refused.message}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
