"""The reference page of translation, written from the tables that translation itself reads."""

from collections.abc import Iterator
from typing import Final

from kinference.shapes.concepts import TARGETS, Concept, Fields, Treatment, treatment
from kinference.shapes.translate import CLIENTS
from kinference.shapes.unshown import PARTS, SHOWN
from kinference.vocabulary import Api

_WORDS: Final = {
    Treatment.KEPT: "kept",
    Treatment.MAPPED: "mapped",
    Treatment.CLAMPED: "clamped",
    Treatment.DROPPED: "dropped",
    Treatment.IGNORED: "ignored",
    Treatment.REFUSED: "refused",
    Treatment.NEEDED: "needed",
}
_HEAD: Final = """\
# Translation

A request in one API can be served by a destination that speaks another, and its answer comes back in the client's own
API, in one piece or streamed. Where both speak the same API nothing is translated: the bytes go through.

| Word | Meaning |
|---|---|
| kept | The same thing under the other API's name. |
| mapped | Something of another form that means the same. |
| clamped | As near as the other API can come; told in `x-kinference-warnings` where it makes a difference. |
| dropped | Left out, and told in `x-kinference-warnings`. |
| ignored | Left out without a word: it is about this one exchange with the API it was written for. |
| refused | Would change the meaning: a destination of that API is not chosen. If no other is left, the answer is 400. |
| needed | A destination that has it is chosen. If none is left, it is dropped and told. |

Needed is also whatever else among the tools only a provider itself runs, such as a file search or a maker of images. It
is refused where the request says that just that tool is to be called.

`translation.loss: strict`, or the header `x-kinference-loss: strict` for one request, turns whatever would be told into
a 400 that names the field; `silent` tells nothing.

## What a request asks for, by the destination's API
"""
_ANSWERS_HEAD: Final = """
## What an answer holds, by the client's API

What is dropped here, and whatever else a destination's own answer holds that is not in this table, is told: of a whole
answer in `x-kinference-warnings`, as `dropped=answer.image`; of a stream, whose head went out before, in a comment line
`: x-kinference-warnings: dropped=answer.image`, which clients pass over, and for Gemini's, whose clients know no
comments, in `finishMessage` beside the reason of the end.
"""
_FIELDS_HEAD: Final = """
## Fields of each client's API

What a field asks for is looked up above; a word of its own holds for every other API.
"""


def matrix_page() -> str:
    """The page, in Markdown."""
    return "\n".join((_HEAD, *_concepts(), _ANSWERS_HEAD, *_answers(), _FIELDS_HEAD, *_clients())) + "\n"


def _concepts() -> Iterator[str]:
    yield "| Asked for | " + " | ".join(f"`{target.value}`" for target in TARGETS) + " |"
    yield "|---|" + "---|" * len(TARGETS)
    for concept in Concept:
        yield f"| {concept.value} | " + " | ".join(_WORDS[treatment(concept, target)] for target in TARGETS) + " |"


def _answers() -> Iterator[str]:
    clients = [api for api in CLIENTS if api is not Api.OPENAI_EMBEDDINGS]
    yield "| Held | " + " | ".join(f"`{client.value}`" for client in clients) + " |"
    yield "|---|" + "---|" * len(clients)
    for name, part in PARTS.items():
        words = (_WORDS[Treatment.KEPT if part in SHOWN[client] else Treatment.DROPPED] for client in clients)
        yield f"| {name} | " + " | ".join(words) + " |"


def _clients() -> Iterator[str]:
    for api, client in CLIENTS.items():
        yield from (f"### `{api.value}`", "", "| Field | Asks for |", "|---|---|")
        yield from _fields(client.fields)
        yield ""


def _fields(fields: Fields) -> Iterator[str]:
    for kind, members in fields.items():
        for name, carried in members.items():
            place = f"{kind}.{name}" if kind else name
            yield f"| `{place}` | {carried.value if isinstance(carried, Concept) else _WORDS[carried]} |"
