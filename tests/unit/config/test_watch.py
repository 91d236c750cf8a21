"""Reload: a good file is taken over, a bad one is told and left, and a change is noticed however it is made."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

import pytest

from kinference.config.load import load
from kinference.config.watch import Reloader, secret_files, watch_file


def reloader(path: Path) -> Reloader:
    path.write_text("routing: {seed: 1}")
    return Reloader(path, {}, load(path))


def test_a_good_file_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "kinference.yaml"
    source = reloader(path)
    path.write_text("routing: {seed: 2}")
    fresh = source.reload()
    assert fresh is not None
    assert fresh.routing.seed == 2
    assert source.current is fresh


def test_h17_a_bad_file_keeps_the_old_configuration_and_tells_every_problem(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "kinference.yaml"
    source = reloader(path)
    path.write_text("routing: {sed: 2}\nfoo: 1\n")
    assert source.reload() is None
    assert source.current.routing.seed == 1
    errors = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert len(errors) == 2
    assert "line 1: routing.sed: no such key; did you mean 'seed'?" in errors[0]


def test_h17_a_file_that_vanished_keeps_the_old_configuration(tmp_path: Path) -> None:
    source = reloader(tmp_path / "kinference.yaml")
    (tmp_path / "kinference.yaml").unlink()
    assert source.reload() is None
    assert source.current.routing.seed == 1


def test_nothing_new_is_no_reload(tmp_path: Path) -> None:
    source = reloader(tmp_path / "kinference.yaml")
    (tmp_path / "kinference.yaml").write_text("# a comment\nrouting: {seed: 1}")
    assert source.reload() is None


def test_advice_on_the_new_file_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "kinference.yaml"
    path.write_text("{}")
    source = Reloader(path, {"KINFERENCE_FOO": ""}, load(path))
    source.reload()
    assert "configuration: KINFERENCE_FOO sets nothing" in caplog.messages


async def started(changes: AsyncGenerator[None]) -> "asyncio.Future[None]":
    """The next change, with the first look at the file already taken."""
    future = asyncio.ensure_future(anext(changes))
    for _ in range(50):
        await asyncio.sleep(0.001)
    return future


async def test_a_rewritten_file_is_a_change(tmp_path: Path) -> None:
    path = tmp_path / "kinference.yaml"
    path.write_text("a")
    async with aclosing(watch_file(path, 0.001)) as changes:
        change = await started(changes)
        assert not change.done()
        path.write_text("b")
        await asyncio.wait_for(change, 10)


async def test_a_swapped_symbolic_link_is_a_change(tmp_path: Path) -> None:
    for name, text in (("one", "a"), ("two", "b")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "kinference.yaml").write_text(text)
    (tmp_path / "data").symlink_to("one")
    (tmp_path / "kinference.yaml").symlink_to("data/kinference.yaml")
    async with aclosing(watch_file(tmp_path / "kinference.yaml", 0.001)) as changes:
        change = await started(changes)
        (tmp_path / "fresh").symlink_to("two")
        (tmp_path / "fresh").replace(tmp_path / "data")
        await asyncio.wait_for(change, 10)


async def test_a_file_that_is_still_being_written_has_not_changed_yet(tmp_path: Path) -> None:
    path = tmp_path / "kinference.yaml"
    path.write_text("a")
    looks = iter([b"a", b"", b"b", b"b", b"b"])  # as truncated, and written in two steps, between the looks
    taken: list[bytes] = []

    def look(_path: Path) -> bytes:
        taken.append(next(looks))
        return taken[-1]

    async with aclosing(watch_file(path, 0.0, look)) as changes:
        await anext(changes)
    assert taken == [b"a", b"", b"b", b"b"]


async def test_a_file_that_is_away_for_a_moment_has_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "kinference.yaml"
    path.write_text("a")
    async with aclosing(watch_file(path, 0.001)) as changes:
        change = await started(changes)
        path.unlink()
        for _ in range(20):
            await asyncio.sleep(0.001)
        path.write_text("a")
        for _ in range(20):
            await asyncio.sleep(0.001)
        assert not change.done()
        path.write_text("b")
        await asyncio.wait_for(change, 10)


TOKENS = """
access: {tokens: [{name: a, role: picker, token: 'file:FOLDER/a'}, {name: b, role: admin, token: '${B}'}]}
gateway: {keys: [{key: 'file:FOLDER/key', tenant: acme}]}
backends: [{name: up, api: openai_chat, base_url: 'https://up', api_key: 'file:FOLDER/sk', models: {m: m}}]
"""


def test_a_change_of_a_file_that_holds_a_secret_is_a_change(tmp_path: Path) -> None:
    held = [tmp_path / name for name in ("a", "key", "sk")]
    for file in held:
        file.write_text("first-" + file.name)
    path = tmp_path / "kinference.yaml"
    path.write_text(TOKENS.replace("FOLDER", str(tmp_path)))
    environ = {"B": "of the environment"}
    source = Reloader(path, environ, load(path, environ))
    assert set(secret_files(source.current)) == set(held)
    for file in held:
        before = source.fingerprint(path)
        file.write_text("next-" + file.name)
        assert source.fingerprint(path) != before
    fresh = source.reload()
    assert fresh is not None
    assert [each.token.reveal() for each in fresh.access.tokens] == ["next-a", "of the environment"]
    path.write_text(path.read_text().replace("/key'", "/other-key'"))
    (tmp_path / "other-key").write_text("another")
    assert source.reload() is not None
    before = source.fingerprint(path)
    (tmp_path / "key").write_text("of nobody now")
    assert source.fingerprint(path) == before
    (tmp_path / "other-key").write_text("yet another")
    assert source.fingerprint(path) != before
    held[0].unlink()
    assert source.fingerprint(path) is None


async def test_a_change_between_the_load_and_the_first_look_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "kinference.yaml"
    source = reloader(path)
    path.write_text("routing: {seed: 2}")
    async with asyncio.timeout(20), aclosing(watch_file(path, 0.01, source.fingerprint, source.loaded)) as changes:
        await anext(changes)
