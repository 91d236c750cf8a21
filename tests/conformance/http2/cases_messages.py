"""RFC 9113, section 8: which fields make a request, and the lengths it declares. And what gRPC adds."""

from tests.conformance.http2.case import IGNORED, OK, Case, answered, reset
from tests.conformance.http2.frames import (
    AUTHORITY,
    CALL,
    ECHO,
    END_STREAM,
    GRPC,
    MESSAGE,
    METHOD_GET,
    METHOD_POST,
    SCHEME_HTTP,
    call,
    data,
    headers,
    literal,
    method,
    path,
    text,
)

BAD = reset("PROTOCOL_ERROR")
OPEN = headers(1, CALL)
BODY = data(1, MESSAGE)
FINISH = data(1, MESSAGE, END_STREAM)
HEAD = METHOD_POST + SCHEME_HTTP + path(ECHO) + AUTHORITY


def ask(more: bytes) -> bytes:
    """A request that is valid but for the fields that are added."""
    return headers(1, call(ECHO, more), END_STREAM)


def asks(block: bytes) -> bytes:
    return headers(1, block, END_STREAM)


def trailed(block: bytes, flags: int = END_STREAM) -> bytes:
    return OPEN + BODY + headers(1, block, flags)


def declared(*lengths: bytes) -> bytes:
    return headers(1, call(ECHO, b"".join(literal(b"content-length", length) for length in lengths)))


