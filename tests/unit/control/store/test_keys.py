import stat
from pathlib import Path

import pytest

from kinference.control.errors import StoreFailed
from kinference.control.store.keys import KeySource

OLD, NEW = "ab" * 32, "cd" * 32


def test_the_environments_key_wins_and_makes_no_file(tmp_path: Path) -> None:
    source = KeySource({"KINFERENCE_SECRET_KEY": OLD, "KINFERENCE_SECRET_KEY_FILE": "/nowhere"}, tmp_path / "key")
    assert list(source.load().keys.values()) == [bytes.fromhex(OLD)]
    assert list(tmp_path.iterdir()) == []


def test_the_first_key_encrypts_and_all_of_them_open() -> None:
    ring = KeySource({"KINFERENCE_SECRET_KEY": f"{NEW}, {OLD}\n"}, Path("unused")).load()
    assert ring.keys[ring.current] == bytes.fromhex(NEW)
    assert len(ring.keys) == 2


def test_a_key_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    source = KeySource({}, tmp_path / "state" / "secret.key")
    first = source.load()
    assert source.load().keys == first.keys
    file = tmp_path / "state" / "secret.key"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(file.parent.iterdir()) == [file]


def test_a_named_file_is_never_made(tmp_path: Path) -> None:
    source = KeySource({"KINFERENCE_SECRET_KEY_FILE": str(tmp_path / "mounted")}, tmp_path / "default")
    with pytest.raises(StoreFailed, match="mounted cannot be used: No such file"):
        source.load()
    (tmp_path / "mounted").write_text(OLD)
    assert list(source.load().keys.values()) == [bytes.fromhex(OLD)]


@pytest.mark.parametrize("key", ["hunter2", OLD[:-1], OLD + "0", "zz" * 32, f"{OLD} hunter2", "é" * 64])
def test_a_key_of_another_form_is_refused_and_not_repeated(key: str) -> None:
    with pytest.raises(StoreFailed, match="64 hex digits") as refusal:
        KeySource({"KINFERENCE_SECRET_KEY": key}, Path("unused")).load()
    assert key not in str(refusal.value)


def test_rotation_puts_a_new_key_first_and_forgets_none_until_told(tmp_path: Path) -> None:
    source = KeySource({}, tmp_path / "secret.key")
    rings = [source.load()]
    for _ in range(2):
        source.rotate()
        rings.append(source.load())
    assert list(rings[2].keys)[1:] == [rings[1].current, rings[0].current]
    assert len({ring.current for ring in rings}) == 3
    source.forget()
    assert list(source.load().keys) == [rings[2].current, rings[1].current]
    assert stat.S_IMODE((tmp_path / "secret.key").stat().st_mode) == 0o600


def test_a_key_in_the_environment_is_rotated_by_its_operator() -> None:
    with pytest.raises(StoreFailed, match="in front of the old one in KINFERENCE_SECRET_KEY"):
        KeySource({"KINFERENCE_SECRET_KEY": OLD}, Path("unused")).rotate()


def test_a_folder_that_cannot_be_written_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "key.new").mkdir()
    (tmp_path / "key").write_text(OLD)
    with pytest.raises(StoreFailed, match="cannot be changed"):
        KeySource({"KINFERENCE_SECRET_KEY_FILE": str(tmp_path / "key")}, tmp_path / "unused").rotate()


def test_no_key_is_printed() -> None:
    assert OLD not in repr(KeySource({"KINFERENCE_SECRET_KEY": OLD}, Path("unused")).load())
