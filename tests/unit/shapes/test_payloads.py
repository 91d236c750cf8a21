"""Payloads told by digests."""

import base64
import json
from collections.abc import Callable
from random import Random

import pytest

from kinference.shapes.payloads import STAND_IN_BYTES, digested

PHOTO = base64.b64encode(Random(1).randbytes(300_000)).decode()
OTHER = base64.b64encode(Random(2).randbytes(300_000)).decode()
URL = "data:image/png;base64,"

Part = Callable[[str], dict[str, object]]
PARTS: list[Part] = [
    lambda photo: {"type": "image_url", "image_url": {"url": URL + photo}},
    lambda photo: {"type": "input_image", "image_url": URL + photo},
    lambda photo: {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": photo}},
    lambda photo: {"inlineData": {"mimeType": "image/png", "data": photo}},
    lambda photo: {"type": "input_audio", "input_audio": {"data": photo, "format": "wav"}},
    lambda photo: {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64," + photo}},
]


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_a_payload_of_any_api_counts_by_its_digest(part: Part, separators: tuple[str, str]) -> None:
    def written(photo: str) -> bytes:
        said = [{"role": "user", "content": [{"type": "text", "text": "and this?"}, part(photo), part(photo)]}]
        return digested(json.dumps(said, separators=separators).encode())

    assert 2 * STAND_IN_BYTES < len(written(PHOTO)) < 2 * STAND_IN_BYTES + 400
    assert written(PHOTO) == written(PHOTO)
    assert written(PHOTO) != written(OTHER)
    assert len(written(PHOTO)) == len(written(OTHER))
    assert b"and this?" in written(PHOTO)


def test_escaped_slashes_are_base64_too() -> None:
    text = json.dumps([{"url": URL + PHOTO}]).replace("/", "\\/").encode()
    assert len(digested(text)) < STAND_IN_BYTES + 100


def test_what_only_speaks_of_payloads_stands_as_it_is() -> None:
    texts: list[object] = [
        {"type": "text", "text": f'look: {{"url": "{URL}{PHOTO}"}}'},
        {"type": "text", "text": URL + PHOTO},
        {"data": "a long text, not base64: " + "word " * 500},
        {"data": 'he said "no" ' + "A" * 500},
        {"url": "https://example.com/" + "a" * 500 + "?q=%20.png"},
        {"data": "c2hvcnQ="},
        {"data": 7},
    ]
    for one in texts:
        text = json.dumps([one, {"data": ""}]).encode()
        assert digested(text) == text


def test_a_text_that_ends_in_the_middle_is_taken_as_it_is() -> None:
    assert digested(b'{"data":"' + b"A" * 1_000) == b'{"data":"' + b"A" * 1_000


def test_a_conversation_goes_on_from_its_stand_ins() -> None:
    first = json.dumps([{"role": "user", "content": [PARTS[0](PHOTO)]}]).encode()[:-1]
    second = json.dumps(
        [{"role": "user", "content": [PARTS[0](PHOTO)]}, {"role": "assistant", "content": "a cat"}]
    ).encode()
    assert digested(second).startswith(digested(first))


def test_a_data_url_is_a_payload_by_its_own_word() -> None:
    lines = "\\n".join(PHOTO[at : at + 76] for at in range(0, 7_600, 76))
    said = json.dumps([{"image_url": {"url": f"{URL}{lines} "}}]).encode()
    assert len(digested(said)) < STAND_IN_BYTES + 100
    bare = json.dumps([{"data": f"{lines} "}]).encode()
    assert digested(bare) == bare
