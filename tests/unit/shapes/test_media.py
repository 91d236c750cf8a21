import pytest

from kinference.shapes import media
from kinference.shapes.ir import Media
from kinference.shapes.scan import BadBody

PNG, JPEG, GIF, WEBP = (
    "iVBORw0KGgoAAAANSUhEUg==",
    "/9j/4AAQSkZJRgABAQ==",
    "R0lGODlhAQABAAAAACw=",
    "UklGRiQAAABXRUJQVlA4IA==",
)


@pytest.mark.parametrize(
    ("url", "read"),
    [
        ("https://x/y.png", Media(url="https://x/y.png")),
        (f"data:image/png;base64,{PNG}", Media("image/png", PNG)),
        (f"DATA:image/PNG;charset=utf-8;BASE64,{PNG}", Media("image/png", PNG)),
        ("data:;base64,aGk=", Media("text/plain", "aGk=")),
        ("data:text/plain,h%69", Media("text/plain", "aGk=")),
        ("data:text/plain;base64,aG\n k=", Media("text/plain", "aGk=")),
    ],
)
def test_data_urls_as_clients_write_them(url: str, read: Media) -> None:
    assert media.from_url(url, "here") == read


@pytest.mark.parametrize(
    "url", ["ftp://x", "x.png", "", "data:image/png;base64", "data:;base64,a", "data:;base64,é==="]
)
def test_what_is_no_url_is_named_by_its_place(url: str) -> None:
    with pytest.raises(BadBody, match="here"):
        media.from_url(url, "here")


@pytest.mark.parametrize(
    ("data", "mime"), [(PNG, "image/png"), (JPEG, "image/jpeg"), (GIF, "image/gif"), (WEBP, "image/webp")]
)
def test_e7_an_image_has_the_type_of_its_bytes(data: str, mime: str) -> None:
    assert media.image(Media("image/png", data), "here") == Media(mime, data)


@pytest.mark.parametrize(("label", "mime"), [("image/jpg", "image/jpeg"), ("Image/PNG; x=y", "image/png")])
def test_e8_an_image_of_unknown_bytes_has_the_type_of_its_label(label: str, mime: str) -> None:
    assert media.image(Media(label, "AAAA"), "here").mime == mime


@pytest.mark.parametrize("data", ["UklGRg==", "UklGRiQA", "UklGRiQAAABXRQ=="])
def test_e8_an_image_that_ends_within_its_mark_has_the_type_of_its_label(data: str) -> None:
    assert media.image(Media("image/png", data), "here").mime == "image/png"


@pytest.mark.parametrize("mime", ["image/svg+xml", "", "application/pdf"])
def test_e8_what_is_no_image_is_refused(mime: str) -> None:
    with pytest.raises(BadBody, match="here: unsupported image type"):
        media.image(Media(mime, "AAAA"), "here")


def test_an_image_elsewhere_is_not_looked_at() -> None:
    linked = Media(url="https://x")
    assert media.image(linked, "here") is linked
    assert media.to_url(linked) == "https://x"
    assert media.to_url(Media("", "AAAA")) == "data:application/octet-stream;base64,AAAA"


def test_text_in_base64() -> None:
    assert media.decoded_text("aGk=", "here") == "hi"
    for data in ("/w==", "a"):
        with pytest.raises(BadBody, match="here"):
            media.decoded_text(data, "here")


@pytest.mark.parametrize(
    ("url", "mime"),
    [
        ("https://x/a.PNG?size=1", "image/png"),
        ("https://x/a.jpeg", "image/jpeg"),
        ("https://x/a.b/c.pdf#1", "application/pdf"),
        ("https://x/png", ""),
        ("https://x/a.exe", ""),
    ],
)
def test_a_url_tells_its_type_by_its_end(url: str, mime: str) -> None:
    assert media.type_of(url) == mime
