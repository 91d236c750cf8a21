import argparse
from pathlib import Path

import pytest

from kinference.cli.credentials import add_credentials, file_bytes, tls_context, token_of
from kinference.errors import KinferenceError
from tests.unit.wire.certificates import self_signed


def given(*flags: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_credentials(parser, "picker")
    return parser.parse_args(flags)


def test_without_flags_nothing_is_shown_and_nothing_checked() -> None:
    assert token_of(given()) == ""
    assert tls_context(given()) is None


def test_a_token_is_what_its_file_holds_without_the_line_end(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(" the-token\n")
    assert token_of(given("--token-file", str(tmp_path / "token"))) == "the-token"


@pytest.mark.parametrize("content", ["", "\n", "two\nlines", "n\u00f6"])
def test_what_no_header_may_carry_is_no_token(tmp_path: Path, content: str) -> None:
    (tmp_path / "token").write_text(content)
    with pytest.raises(KinferenceError, match="holds no token") as refusal:
        token_of(given("--token-file", str(tmp_path / "token")))
    assert "two" not in str(refusal.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(KinferenceError, match=r"cannot read .*missing: No such file"):
        file_bytes(tmp_path / "missing")


def test_tls_files_make_a_context_and_bad_ones_are_told(tmp_path: Path) -> None:
    files = self_signed(tmp_path, "caller")
    good = given("--tls-ca", str(files.certificate), "--tls-cert", str(files.certificate), "--tls-key", str(files.key))
    assert tls_context(good) is not None
    with pytest.raises(KinferenceError, match="cannot use the TLS files"):
        tls_context(given("--tls-ca", str(files.key)))
