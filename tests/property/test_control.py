"""What holds of the control plane and of the sandbox's router for all inputs."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinference.config.schema import Config
from kinference.control.bundle import Bundle, bundled
from kinference.control.errors import StoreFailed
from kinference.control.provider_types import Auth
from kinference.control.providers import Resolved
from kinference.control.registry import ProviderChange, redacted
from kinference.control.store.keys import KeyRing
from kinference.control.store.sealing import Sealed, Sealer
from kinference.control.urls import join_url
from kinference.observe.metrics import Metrics
from kinference.runtime.clock import SystemClock
from kinference.runtime.control import control_plane
from kinference.sandbox.outbound import pinned
from kinference.sandbox.patterns import PATTERNS, pattern_of
from kinference.sandbox.routes import SandboxRoute

RESOLVED = Resolved("https://h", ("a",), "k", "m", "openai", Auth.BEARER)
ROUTE = SandboxRoute("inference.local", "https://h", ("a",), "k", "routes-model", "openai")
KEYS = st.sampled_from("ABCD")
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
ENTRIES = st.dictionaries(KEYS, st.sampled_from(["", "one", "two"]))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(st.tuples(ENTRIES, ENTRIES), max_size=6))
@settings(max_examples=25)
def test_updates_merge_as_dictionaries_do(changes: list[tuple[Mapping[str, str], Mapping[str, str]]]) -> None:
    async def applied() -> Mapping[str, object]:
        with TemporaryDirectory() as folder:
            environ = {"XDG_STATE_HOME": folder, "KINFERENCE_SECRET_KEY": "ab" * 32}
            async with control_plane(Config(), environ, SystemClock(), Metrics()) as control:
                await control.registry.create("p", ProviderChange("openai"), "test")
                for credentials, config in changes:
                    await control.registry.update("p", ProviderChange("", credentials, {}, config), "test")
                return redacted(await control.registry.get("p"))

    model: tuple[dict[str, str], dict[str, str]] = ({}, {})
    for change in changes:
        for entries, merged in zip(change, model, strict=True):
            merged.update(entries)
    credentials, config = ({key: value for key, value in each.items() if value} for each in model)
    stored = asyncio.run(applied())
    assert stored["credentials"] == dict.fromkeys(credentials, "REDACTED")
    assert stored["config"] == config
    assert stored["version"] == 1 + len(changes)


@given(TEXT, TEXT, st.binary(min_size=32, max_size=32))
def test_a_sealed_secret_opens_in_its_place_only(secret: str, place: str, key: bytes) -> None:
    sealer = Sealer(lambda: KeyRing({"k": key}))
    sealed = sealer.seal(secret, place)
    assert sealer.open(sealed, place) == secret
    with pytest.raises(StoreFailed):
        sealer.open(sealed, place + "x")


@given(st.integers(0, 200), st.integers(1, 255))
def test_no_changed_byte_goes_unnoticed(at: int, mask: int) -> None:
    sealer = Sealer(lambda: KeyRing({"k": b"k" * 32}))
    sealed = sealer.seal("a secret", "here")
    for part in ("wrapped_key", "secret"):
        content = bytearray(getattr(sealed, part))
        content[at % len(content)] ^= mask
        changed = Sealed(
            sealed.key_id,
            *(bytes(content) if name == part else getattr(sealed, name) for name in ("wrapped_key", "secret")),
        )
        with pytest.raises(StoreFailed):
            sealer.open(changed, "here")


@given(st.lists(st.sampled_from(["v1", "openai", "api", "a"]), max_size=4), st.sampled_from(["", "/", "//"]))
def test_a_joined_url_ends_in_the_call_and_names_no_version_twice_in_a_row(parts: list[str], slashes: str) -> None:
    joined = join_url("https://host/" + "/".join(parts) + slashes, "/v1/chat/completions")
    assert joined.endswith("/chat/completions")
    if parts[-1:] == ["v1"]:
        assert not joined.endswith("/v1/v1/chat/completions") or parts[-2:] == ["v1", "v1"]
    assert "//" not in joined.removeprefix("https://")


@given(st.lists(st.tuples(st.text(max_size=4), st.text(max_size=4), st.integers(0, 3)), max_size=3), st.data())
def test_equal_bundles_have_equal_revisions_and_others_do_not(
    described: list[tuple[str, str, int]], data: st.DataObject
) -> None:
    def bundle(parts: list[tuple[str, str, int]]) -> Bundle:
        return Bundle(tuple(bundled(name, replace(RESOLVED, api_key=key), timeout) for name, key, timeout in parts))

    other = data.draw(st.permutations(described))
    assert (bundle(described).revision == bundle(other).revision) == (described == other)


@given(st.dictionaries(st.text(max_size=6), JSON, max_size=5), st.sampled_from([None, 2]))
def test_pinning_changes_the_model_and_nothing_else(asked: dict[str, object], indent: int | None) -> None:
    left = json.loads(pinned(json.dumps(asked, indent=indent).encode(), ROUTE))
    assert left == {**asked, "model": "routes-model"}


@given(st.binary(max_size=60))
def test_what_is_no_object_is_not_touched(body: bytes) -> None:
    try:
        is_object = isinstance(json.loads(body), dict)
    except (ValueError, RecursionError):
        is_object = False
    if not is_object:
        assert pinned(body, ROUTE) == body


@given(st.sampled_from(["GET", "POST", "PUT", "get"]), st.text(max_size=30).map(lambda text: "/" + text))
def test_no_path_that_leads_astray_is_taken_for_inference(method: str, path: str) -> None:
    found = pattern_of(method, path)
    assert found is None or (found in PATTERNS and ".." not in path.split("/"))
