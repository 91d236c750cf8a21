"""How single fields are judged."""

import pytest

from kinference.wire.http2.fields import Role, field, renewed


@pytest.mark.parametrize(
    ("name", "value", "role"),
    [
        (b"te", b"trailers", Role.REGULAR),
        (b"x-any", b"a b\tc", Role.REGULAR),
        (b"x-empty", b"", Role.REGULAR),
        (b"x-high", b"\xff\x80", Role.REGULAR),
        (b":path", b"/", Role.PATH),
        (b"content-length", b"17", Role.LENGTH),
        (b"content-length", b"1x", Role.FLAWED),
        (b"content-length", b"-1", Role.FLAWED),
        (b"content-length", b"1" * 20, Role.FLAWED),
        (b"te", b"gzip", Role.FLAWED),
        (b"connection", b"close", Role.FLAWED),
        (b"transfer-encoding", b"chunked", Role.FLAWED),
        (b":status", b"200", Role.FLAWED),
        (b":unknown", b"x", Role.FLAWED),
        (b"X-Upper", b"x", Role.FLAWED),
        (b"with space", b"x", Role.FLAWED),
        (b"", b"x", Role.FLAWED),
        (b"x", b"a\r\nb", Role.FLAWED),
        (b"x", b"a\0", Role.FLAWED),
        (b"x", b" a", Role.REGULAR),
        (b"x", b"a\t", Role.REGULAR),
        (b":path", b" /", Role.FLAWED),
        (b"content-length", b" 17", Role.FLAWED),
        (b":path", b"/\n", Role.FLAWED),
    ],
)
def test_a_field_has_its_role(name: bytes, value: bytes, role: Role) -> None:
    assert field(name, value)[2] is role
    for known in (field(name, b"other"), field(name, value), field(name, b"trailers")):
        assert renewed(known, value) == field(name, value)


def test_a_field_counts_its_bytes_and_some_more() -> None:
    assert field(b"ab", b"cde")[3] == 37
