"""The faults that gateways are known for, each as what must hold instead, and the tests that hold it."""  # noqa: INP001 - beside a script, no package

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).parents[1] / "tests"
_TEST: Final = re.compile(r"^ *(?:async )?def (test_((?:[a-j]\d{1,2}_)+)\w+)", re.MULTILINE)
_HEAD: Final = """\
# Known faults of gateways

What others have shipped, each kind of fault as what must hold instead. The tests of a row carry its number, as in
`test_a1_...`; a row without a test fails the build. This page is generated.
"""

GROUPS: Final[Mapping[str, str]] = {
    "a": "Reading and framing of event streams",
    "b": "Streams for Anthropic's clients",
    "c": "Streams for OpenAI's clients",
    "d": "Responses",
    "e": "Requests",
    "f": "Parameters, limits, structured output",
    "g": "Tokens, usage, budgets",
    "h": "Errors, retries, failover, health",
    "i": "HTTP",
    "j": "Security",
}
CASES: Final[Mapping[str, str]] = {
    "a1": "A character cut between two reads, at whatever byte, reaches the client as it was.",
    "a2": "Lines may end in LF, CRLF or CR, cut anywhere; no event is merged, lost or made up.",
    "a4": "`data:` needs no space after it.",
    "a5": "A comment is never data.",
    "a7": "A chunk of usage without choices is counted, breaks nothing, and goes only to who asked for it.",
    "a8": "A first chunk without choices is no answer yet, and the client's stream still begins as its API says.",
    "a10": "A stream that is cut ends in an error of the client's API, and never as if it were whole.",
    "a11": "Either sign of the end, a finish reason or `[DONE]`, makes a stream whole.",
    "a13": "An error inside a stream has the name by which Anthropic's clients find it.",
    "a14": "Nothing follows the end of a stream, whatever fails afterwards.",
    "a16": "A Responses stream that ends incomplete or failed is no success in another API.",
    "a17": "Each chunk goes out when it comes, and the head asks whoever is in between not to hold it.",
    "a19": "A silent stream is kept alive, between events alone and in the words of the client's API.",
    "a20": "Anthropic's pings reach the client.",
    "a22": "Several events in one read are all taken, and one event in many reads is one.",
    "b1": "An answer that begins with a call has its beginning, and its first block is the call.",
    "b3": "Calls whose fragments interleave become blocks one after another, each with its own arguments.",
    "b4": "Calls without an index, or all under one, are told apart by their ids.",
    "b6": "Arguments are never text.",
    "b7": "Thoughts and text never share a block, however often they take turns.",
    "b9": "An answer of tools alone has no empty text and all of its first arguments; a result's texts are lines.",
    "b10": "The usage at the end has all four counts.",
    "b12": "What Gemini signed is no part of a call's id or arguments.",
    "c1": "Calls are counted by themselves and not by the blocks before them.",
    "c3": "Only a plain stop becomes the end of calling; a cap or a filter stays one.",
    "c4": "A finish reason stands on the last chunk alone.",
    "c6": "An answer of nothing is an error before anything was sent, and never a crash.",
    "c7": "A text of Bedrock's arrives with its end.",
    "c9": "An answer of calls alone has a content of null, and history of that form is read.",
    "d1": "Whatever we write in Responses, whole or streamed, the official client takes by its strictest types.",
    "d3": "Text and calls are told in full at their end, with the ids they began with.",
    "d4": "Text that an upstream tells only in part, only whole or only at the end is not lost.",
    "d6": "The end waits for the usage.",
    "d7": "A choice among some tools, and calls one at a time, survive into Messages.",
    "e1": "What operators say later stays where it was said, so that turn N begins turn N+1.",
    "e2": "A call without a result and a result without a call are mended and told, or strictly refused.",
    "e4": "Empty texts and turns are left out.",
    "e5": "An empty description is left out, and a tool without a name refused.",
    "e7": "An image has the type of its bytes, whatever its label says.",
    "e8": "Types by a wrong name are put right, and those that nobody takes refused by their place.",
    "e10": "Signed thoughts go back to who signed them through clients of any API, and to nobody else.",
    "e11": "Where Gemini's signature is lost, the first call of each step has the documented placeholder.",
    "e13": "A lone surrogate breaks nothing: the same API gets its bytes, another a replacement that is told.",
    "e14": "Numbers in arguments keep every digit.",
    "e16": "Every setting is mapped or told.",
    "e17": "What cannot be translated is refused in clear words, and not offered by the picker.",
    "f1": "Who names no cap is given the model's own, and told.",
    "f2": "A temperature out of range is brought into it and told, or strictly refused before it is sent.",
    "f4": "Constraints that Claude cannot hold an answer to go into the description; a property of such a name stays.",
    "f5": "An answer as a JSON object is asked for in words where there is no other way, and its fence taken off.",
    "f7": "Schemas are rewritten into what each destination takes, and what it cannot hold to is told.",
    "g1": "Tokens written to a cache count once.",
    "g3": "Cached tokens are no fresh input.",
    "g4": "Counts that are running totals are not added up.",
    "g6": "Tokens that nobody counted are estimated, marked as such, and charged.",
    "g7": "A client that leaves early is charged for what it had, and its destination is closed and reported.",
    "g9": "A used-up limit holds on every API, in its own words.",
    "g10": "Of requests at the same instant no more pass than the limit allows.",
    "g12": "Tokens used beyond a limit refuse the next request.",
    "g13": "The usage that we asked for goes to no client that did not.",
    "h1": "A destination's `retry-after` reaches the client where there is no other destination.",
    "h2": "A 429 of one destination is another's request.",
    "h4": "An ejection holds from the very next pick.",
    "h5": "A fault of our account ejects the destination, a fault of the client's does not.",
    "h7": "When all are ejected, ejection is ignored.",
    "h8": "Nothing is sent twice once the client has seen a byte.",
    "h10": "A compressed error is readable.",
    "h11": "A destination that hangs costs no client a second wait.",
    "h13": "A thousand open streams keep nobody from an answer about health.",
    "h14": "A kept connection that died is replaced once, and none is kept as long as engines keep theirs.",
    "h16": "A stream that begins with an error gives its connection back.",
    "h17": "A reload that fails changes nothing, and one that succeeds ends no request under way.",
    "h19": "Our refused credential is not the client's problem: another destination, or a 502, and the picker is told.",
    "i1": "Preflights by `HEAD` are answered, without a key.",
    "i3": "Too large a body is a 413 in the client's words.",
    "i4": "An agent's transcript of 32 MiB fits by default.",
    "i6": "A body and its content coding agree.",
    "i7": "What is compressed and does not say so comes out plain where it is read.",
    "i9": "A destination sees our credential once, and the client's never.",
    "i10": "Framing that two readers may read differently is refused, and the connection with it.",
    "i12": "Base URL and path join with one slash and one version.",
    "i13": "A query arrives as it was encoded.",
    "j1": "Errors name no address and no key.",
    "j2": "A wrong key is repeated to nobody, in no answer and no log.",
    "j4": "An address in a body leads nowhere.",
    "j5": "A model's name never leaves its segment of the path.",
    "j7": "Control characters in the configuration are refused when it is read.",
    "j8": "Our credential is taken out of what a provider says.",
    "j10": "Tenants that are kept apart share no cached prefix at an engine.",
}
"""By the number that the row's tests carry."""


def held_by() -> Mapping[str, list[str]]:
    """The tests that carry a row's number, by row, each as `file::test`."""
    found: dict[str, list[str]] = {}
    for file in sorted(TESTS.rglob("test_*.py")):
        for test, rows in _TEST.findall(file.read_text(encoding="utf-8")):
            for row in rows.rstrip("_").split("_"):
                found.setdefault(row, []).append(f"{file.relative_to(TESTS).as_posix()}::{test}")
    return found


def cases_page() -> str:
    """The page, in Markdown."""
    return "\n".join((_HEAD, *_groups())) + "\n"


def _groups() -> Iterator[str]:
    tests = held_by()
    for letter, title in GROUPS.items():
        yield from (f"## {title}", "", "| Row | What holds | Held by |", "|---|---|---|")
        for row, rule in CASES.items():
            if row.startswith(letter):
                yield f"| {row.upper()} | {rule} | {'<br>'.join(f'`{test}`' for test in tests.get(row, ()))} |"
        yield ""
