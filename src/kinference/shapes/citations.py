"""The pages that an answer rests on, from every API's form to every other's.

Between them each names one page and the stretch of the answer that rests on it, counted in characters of all its text.
What is cited out of the request's own documents has a form in Messages and Converse alone, and what is cited out of
files that a provider holds has none elsewhere.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice, pairwise
from typing import Any, Final, TypeAlias

from kinference.shapes.ir import Json
from kinference.shapes.seals import MARK
from kinference.structs import Frozen

CITATIONS_MAX: Final = 256
"""Of one answer; more are not carried."""


class Place(Frozen, frozen=True):
    """Where in which of the request's own documents, by Messages' name for what it is counted in."""

    kind: str
    document: int
    start: int
    end: int


class Citation(Frozen, frozen=True):
    """`quote` is what the page says, where it was told. One of the request's own documents has a place, and no page."""

    url: str
    title: str
    start: int
    end: int
    quote: str = ""
    place: Place | None = None


_MESSAGES_PLACES: Final[Mapping[str, tuple[str, str]]] = {
    "char_location": ("start_char_index", "end_char_index"),
    "page_location": ("start_page_number", "end_page_number"),
    "content_block_location": ("start_block_index", "end_block_index"),
}
_CONVERSE_PLACES: Final[Mapping[str, str]] = {
    "documentChar": "char_location",
    "documentPage": "page_location",
    "documentChunk": "content_block_location",
}

Citations: TypeAlias = tuple[Citation, ...]


# --- OpenAI -----------------------------------------------------------------------------------------


def of_openai(annotations: object, before: int = 0) -> Citations:
    """From either of OpenAI's APIs, of a text that so many characters came before."""
    return tuple(islice(_of_openai(annotations, before), CITATIONS_MAX))


def _of_openai(annotations: object, before: int) -> Iterator[Citation]:
    for annotation in _objects(annotations):
        if annotation.get("type") == "url_citation":
            inner = _object(annotation.get("url_citation")) or annotation
            start = before + _place(inner, "start_index")
            if url := _text(inner, "url"):
                yield Citation(url, _text(inner, "title"), start, max(start, before + _place(inner, "end_index")))


def to_chat(citations: Iterable[Citation]) -> list[Json]:
    """As Chat has them."""
    return [{"type": "url_citation", "url_citation": _openais(one, 0)} for one in citations if one.place is None]


def held_in(annotations: object) -> Iterator[str]:
    """The kinds of OpenAI's citations that are out of what it holds itself."""
    for annotation in _objects(annotations):
        if (kind := _text(annotation, "type")) not in ("", "url_citation"):
            yield kind


def to_responses(citation: Citation, before: int) -> Json:
    """As Responses has it, of a text that so many characters came before."""
    return {"type": "url_citation", **_openais(citation, before)}


def _openais(citation: Citation, before: int) -> Json:
    start, end = max(0, citation.start - before), max(0, citation.end - before)
    return {"start_index": start, "end_index": end, "title": citation.title, "url": citation.url}


# --- Claude -----------------------------------------------------------------------------------------


def of_messages(found: object, start: int, end: int) -> Citations:
    """From Messages, where a block of text has its citations beside it."""
    return tuple(islice(_of_messages(found, start, end), CITATIONS_MAX))


def _of_messages(found: object, start: int, end: int) -> Iterator[Citation]:
    for one in _objects(found):
        if url := _text(one, "url", "source"):
            yield Citation(url, _text(one, "title"), start, end, _text(one, "cited_text"))
        elif form := _MESSAGES_PLACES.get(_text(one, "type")):
            first, last = form
            place = Place(_text(one, "type"), _place(one, "document_index"), _place(one, first), _place(one, last))
            yield Citation("", _text(one, "document_title"), start, end, _text(one, "cited_text"), place)


def to_messages(citation: Citation) -> Json:
    """As Messages has it. The index is our mark: only Anthropic's own would mean anything to it."""
    if (place := citation.place) is not None:
        first, last = _MESSAGES_PLACES[place.kind]
        told = {"document_index": place.document, "document_title": citation.title or None, "file_id": None}
        return {"type": place.kind, "cited_text": citation.quote, **told, first: place.start, last: place.end}
    return {
        "type": "web_search_result_location",
        "url": citation.url,
        "title": citation.title or None,
        "cited_text": citation.quote,
        "encrypted_index": MARK,
    }


