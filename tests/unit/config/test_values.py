"""Each kind of value: what is read, what is refused with a fix, and what a secret never shows."""

from collections.abc import Callable

import pytest

from kinference.config import values
from kinference.config.values import HostPort, Secret, Unreadable, Url
from kinference.ids import ObjectRef


@pytest.mark.parametrize(
    ("text", "size"),
    [("0", 0), ("1048576", 2**20), ("64KiB", 2**16), ("32 MiB", 2**25), ("1GiB", 2**30), ("2MB", 2_000_000)],
)
def test_a_size_is_bytes_or_a_number_with_a_unit(text: str, size: int) -> None:
    assert values.parse_size(text) == size


@pytest.mark.parametrize(
    ("text", "seconds"), [("30", 30), ("0.5", 0.5), ("500ms", 0.5), ("30s", 30), ("2m", 120), ("1.5h", 5400)]
)
def test_a_time_is_seconds_or_a_number_with_a_unit(text: str, seconds: float) -> None:
    assert values.parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("size", [0, 1, 1000, 2**10, 3 * 2**20, 2**30 + 2**20, 2**40])
def test_a_spelled_size_reads_back(size: int) -> None:
    assert values.parse_size(values.spell_size(size)) == size


@pytest.mark.parametrize("seconds", [0.0, 0.25, 1.0, 30.0, 90.0, 120.0, 3600.0, 0.000001])
def test_a_spelled_time_reads_back(seconds: float) -> None:
    assert values.parse_duration(values.spell_duration(seconds)) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (values.parse_size, "32mib"),
        (values.parse_size, "-1"),
        (values.parse_size, "1.5MiB"),
        (values.parse_size, "٣"),
        (values.parse_size, "9" * 5000),
        (values.parse_duration, "1:30"),
        (values.parse_duration, "30 seconds"),
        (values.parse_duration, "-1s"),
        (values.parse_count, "-1"),
        (values.parse_count, "1.0"),
        (values.parse_count, "0x10"),
        (values.parse_integer, "9" * 5000),
        (values.parse_number, "nan"),
        (values.parse_number, ".inf"),
        (values.parse_name, ""),
        (values.parse_name, "a/b"),
        (values.parse_name, "a b"),
        (values.parse_ref, "a/b/c"),
        (values.parse_ref, "/a"),
        (values.parse_host_port, "8080"),
        (values.parse_host_port, "::1:8080"),
        (values.parse_host_port, "[zz]:8080"),
        (values.parse_host_port, "[1.2.3.4]:8080"),
        (values.parse_host_port, "127.0.0.1:65536"),
        (values.parse_url, "127.0.0.1:8000"),
        (values.parse_url, "ftp://host"),
        (values.parse_url, "http://"),
        (values.parse_url, "http://user:password@host"),
        (values.parse_url, "http://host:99999"),
        (values.parse_url, "http://host:0"),
        (values.parse_url, "http://host/?a=b"),
        (values.parse_url, "http://host/#a"),
        (values.parse_url, "http://ho st/"),
        (values.parse_url, "http://[::1"),
        (values.parse_path, "v1/chat"),
        (values.parse_path, "//host/v1"),
        (values.parse_path, "https://host/v1"),
        (values.parse_path, "/v1#a"),
        (values.parse_path, "/v1?a b"),
        (values.parse_path, "/v1/../admin"),
        (values.parse_path, "/v1/%2e%2e/admin"),
        (values.parse_store, "control.db"),
        (values.parse_store, "sqlite://control.db"),
        (values.parse_store, "mysql://h/d"),
        (values.parse_store, "postgresql://user:hunter2@h/d"),
        (values.parse_store, "postgresql://h/d?password=hunter2"),
        (values.parse_flag, "yes"),
        (values.parse_flag, "True"),
    ],
)
def test_what_is_no_such_value_is_refused_with_a_fix(parse: Callable[[str], object], text: str) -> None:
    with pytest.raises(Unreadable) as refusal:
        parse(text)
    assert refusal.value.problem
    assert refusal.value.fix


def test_a_password_in_a_url_is_not_repeated() -> None:
    with pytest.raises(Unreadable) as refusal:
        values.parse_url("http://user:hunter2@host")
    assert "hunter2" not in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "url", "address"),
    [
        ("http://Host:8000", Url("http", "host", 8000), "host:8000"),
        ("https://api.example.com/", Url("https", "api.example.com", 443), "api.example.com:443"),
        ("http://10.0.0.1/engines/a/", Url("http", "10.0.0.1", 80, "/engines/a"), "10.0.0.1:80"),
        ("http://[fd00::1]:8000", Url("http", "fd00::1", 8000), "[fd00::1]:8000"),
    ],
)
def test_a_url_is_an_origin_and_a_prefix_without_a_trailing_slash(text: str, url: Url, address: str) -> None:
    assert values.parse_url(text) == url
    assert url.address == address
    assert values.parse_url(str(url)) == url
    assert url.origin == f"{url.scheme}://{address}"


@pytest.mark.parametrize(
    ("text", "host", "is_loopback"),
    [
        ("127.0.0.1:0", "127.0.0.1", True),
        ("localhost:80", "localhost", True),
        ("[::1]:80", "::1", True),
        ("0.0.0.0:80", "0.0.0.0", False),
        ("[::]:80", "::", False),
        ("gateway.local:80", "gateway.local", False),
    ],
)
def test_only_loopback_hosts_are_loopback(text: str, host: str, is_loopback: bool) -> None:
    listener = values.parse_host_port(text)
    assert listener.host == host
    assert listener.is_loopback is is_loopback
    assert str(listener) == text


def test_a_host_port_compares_by_value() -> None:
    assert values.parse_host_port("127.0.0.1:1") == HostPort("127.0.0.1", 1)


def test_a_reference_without_a_namespace_is_in_the_default_one() -> None:
    assert values.parse_ref("llama") == ObjectRef("default", "llama")
    assert values.parse_ref("team/llama") == ObjectRef("team", "llama")


def test_a_flag_is_true_or_false() -> None:
    assert [values.parse_flag(text) for text in ("true", "false")] == [True, False]


def test_numbers_are_read_as_written() -> None:
    assert values.parse_number("-1.5e-3") == pytest.approx(-0.0015)
    assert values.parse_integer("-7") == -7
    assert values.parse_count("0") == 0


def test_a_secret_shows_itself_only_when_asked() -> None:
    secret = Secret("${KEY}", "hunter2")
    assert secret.reveal() == "hunter2"
    for text in (repr(secret), str(secret), f"{secret}", f"{[secret]}"):
        assert "hunter2" not in text
        assert "${KEY}" in text
