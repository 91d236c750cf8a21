"""Writes the generated reference pages: run it after a change of what they are made from."""  # noqa: INP001 - a script, no package

import json
import sys
from collections.abc import Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # for when this file is run by itself

from docs.cases import cases_page
from kinference.config.json_schema import json_schema
from kinference.config.reference import reference_page
from kinference.observe.reference import metrics_page
from kinference.shapes.matrix import matrix_page

REFERENCE = Path(__file__).parent / "reference"


def pages() -> Mapping[str, str]:
    """Every generated page, by its name under `docs/reference`."""
    return {
        "cases.md": cases_page(),
        "config.schema.json": json.dumps(json_schema(), indent=2) + "\n",
        "configuration.md": reference_page(),
        "metrics.md": metrics_page(),
        "translation.md": matrix_page(),
    }


if __name__ == "__main__":
    for name, text in pages().items():
        (REFERENCE / name).write_text(text, encoding="utf-8")