BODIES = (
    Case("9113/8.1", "sends a body", OPEN + FINISH, OK),
    Case("9113/8.1", "sends trailers", trailed(literal(b"a", b"b")), OK),
    Case("9113/8.1", "sends empty trailers", trailed(b""), OK),
    Case("9113/8.1", "sends trailers that do not end the stream", trailed(literal(b"a", b"b"), 0), BAD),
    Case("9113/8.1", "sends a pseudo-header in trailers", trailed(METHOD_POST), BAD),
    Case("9113/8.1", "sends an upper-case name in trailers", trailed(literal(b"A", b"b")), BAD),
    Case("9113/8.1", "sends a field of the connection in trailers", trailed(literal(b"connection", b"close")), BAD),
    Case("9113/8.1.1", "sends as much as it declares", declared(b"10") + FINISH, OK),
    Case(
        "9113/8.1.1",
        "sends as much as it declares, and trailers",
        declared(b"10") + BODY + headers(1, b"", END_STREAM),
        OK,
    ),
    Case("9113/8.1.1", "sends less than it declares", declared(b"11") + FINISH, BAD),
    Case(
        "9113/8.1.1",
        "sends less than it declares, and trailers",
        declared(b"11") + BODY + headers(1, b"", END_STREAM),
        BAD,
    ),
    Case("9113/8.1.1", "sends more than it declares", declared(b"9") + FINISH, BAD),
    Case("9113/8.1.1", "sends more than it declares in two frames", declared(b"15") + BODY + FINISH, BAD),
    Case("9113/8.1.1", "declares a body and sends none", ask(literal(b"content-length", b"1")), BAD),
    Case("9113/8.1.1", "declares no body and sends one", declared(b"0") + FINISH, BAD),
    Case("9113/8.1.1", "declares a length that is no number", declared(b"ten") + FINISH, BAD),
    Case("9113/8.1.1", "declares a negative length", declared(b"-1") + FINISH, BAD),
    Case("9113/8.1.1", "declares a length beyond all numbers", declared(b"9" * 40) + FINISH, BAD),
    Case("9113/8.1.1", "declares two lengths", declared(b"10", b"11") + FINISH, BAD),
    Case("9113/8.1.1", "declares one length twice", declared(b"10", b"10") + FINISH, OK),
)
FIELDS = (
    Case("9113/8.2.1", "sends an upper-case name", ask(literal(b"X-Header", b"1")), BAD),
    Case("9113/8.2.1", "sends a name with a space", ask(literal(b"x header", b"1")), BAD),
    Case("9113/8.2.1", "sends a name with a colon", ask(literal(b"x:header", b"1")), BAD),
    Case("9113/8.2.1", "sends a name with a control byte", ask(literal(b"x\x00header", b"1")), BAD),
    Case("9113/8.2.1", "sends a name beyond ASCII", ask(literal(b"x\xffheader", b"1")), BAD),
    Case("9113/8.2.1", "sends an empty name", ask(literal(b"", b"1")), BAD),
    Case("9113/8.2.1", "sends a value with a zero", ask(literal(b"x", b"a\0b")), BAD),
    Case("9113/8.2.1", "sends a value with a line feed", ask(literal(b"x", b"a\nb")), BAD),
    Case("9113/8.2.1", "sends a value with a carriage return", ask(literal(b"x", b"a\rb")), BAD),
    Case("9113/8.2.1", "sends a value that begins with a space", ask(literal(b"x", b" a")), OK),
    Case("9113/8.2.1", "sends a value that ends with a tab", ask(literal(b"x", b"a\t")), OK),
    Case("9113/8.2.1", "sends an empty value", ask(literal(b"x", b"")), OK),
    Case("9113/8.2.1", "sends a value beyond ASCII", ask(literal(b"x", b"\xc3\xa4")), OK),
    Case("9113/8.2.2", "sends connection", ask(literal(b"connection", b"close")), BAD),
    Case("9113/8.2.2", "sends keep-alive", ask(literal(b"keep-alive", b"5")), BAD),
    Case("9113/8.2.2", "sends proxy-connection", ask(literal(b"proxy-connection", b"close")), BAD),
    Case("9113/8.2.2", "sends transfer-encoding", ask(literal(b"transfer-encoding", b"chunked")), BAD),
    Case("9113/8.2.2", "sends upgrade", ask(literal(b"upgrade", b"h2c")), BAD),
    Case("9113/8.2.2", "sends te with another value", ask(literal(b"te", b"gzip")), BAD),
    Case("9113/8.2.2", "sends te with one more value", ask(literal(b"te", b"trailers, gzip")), BAD),
    Case(
        "9113/8.2.3", "sends a cookie in two fields", ask(literal(b"cookie", b"a=1") + literal(b"cookie", b"b=2")), OK
    ),
)
PSEUDO = (
    Case("9113/8.3", "sends a pseudo-header that nobody knows", asks(literal(b":version", b"2") + CALL), BAD),
    Case("9113/8.3", "sends a response's pseudo-header", asks(literal(b":status", b"200") + CALL), BAD),
    Case(
        "9113/8.3", "sends a pseudo-header behind a field", asks(HEAD[:2] + literal(b"x", b"1") + HEAD[2:] + GRPC), BAD
    ),
    Case("9113/8.3.1", "sends :method twice", asks(METHOD_POST + HEAD + GRPC), BAD),
    Case("9113/8.3.1", "sends :scheme twice", asks(SCHEME_HTTP + HEAD + GRPC), BAD),
    Case("9113/8.3.1", "sends :path twice", asks(path(ECHO) + HEAD + GRPC), BAD),
    Case("9113/8.3.1", "sends :authority twice", asks(AUTHORITY + HEAD + GRPC), BAD),
    Case("9113/8.3.1", "leaves :method out", asks(SCHEME_HTTP + path(ECHO) + AUTHORITY + GRPC), BAD),
    Case("9113/8.3.1", "leaves :scheme out", asks(METHOD_POST + path(ECHO) + AUTHORITY + GRPC), BAD),
    Case("9113/8.3.1", "leaves :path out", asks(METHOD_POST + SCHEME_HTTP + AUTHORITY + GRPC), BAD),
    Case("9113/8.3.1", "leaves :authority out", asks(METHOD_POST + SCHEME_HTTP + path(ECHO) + GRPC), OK),
    Case(
        "9113/8.3.1",
        "sends a Host instead of :authority",
        asks(METHOD_POST + SCHEME_HTTP + path(ECHO) + GRPC + literal(b"host", b"localhost")),
        OK,
    ),
    Case("9113/8.3.1", "sends an empty :path", asks(METHOD_POST + SCHEME_HTTP + path(b"") + AUTHORITY + GRPC), BAD),
    Case(
        "9113/8.3.1",
        "sends a :path that does not begin with a slash",
        asks(METHOD_POST + SCHEME_HTTP + path(ECHO[1:]) + AUTHORITY + GRPC),
        BAD,
    ),
    Case("9113/8.3.1", "sends an empty block", asks(b""), BAD),
    Case(
        "9113/8.5", "connects with a :path", asks(method(b"CONNECT") + SCHEME_HTTP + path(ECHO) + AUTHORITY + GRPC), BAD
    ),
    Case("9113/8.5", "connects without :authority", asks(method(b"CONNECT") + GRPC), BAD),
    Case("9113/8.5", "connects", asks(method(b"CONNECT") + AUTHORITY + GRPC), answered(405, 12)),
)
RPC = (
    Case(
        "grpc",
        "calls a method that nobody serves",
        asks(METHOD_POST + SCHEME_HTTP + path(b"/a.B/C") + AUTHORITY + GRPC),
        answered(grpc=12),
    ),
    Case("grpc", "gets", asks(METHOD_GET + SCHEME_HTTP + path(ECHO) + AUTHORITY + GRPC), answered(405, 12)),
    Case("grpc", "calls with another content type", asks(HEAD + b"\x0f\x10" + text(b"text/plain")), answered(415, 2)),
    Case("grpc", "calls without te", asks(HEAD + b"\x0f\x10" + text(b"application/grpc+proto")), OK),
    Case("grpc", "sends a timeout that is none", ask(literal(b"grpc-timeout", b"soon")), answered(grpc=3)),
    Case("grpc", "sends a compressed message", OPEN + data(1, b"\1\0\0\0\1x", END_STREAM), answered(grpc=12)),
    Case("grpc", "sends a message that is too large", OPEN + data(1, b"\0\7\0\0\0"), answered(grpc=8)),
    Case("grpc", "sends a message that breaks off", OPEN + data(1, MESSAGE[:7], END_STREAM), answered(grpc=3)),
    Case(
        "grpc", "sends a message a byte a frame", OPEN + b"".join(data(1, bytes((byte,))) for byte in MESSAGE), IGNORED
    ),
)
CASES = (*BODIES, *FIELDS, *PSEUDO, *RPC)
