"""The environment: overrides, references to secrets, and variables that set nothing."""

from pathlib import Path

import pytest

from kinference.config.decode import Decoder
from kinference.config.env import (
    SECRET_BYTES_MAX,
    overrides,
    process_environment,
    secret_reader,
    state_folder,
    unknown_variables,
    variable_of,
)
from kinference.config.keys import settings
from kinference.config.problems import InvalidConfig
from kinference.config.scalars import scalars
from kinference.config.schema import Config, Listen, Tls, Unauthenticated
from kinference.config.values import Unreadable
from kinference.core.policy import UnmatchedTenant

SCALARS = scalars(secret_reader({}))


def overridden(environ: dict[str, str]) -> tuple[Config, list[str]]:
    decoder = Decoder(SCALARS)
    config = Config()
    for change in overrides(environ, SCALARS, decoder):
        config = change(config)
    return config, [str(problem) for problem in decoder.problems]


def test_a_variable_is_named_after_the_path_of_its_key() -> None:
    names = {setting.path: variable_of(setting) for setting in settings(Config, SCALARS)}
    assert names["limits.body_max_bytes"] == "KINFERENCE_LIMITS_BODY_MAX_BYTES"
    assert names["unmatched_tenant"] == "KINFERENCE_UNMATCHED_TENANT"


def test_no_two_keys_share_a_variable() -> None:
    names = [variable_of(setting) for setting in settings(Config, SCALARS)]
    assert len(names) == len(set(names))


def test_variables_override_single_keys() -> None:
    config, problems = overridden(
        {
            "KINFERENCE_LISTEN_PICKER": "[::1]:0",
            "KINFERENCE_LIMITS_BODY_MAX_BYTES": "64MiB",
            "KINFERENCE_LIMITS_BODY_TTL": "90",
            "KINFERENCE_UNMATCHED_TENANT": "reject",
            "KINFERENCE_GATEWAY_UNAUTHENTICATED": "reject",
            "KINFERENCE_ROUTING_SEED": "7",
        }
    )
    assert problems == []
    assert (config.listen.picker.host, config.listen.picker.port) == ("::1", 0)
    assert (config.limits.body_max_bytes, config.limits.body_ttl) == (64 * 2**20, 90.0)
    assert config.unmatched_tenant is UnmatchedTenant.REJECT
    assert config.gateway.unauthenticated is Unauthenticated.REJECT
    assert config.routing.seed == 7
    assert config.limits.chunk_max_bytes == Config().limits.chunk_max_bytes


def test_variables_reach_a_section_within_a_section() -> None:
    config, problems = overridden(
        {
            "KINFERENCE_LISTEN_TLS_CERT": "/tls.crt",
            "KINFERENCE_LISTEN_TLS_KEY": "/tls.key",
            "KINFERENCE_LISTEN_ADMIN": "127.0.0.1:1",
            "KINFERENCE_CONTROL_VERIFY_ALLOW_PRIVATE": "true",
        }
    )
    assert problems == []
    assert config.listen.tls == Tls("/tls.crt", "/tls.key")
    assert config.listen.admin.port == 1
    assert config.control.verify.allow_private is True


def test_a_variable_changes_a_part_of_a_section_that_the_file_has() -> None:
    config = Config(listen=Listen(tls=Tls("a.crt", "a.key")))
    (change,) = overrides({"KINFERENCE_LISTEN_TLS_CLIENT_CA": "/ca.crt"}, SCALARS, Decoder(SCALARS))
    assert change(config).listen.tls == Tls("a.crt", "a.key", "/ca.crt")


def test_variables_that_do_not_suffice_for_a_section_say_what_is_missing() -> None:
    (change,) = overrides({"KINFERENCE_LISTEN_TLS_CERT": "/tls.crt"}, SCALARS, Decoder(SCALARS))
    with pytest.raises(InvalidConfig, match=r"tls: the environment names a part of the section tls and not its key"):
        change(Config())


