"""Frames as AWS sends them."""

import json
import struct
from binascii import crc32
from collections.abc import Iterable
from typing import Any


def frame(name: str, body: Any, message_type: str = "event") -> bytes:
    kind = ":exception-type" if message_type == "exception" else ":event-type"
    pairs = ((kind, name), (":content-type", "application/json"), (":message-type", message_type))
    return _frame(pairs, json.dumps(body).encode())


def error(code: str, message: str) -> bytes:
    """One that has no payload."""
    return _frame(((":message-type", "error"), (":error-code", code), (":error-message", message)), b"")


def _frame(pairs: Iterable[tuple[str, str]], payload: bytes) -> bytes:
    headers = b"".join(
        bytes([len(key)]) + key.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
        for key, value in pairs
    )
    prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    head = prelude + struct.pack(">I", crc32(prelude)) + headers + payload
    return head + struct.pack(">I", crc32(head))
