"""The clauses of the Picker contract, numbered, in our own words."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType


class Strength(Enum):
    """Who is bound."""

    MUST = "MUST"
    """The contract binds the server."""
    MAY = "MAY"
    """The contract lets callers do it, so the server must tolerate it."""
    OPEN = "OPEN"
    """The contract leaves it open; this is how kinference reads it."""


@dataclass(frozen=True, slots=True)
class Clause:
    """One promise of a server."""

    number: str
    strength: Strength
    text: str


_MUST, _MAY, _OPEN = Strength.MUST, Strength.MAY, Strength.OPEN

_CLAUSES = (
    Clause("P1", _MUST, "A clean half-close completes a body; its answer carries a stream_id and the bytes received."),
    Clause("P2", _OPEN, "A push of no bytes is complete too; a Pick of it answers BAD_REQUEST."),
    Clause("P3", _MUST, "A chunk of exactly the chunk limit (1 MiB) is accepted."),
    Clause("P4", _MUST, "A chunk of one byte more fails its push with RESOURCE_EXHAUSTED, whatever the body's size."),
    Clause("P5", _MUST, "A message that is no BodyChunk fails its push with INVALID_ARGUMENT."),
    Clause("P6", _MUST, "Unknown fields are skipped, and of a field given twice the last counts, as proto3 says."),
    Clause("P7", _MUST, "A push that has not half-closed has no id, so that nothing is picked on a partial body."),
    Clause("P8", _MUST, "Half a message before the half-close never counts as a whole body of the declared length."),
    Clause("P9", _MUST, "A push idle for longer than the inter-chunk budget ends with DEADLINE_EXCEEDED."),
    Clause("P10", _MAY, "A push may take arbitrarily long, as long as chunks keep coming."),
    Clause("P11", _MUST, "Chunk boundaries carry no meaning: a body in chunks of one byte is a body."),
    Clause("P12", _MUST, "A reset push gets no id and is discarded; other pushes do not notice."),
    Clause("P13", _MAY, "Thousands of pushes may be opened at once on one connection."),
    Clause("P14", _MAY, "kinference-client-request-id and metadata that nobody knows change nothing."),
    Clause("P15", _MUST, "PushBodyResponse carries its two fields."),
    Clause("D1", _MUST, "A push of exactly its declared length passes."),
    Clause("D2", _MUST, "Fewer bytes than declared fail the push with INVALID_ARGUMENT."),
    Clause("D3", _MUST, "More bytes than declared fail the push with INVALID_ARGUMENT."),
    Clause("D4", _OPEN, "They do so at once, before the push has ended."),
    Clause("D5", _OPEN, "A declared length over the per-request budget is RESOURCE_EXHAUSTED before a byte is read."),
    Clause("D6", _OPEN, "A declared length that is not a decimal number below 2^64 is INVALID_ARGUMENT."),
    Clause("D7", _OPEN, "A length declared twice must say the same twice, else INVALID_ARGUMENT."),
    Clause("B1", _MUST, "The per-request budget holds to the byte: beyond it RESOURCE_EXHAUSTED."),
    Clause("B2", _OPEN, "A body that crosses the budget is refused then, not at its half-close."),
    Clause("B3", _MUST, "The server-wide budget holds to the byte: beyond it RESOURCE_EXHAUSTED."),
    Clause("B4", _OPEN, "Only the push that crosses the server's budget is refused; what is buffered stays."),
    Clause("B5", _OPEN, "A Pick that refuses gives the body's bytes back at once."),
    Clause("B6", _MUST, "A push that was reset, lost or refused gives its bytes back."),
    Clause("B7", _MUST, "Bytes that were pulled, aborted or reported final are given back."),
    Clause("B8", _MUST, "A body that nobody picks is reclaimed by its TTL."),
    Clause("B9", _OPEN, "In a full server a pull that takes nothing gives way to a new push."),
    Clause("K1", _MUST, "Pick with body_stream_id 0 is INVALID_ARGUMENT."),
    Clause("K2", _MUST, "Pick of an id that names no body is NOT_FOUND."),
    Clause(
        "K3", _MUST, "Pick of an id that an earlier Pick consumed is FAILED_PRECONDITION, whatever it had answered."
    ),
    Clause("K4", _MUST, "Of many Picks of one id at once exactly one is answered."),
    Clause("K5", _MUST, "OK and DEGRADED name a destination and a response_id other than 0."),
    Clause("K6", _MUST, "body_total_bytes is exactly what PullBody streams, and the body is complete."),
    Clause(
        "K7", _MUST, "Every other outcome has no destination, response_id 0, no bytes, and a reason of 1 to 512 signs."
    ),
    Clause("K8", _MUST, "A body that is no inference request is BAD_REQUEST, an outcome and not a gRPC status."),
    Clause("K9", _MUST, "A model that nobody serves is NO_WORKERS."),
    Clause("K10", _OPEN, "requested_model is the client's model whenever it could be read, on every outcome."),
    Clause("K11", _OPEN, "A reason never repeats the text of a body."),
    Clause("K12", _MAY, "A caller may name no pool: absent, or present with an empty name."),
    Clause("K13", _OPEN, "A pool that is not served here is NO_WORKERS, and the reason names it."),
    Clause("K14", _MUST, "A pool that is served is picked from, whatever resource_version says."),
    Clause("K15", _MUST, "A qos_class that is not known yet is tolerated."),
    Clause("K16", _MUST, "Fields that are not known yet are tolerated."),
    Clause("K17", _MUST, "A message that is no PickRequest is INVALID_ARGUMENT."),
    Clause("K18", _MUST, "A body waits for its Pick until its TTL; after it the id is NOT_FOUND."),
    Clause("T1", _OPEN, "A denial by rule is POLICY_REJECTED; its reason begins with policy:, quota: or saturated:."),
    Clause("T2", _MUST, 'The tenant "" matches a rule that names "" and no other, neither a name nor a wildcard.'),
    Clause("V1", _MUST, "A provider is named by its backend, with a path that is empty or begins with a slash."),
    Clause("V2", _OPEN, "A backend that a caller reported as unusable is not picked again at once."),
    Clause("L1", _MUST, "PullBody streams the whole body in chunks of at most 1 MiB."),
    Clause("L2", _MUST, "PullBody is single-shot: a second one is NOT_FOUND, also while the first runs."),
    Clause("L3", _MUST, "PullBody of an id that names no Pick, 0 among them, is NOT_FOUND."),
    Clause("L4", _MUST, "A pull that broke off is not resumed; reports and Abort go on."),
    Clause("L5", _MAY, "A caller may stop to read: the server sends no more than there is room for."),
    Clause("L6", _MAY, "A caller may read arbitrarily slowly: no TTL ends a pull that moves."),
    Clause("L7", _MUST, "A body that nobody pulls is reclaimed by its TTL."),
    Clause("L8", _MAY, "A final report may come while the body is still pulled; it does not cut the pull."),
    Clause("L9", _OPEN, "An Abort ends a pull, and nothing is pulled after it."),
    Clause("L10", _MUST, "A message that is no PullBodyRequest is INVALID_ARGUMENT."),
    Clause("R1", _OPEN, "A first-token report of a live request is acknowledged; its repeat changes nothing."),
    Clause("R2", _OPEN, "A final report is acknowledged once and closes the request."),
    Clause("R3", _OPEN, "A report of an unknown id is status OK and not acknowledged."),
    Clause("R4", _MAY, "Pull and reports may come in any order, repeatedly, or not at all."),
    Clause("R5", _MAY, "Any upstream_status may be reported."),
    Clause("R6", _MAY, "A final report may lack parts, or carry layouts and counts that the server does not know."),
    Clause("R7", _OPEN, "Reports may come on another connection to the same instance."),
    Clause("R8", _MUST, "A message that is no report and no AbortRequest is INVALID_ARGUMENT."),
    Clause("R9", _OPEN, "A request that was pulled lives on past the body's TTL; one that nobody touched does not."),
    Clause("A1", _MAY, "Abort may be called once or several times, for any reason; only the first releases."),
    Clause("A2", _MAY, "Abort may come before the pull, after it, and after the first token."),
    Clause("A3", _MAY, "Abort of an unknown id is status OK and releases nothing."),
    Clause("A4", _OPEN, "Of many Aborts at once exactly one releases."),
    Clause("A5", _OPEN, "Of an Abort and a final report at once exactly one closes the request."),
    Clause("I1", _MUST, "No id is 0, and none is given twice; none can be guessed from others (OPEN)."),
    Clause("E1", _MAY, "Many requests may be in flight over one connection, in any interleaving."),
    Clause("E2", _MAY, "A stalled pull and a slow push hold up no other request of their connection."),
    Clause("E3", _MAY, "A request may be abandoned at any point, with no notice."),
    Clause("E4", _MUST, "Answers are compressed only for a caller that accepts it."),
    Clause("E5", _MUST, "A method that is not served is UNIMPLEMENTED."),
    Clause("E6", _OPEN, "grpc.health.v1 answers for the server and for the service."),
    Clause("E7", _MUST, "A unary call that ends without its message is not answered as if it had one."),
    Clause("S1", _OPEN, "Where a token is asked for, calls without it are UNAUTHENTICATED; health checks need none."),
    Clause("E8", _MAY, "A host may frame chunks itself, as tag 0x0A, varint length and bytes."),
)

CLAUSES: Mapping[str, Clause] = MappingProxyType({clause.number: clause for clause in _CLAUSES})
"""By number."""