def of_converse(found: object, start: int, end: int) -> Citations:
    """From Converse, where a stretch of text has its citations beside it."""
    return tuple(islice(_of_converse(found, start, end), CITATIONS_MAX))


def _of_converse(found: object, start: int, end: int) -> Iterator[Citation]:
    for one in _objects(found):
        quote = "".join(_text(part, "text") for part in _objects(one.get("sourceContent")))
        if url := _text(_object(_object(one.get("location")).get("web")), "url"):
            yield Citation(url, _text(one, "title"), start, end, quote)
        for name, kind in _CONVERSE_PLACES.items():
            if found_at := _object(_object(one.get("location")).get(name)):
                at = (_place(found_at, member) for member in ("documentIndex", "start", "end"))
                yield Citation("", _text(one, "title"), start, end, quote, Place(kind, *at))


# --- Gemini -----------------------------------------------------------------------------------------


def of_gemini(candidate: Json, text: str) -> Citations:
    """From Gemini, who counts the bytes of all the text so far."""
    encoded = text.encode("utf-8", "replace")
    return tuple(islice(_of_gemini(candidate, encoded), CITATIONS_MAX))


def _of_gemini(candidate: Json, encoded: bytes) -> Iterator[Citation]:
    grounding, recited = _object(candidate.get("groundingMetadata")), _object(candidate.get("citationMetadata"))
    pages = [_object(chunk.get("web")) for chunk in _objects(grounding.get("groundingChunks"))]
    for support in _objects(grounding.get("groundingSupports")):
        segment, numbers = _object(support.get("segment")), support.get("groundingChunkIndices")
        start, end = (_characters(encoded, _place(segment, name)) for name in ("startIndex", "endIndex"))
        for number in numbers if isinstance(numbers, list) else ():
            page = pages[number] if isinstance(number, int) and 0 <= number < len(pages) else {}
            if url := _text(page, "uri"):
                yield Citation(url, _text(page, "title"), start, end)
    for source in (*_objects(recited.get("citations")), *_objects(recited.get("citationSources"))):
        start, end = (_characters(encoded, _place(source, name)) for name in ("startIndex", "endIndex"))
        if url := _text(source, "uri"):
            yield Citation(url, _text(source, "title"), start, end)


def _characters(encoded: bytes, place: int) -> int:
    return len(encoded[:place].decode(errors="ignore"))


def to_gemini(citations: Iterable[Citation], text: str) -> Json:
    """As Gemini has them: each page once, and the stretches that rest on it."""
    pages: dict[tuple[str, str], int] = {}
    citations = [citation for citation in citations if citation.place is None]
    supports = [
        {
            "segment": _segment(text, citation),
            "groundingChunkIndices": [pages.setdefault((citation.url, citation.title), len(pages))],
        }
        for citation in citations
    ]
    chunks = [{"web": {"uri": url} | ({"title": title} if title else {})} for url, title in pages]
    return {"groundingChunks": chunks, "groundingSupports": supports}


def _segment(text: str, citation: Citation) -> Json:
    before, said = text[: citation.start], text[citation.start : citation.end]
    start = len(before.encode("utf-8", "replace"))
    return {"startIndex": start, "endIndex": start + len(said.encode("utf-8", "replace")), "text": said}


# --- stretches --------------------------------------------------------------------------------------


def stretches(text: str, before: int, citations: Iterable[Citation]) -> Iterator[tuple[str, list[Citation]]]:
    """A text that so many characters came before, cut where what rests on other pages begins or ends."""
    after = before + len(text)
    spans = [(max(one.start, before), min(one.end, after), one) for one in citations]
    spans = [(start, end, one) for start, end, one in spans if start < end]
    cuts = sorted({before, after, *(place for start, end, _ in spans for place in (start, end))})
    for begin, end in pairwise(cuts):
        yield text[begin - before : end - before], [one for start, last, one in spans if start <= begin < last]


# --- narrowing --------------------------------------------------------------------------------------


def _objects(value: object) -> Iterator[Json]:
    return (one for one in (value if isinstance(value, list) else ()) if isinstance(one, dict))


def _object(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def _text(members: Mapping[str, Any], *names: str) -> str:
    values = (members.get(name) for name in names)
    return next((value for value in values if isinstance(value, str) and value), "")


def _place(members: Mapping[str, Any], name: str) -> int:
    value = members.get(name)
    return min(value, 1 << 31) if isinstance(value, int) and value > 0 else 0