def test_a_bad_variable_is_told_by_its_name() -> None:
    config, problems = overridden({"KINFERENCE_LIMITS_BODY_TTL": "soon", "KINFERENCE_UNMATCHED_TENANT": "alow"})
    assert config == Config()
    assert len(problems) == 2
    assert problems[0].startswith("KINFERENCE_LIMITS_BODY_TTL: not a time, found 'soon'")
    assert problems[1] == "KINFERENCE_UNMATCHED_TENANT: no such choice: 'alow'; did you mean 'allow'?"


def test_a_variable_that_sets_nothing_is_pointed_out() -> None:
    environ = {"KINFERENCE_LIMIT_BODY_TTL": "1m", "KINFERENCE_XYZ": "", "PATH": "", "KINFERENCE_ROUTING_SEED": "1"}
    assert list(unknown_variables(environ, SCALARS)) == [
        "KINFERENCE_LIMIT_BODY_TTL sets nothing; did you mean KINFERENCE_LIMITS_BODY_TTL?",
        "KINFERENCE_XYZ sets nothing",
    ]


def test_what_kubernetes_sets_for_a_service_of_our_name_is_left_alone() -> None:
    environ = {"KINFERENCE_PORT": "tcp://", "KINFERENCE_SERVICE_HOST": "10.0.0.1", "KINFERENCE_SECRET_A": "x"}
    assert list(unknown_variables(environ, SCALARS)) == []


def test_a_secret_comes_from_a_variable() -> None:
    secret = secret_reader({"KEY": "hunter2"})("${KEY}")
    assert (secret.reveal(), secret.reference) == ("hunter2", "${KEY}")


@pytest.mark.parametrize(
    ("content", "value"), [(b"hunter2\n", "hunter2"), (b"hunter2\r\n", "hunter2"), (b" a b ", " a b ")]
)
def test_a_secret_comes_from_a_file_without_its_last_line_break(tmp_path: Path, content: bytes, value: str) -> None:
    (tmp_path / "key").write_bytes(content)
    assert secret_reader({})(f"file:{tmp_path / 'key'}").reveal() == value


@pytest.mark.parametrize(
    ("reference", "problem"),
    [
        ("hunter2", "may not stand in the file"),
        ("${KEY", "may not stand in the file"),
        ("Bearer ${KEY}", "may not stand in the file"),
        ("${ABSENT}", "ABSENT is not set"),
        ("${EMPTY}", "is empty"),
        ("${SPLIT}", "no HTTP header"),
        ("${FOREIGN}", "no HTTP header"),
        ("file:", "cannot be read"),
        ("file:/nowhere/key", "cannot be read: No such file"),
        ("file:\0", "cannot be read: not a path"),
    ],
)
def test_a_reference_that_leads_to_no_secret_is_refused_without_repeating_it(reference: str, problem: str) -> None:
    environ = {"KEY": "hunter2", "EMPTY": "", "SPLIT": "hunter2\r\nx-admin: 1", "FOREIGN": "hunter2é"}
    with pytest.raises(Unreadable, match=problem) as refusal:
        secret_reader(environ)(reference)
    assert "hunter2" not in str(refusal.value)


@pytest.mark.parametrize(
    ("content", "problem"), [(b"\xff\xfe", "no HTTP header"), (b"x" * (SECRET_BYTES_MAX + 1), "over")]
)
def test_a_file_that_holds_no_secret_is_refused(tmp_path: Path, content: bytes, problem: str) -> None:
    (tmp_path / "key").write_bytes(content)
    with pytest.raises(Unreadable, match=problem):
        secret_reader({})(f"file:{tmp_path / 'key'}")


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({"XDG_STATE_HOME": "/state", "HOME": "/me"}, "/state/kinference"),
        ({"XDG_STATE_HOME": "", "HOME": "/me"}, "/me/.local/state/kinference"),
        ({}, "/var/lib/.local/state/kinference"),
    ],
)
def test_state_is_kept_where_the_users_other_programs_keep_theirs(environ: dict[str, str], folder: str) -> None:
    assert state_folder(environ) == Path(folder)


def test_the_environment_of_the_process_is_a_mapping() -> None:
    assert "PATH" in process_environment()
