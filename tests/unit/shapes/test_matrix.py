from pathlib import Path

from kinference.shapes.concepts import Concept
from kinference.shapes.matrix import matrix_page
from kinference.shapes.translate import CLIENTS

PAGE = Path(__file__).parents[3] / "docs/reference/translation.md"


def test_every_concept_and_every_clients_field_is_on_the_page() -> None:
    page = matrix_page()
    assert all(f"| {concept.value} | " in page for concept in Concept)
    for api, client in CLIENTS.items():
        assert f"### `{api.value}`" in page
        assert all(f"| `{name}` | " in page for name in client.fields[""])


def test_what_is_lost_is_said() -> None:
    page = matrix_page()
    assert "| seed | kept | dropped | dropped | kept | dropped |" in page
    assert "| `n` | several answers |" in page
    assert "| images | kept | kept | dropped | dropped | kept |" in page
    assert "| `previous_response_id` | refused |" in page


def test_the_published_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == matrix_page(), "run: python docs/generate.py"
