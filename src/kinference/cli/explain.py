"""`kinference explain`: where a request would go, and why."""

import argparse
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Column, Table

from kinference.cli.arguments import Verbs
from kinference.config.env import process_environment
from kinference.config.load import load
from kinference.config.problems import InvalidConfig
from kinference.core.decision import Explanation, explained
from kinference.core.recording import Recording, replay
from kinference.core.refusal import Refusal
from kinference.core.refusal_replay import replay_refusal
from kinference.errors import ConfigError
from kinference.ids import Seconds
from kinference.runtime.rehearsal import EndpointState, FleetState, Question, rehearse
from kinference.shapes.detect import api_of_path
from kinference.vocabulary import QosClass

WIDTH_MIN = 120
DESTINATION_WIDTH = 40
"""Up to which the names stay whole where columns are tight."""
EXAMPLE = """\
examples:
  kinference explain --config kinference.yaml --request body.json
  curl -s http://127.0.0.1:9090/api/v1/endpoints > now.json
  kinference explain --config kinference.yaml --request body.json --state now.json --tenant alice
  kinference explain --request body.json --state now.json                                # served with --engine, no file
  curl -s 'http://127.0.0.1:9090/api/v1/recordings?limit=100' > recordings.json     # with routing.record in the file
  kinference explain --recording recordings.json
  curl -s http://127.0.0.1:9090/api/v1/refusals > refusals.json                      # the same of who was refused
  kinference explain --recording refusals.json

What a router has learned and what it believes to be cached is not part of the state: decisions that were made are
explained with it on the admin port, under /api/v1/decisions.
"""


class RecordingsFile(msgspec.Struct, frozen=True):
    """The admin port's answer, of either kind."""

    recordings: tuple[Recording, ...] | None = None
    refusals: tuple[Refusal, ...] | None = None


@dataclass(frozen=True, slots=True)
class Again:
    """A recorded decision that was made again."""

    at: Seconds
    recorded: str
    same: bool
    explanation: Explanation
    told: str

    def fields(self) -> dict[str, object]:
        """What JSON shows of it."""
        return {"at": self.at, "recorded": self.recorded, "same": self.same, **asdict(self.explanation)}


def add(verbs: Verbs) -> None:
    """Declare the verb and its flags."""
    parser = verbs.add_parser(
        "explain",
        help="show where a request would go, and why",
        description="Decides on one request as the router would, sends nothing, and prints what was weighed.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    asked = parser.add_mutually_exclusive_group(required=True)
    asked.add_argument("--request", type=Path, metavar="FILE", help="the request's body, JSON")
    asked.add_argument(
        "--recording", type=Path, metavar="FILE", help="the admin port's recordings or refusals: made again"
    )
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="the router's configuration; without: the endpoints of --state"
    )
    parser.add_argument("--path", default="/v1/chat/completions", metavar="PATH", help="its path (%(default)s)")
    parser.add_argument("--state", type=Path, metavar="FILE", help="the admin port's endpoints; without: all are idle")
    parser.add_argument("--tenant", default="", metavar="NAME")
    parser.add_argument(
        "--class", dest="qos", choices=[one.name for one in QosClass], default=QosClass.INTERACTIVE.name
    )
    parser.add_argument("--json", action="store_true")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit code 0 when a destination was found, 1 when not; or when every recorded decision came out as it was made."""
    if args.recording is not None:
        return _replay(args.recording, as_json=args.json)
    if args.config is None and args.state is None:
        print("kinference explain: --request needs --config or --state", file=sys.stderr)
        return 2
    if api_of_path(args.path) is None:
        print(
            f"kinference explain: --path {args.path} is no API's; write it as clients do: /v1/messages", file=sys.stderr
        )
        return 2
    try:
        config = load(args.config, process_environment())
    except InvalidConfig as error:
        told = error.lines(args.config) if args.config else map(str, error.problems)
        print("\n".join(told), file=sys.stderr)
        return 1
    state = _state(args.state) if args.state else None
    question = Question(_read(args.request), args.path, args.tenant, QosClass[args.qos])
    decision = rehearse(config, state, question).decision
    explanation = decision.explain()
    if args.json:
        shown = {"outcome": decision.outcome.name, "reason": decision.reason, "explanation": asdict(explanation)}
        print(json.dumps(shown, indent=2))
    else:
        _print(explanation, f"{decision.outcome.name}: {decision.reason}")
    return 0 if decision.choice is not None else 1


def _replay(path: Path, *, as_json: bool) -> int:
    """Make each recorded decision again, newest first, and compare the picks."""
    file = _recordings(path)
    again = [*map(_picked_again, file.recordings or ()), *map(_refused_again, file.refusals or ())]
    if as_json:
        print(json.dumps([one.fields() for one in again], indent=2))
    else:
        for number, one in enumerate(again):
            _print(one.explanation, f"decision {number}: {one.told if one.same else f'recorded was {one.recorded}'}")
        print(f"{sum(one.same for one in again)} of {len(again)} decisions come out as they were made")
    return 0 if all(one.same for one in again) else 1


def _picked_again(recording: Recording) -> Again:
    explanation = explained(replay(recording), recording.rejected)
    same = explanation.pick == recording.pick
    return Again(recording.at, recording.pick, same, explanation, "the same pick")


def _refused_again(refusal: Refusal) -> Again:
    decision = replay_refusal(refusal)
    explanation = decision.explain() if decision is not None else Explanation("", (), (), "")
    same = decision is not None and (decision.outcome, decision.reason) == (refusal.outcome, refusal.reason)
    told = f"{refusal.outcome.name}: {refusal.reason}"
    return Again(refusal.at, told, same, explanation, told)


def _recordings(path: Path) -> RecordingsFile:
    wrong = "holds no recordings as the admin port lists them"
    try:
        file = msgspec.json.decode(_read(path), type=RecordingsFile)
    except msgspec.DecodeError as error:
        raise ConfigError(str(path), f"{wrong}: {error}") from None
    if file.recordings is None and file.refusals is None:
        raise ConfigError(str(path), wrong)
    return file


def _print(explanation: Explanation, last: str) -> None:
    console = Console(width=max(WIDTH_MIN, Console().width))
    console.print(_weighed(explanation))
    for one in explanation.rejected:
        console.print(f"not {one.destination}: {one.verdict}", markup=False)
    console.print(last, markup=False)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(str(path), f"cannot be read: {error.strerror}") from None


def _state(path: Path) -> tuple[EndpointState, ...]:
    try:
        return msgspec.json.decode(_read(path), type=FleetState).endpoints
    except msgspec.DecodeError as error:
        raise ConfigError(str(path), f"holds no endpoints as the admin port lists them: {error}") from None


def _weighed(explanation: Explanation) -> Table:
    terms = [name for name, _ in explanation.candidates[0].terms] if explanation.candidates else []
    longest = max((len(one.destination) for one in explanation.candidates), default=0)
    destination = Column(
        "destination", overflow="fold", min_width=min(longest, DESTINATION_WIDTH)
    )  # ends tell them apart
    table = Table("", destination, "cached", *terms, "total ms", box=SIMPLE)
    for one in explanation.candidates:
        mark = "picked" if one.destination == explanation.pick else ""
        mark = "next" if one.destination == explanation.runner_up else mark
        costs = [f"{milliseconds:.1f}" for _, milliseconds in one.terms]
        table.add_row(mark, one.destination, str(one.hit_tokens), *costs, f"{one.total_ms:.1f}")
    return table
