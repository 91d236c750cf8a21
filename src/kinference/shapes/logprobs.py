"""Log probabilities of an answer's tokens, from every API's form to every other's.

Between them they are as Chat Completions has them: for each token its text, probability and bytes, and the likeliest
tokens in its place.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Final, TypeAlias

from kinference.shapes.ir import Json

Logprobs: TypeAlias = tuple[Json, ...]
"""One entry a token."""

UNLIKELY: Final = -9999.0
"""What APIs write for a probability that they do not know."""


def of_openai(value: object) -> Logprobs:
    """From either of OpenAI's APIs; what is no entry is passed over."""
    entries = value if isinstance(value, list) else []
    return tuple(_entry(entry, _objects(entry.get("top_logprobs"))) for entry in _objects(entries))


def _entry(entry: Json, tops: Iterable[Json]) -> Json:
    return {**_token(entry.get("token"), entry.get("logprob")), "top_logprobs": [_token(*_pair(top)) for top in tops]}


def _pair(top: Json) -> tuple[object, object]:
    return top.get("token"), top.get("logprob")


def _token(token: object, logprob: object) -> Json:
    text = token if isinstance(token, str) else ""
    is_number = isinstance(logprob, (int, float)) or hasattr(logprob, "as_tuple")
    return {
        "token": text,
        "logprob": logprob if is_number and not isinstance(logprob, bool) else UNLIKELY,
        "bytes": list(text.encode("utf-8", "replace")),
    }


def _objects(value: object) -> Iterator[Json]:
    yield from (one for one in (value if isinstance(value, list) else ()) if isinstance(one, dict))


def of_gemini(result: object) -> Logprobs:
    """From Gemini, who tells the chosen tokens and the likeliest ones side by side."""
    if not isinstance(result, dict):
        return ()
    chosen, tops = list(_objects(result.get("chosenCandidates"))), list(_objects(result.get("topCandidates")))
    found = []
    for at, one in enumerate(chosen):
        candidates = _objects(tops[at].get("candidates")) if at < len(tops) else ()
        likely = ({"token": top.get("token"), "logprob": top.get("logProbability")} for top in candidates)
        found.append(_entry({"token": one.get("token"), "logprob": one.get("logProbability")}, likely))
    return tuple(found)


def to_gemini(entries: Logprobs) -> Json:
    """As Gemini tells it."""
    return {
        "chosenCandidates": [_candidate(entry) for entry in entries],
        "topCandidates": [{"candidates": [_candidate(top) for top in entry["top_logprobs"]]} for entry in entries],
    }


def _candidate(token: Json) -> Json:
    return {"token": token["token"], "logProbability": token["logprob"]}


def to_chat(entries: Logprobs) -> Json | None:
    """As Chat Completions tells it; None where there are none."""
    return {"content": list(entries), "refusal": None} if entries else None


def to_completions(entries: Logprobs, begin: int = 0) -> Json | None:
    """As Completions tells it, whose text has had so many characters before; None where there are none."""
    if not entries:
        return None
    tokens: Sequence[Any] = [entry["token"] for entry in entries]
    return {
        "text_offset": list(accumulate(map(len, tokens[:-1]), initial=begin)),
        "token_logprobs": [entry["logprob"] for entry in entries],
        "tokens": tokens,
        "top_logprobs": [{top["token"]: top["logprob"] for top in entry["top_logprobs"]} for entry in entries],
    }
