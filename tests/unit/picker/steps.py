"""The steps of a flow, as its caller takes them."""

import json

from kinference.core.pick import Router
from kinference.ids import ResponseId, StreamId
from kinference.picker.desk import Desk
from kinference.ports import FinalTokenReport, PickArguments, PickResult

CHAT = json.dumps({"model": "llama", "messages": [{"role": "user", "content": "hello " * 200}]}).encode()


def push(desk: Desk, body: bytes = CHAT) -> StreamId:
    stream_id = desk.open(None)
    desk.append(stream_id, body)
    desk.finish(stream_id)
    desk.commit(stream_id)
    return stream_id


def pick(desk: Desk, body: bytes = CHAT, tenant: str = "acme", *, remote: bool = False) -> PickResult:
    return ask(desk, PickArguments(push(desk, body), tenant, "req-1"), remote=remote)


def ask(desk: Desk, arguments: PickArguments, *, remote: bool = False) -> PickResult:
    result = desk.pick(arguments, lambda: None, remote=remote)
    assert isinstance(result, PickResult), "an engine could start it at once"
    return result


def pull(desk: Desk, response_id: ResponseId) -> bytes:
    ticket, body = desk.claim(response_id), b""
    while (piece := desk.next_piece(ticket)) is not None:
        body += piece
        desk.piece_sent(ticket)
    desk.end_pull(ticket)
    return body


def in_flight(router: Router) -> int:
    return sum(destination.requests for destination in router.snapshot(0.0))


def final(response_id: ResponseId, counts: tuple[int, ...] = (), layout: int = 0) -> FinalTokenReport:
    return FinalTokenReport(response_id, "llama", 300, 20, None, counts, layout)
