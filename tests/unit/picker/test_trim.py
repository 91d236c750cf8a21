from pathlib import Path

from kinference.picker.trim import trim


def resident_mib() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20


def test_what_was_freed_beneath_something_that_lives_goes_back_to_the_system() -> None:
    bodies = [bytes(20_000) for _ in range(5_000)]
    _pinned = bytes(5_000)  # on top of them, so that the allocator cannot shrink by itself
    full = resident_mib()
    bodies.clear()
    trim()
    assert resident_mib() < full - 80


def test_a_library_that_cannot_be_asked_is_left_alone() -> None:
    trim(None)
