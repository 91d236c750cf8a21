"""Why Envoy and nginx do otherwise than the table has it: the first rule that fits, or what the two outcomes tell."""

import re
from dataclasses import dataclass

from tests.conformance.http2.case import Case, Outcome, Scope

SILENT = "closed without GOAWAY"


@dataclass(frozen=True)
class Rule:
    """Fits a target's cases by what they are called and what came of them."""

    target: str
    case: str
    outcome: str
    reason: str

    def fits(self, target: str, case: Case, outcome: Outcome) -> bool:
        return (
            target == self.target
            and re.search(self.case, str(case)) is not None
            and re.search(self.outcome, str(outcome)) is not None
        )


ENVOY = (
    Rule("envoy", "declares one length twice", "", "Envoy takes equal lengths for a malformed message as well; RFC 9110, section 8.6, leaves it to the recipient."),
    Rule("envoy", "leaves :authority out", "", "Envoy needs an authority (or a Host) to find a route by; the RFC does not ask for one and our carrier serves one host."),
    Rule("envoy", "depend on themselves", "", "Envoy keeps the rule of RFC 7540 that a stream may not depend on itself; RFC 9113 dropped priorities."),
    Rule("envoy", "acknowledges what was not sent", "", "Envoy takes more acknowledgements than it sent SETTINGS for an error; the RFC is silent."),
    Rule("envoy", "has 2,000 streams reset", "", "Envoy ends the connection at the first window that grows by nothing."),
    Rule("envoy", "2,000 malformed requests", "", "Envoy ends the connection at the first malformed request."),
    Rule("envoy", "opens and resets", "", "Envoy ends a connection once most of 500 streams were reset early, without GOAWAY; our limit is 2,000 at once and 500 a second, since a picker's clients cancel in bursts."),
    Rule("envoy", "opens 10,000 streams", "", "Envoy's own limits on what it has to answer are reached first, and it closes without GOAWAY."),
    Rule("envoy", "frames of unknown type", "none", "Envoy does not count frames of unknown type; we do, since each costs its reader something."),
    Rule("envoy", "9113/10.5 ", SILENT, "Envoy has limits of its own against this flood, and closes without GOAWAY."),
    Rule("envoy", "CONTINUATION without end", "", "Both end the connection; Envoy names another code."),
    Rule("envoy", "9113/8|malformed", SILENT, "Envoy ends the whole connection, without GOAWAY, for one malformed message, unless `override_stream_error_on_invalid_http_message` is set; section 8.1.1 asks for an error of the stream, though 5.4.1 lets it grow into one of the connection."),
    Rule("envoy", "that the server has reset", SILENT, "The malformed request that opens this case has ended the whole connection already."),
    Rule("envoy", "one field over", "grpc-status 14", "Envoy passes the field on, and our carrier behind it refuses the call."),
    Rule("envoy", "connects", "404", "Envoy has no route for CONNECT; our carrier says that the method is not allowed."),
    Rule("envoy", "10.5.1", "INTERNAL_ERROR", "Envoy resets the stream over its own limits (100 fields, 60 KiB) with INTERNAL_ERROR where we say ENHANCE_YOUR_CALM."),
    Rule("envoy", "prioritizes no stream", "", "Envoy ignores PRIORITY on stream 0, which section 6.3 makes an error of the connection."),
    Rule("envoy", "below the last", "none", "Envoy ignores HEADERS with an id below the last, which section 5.1.1 makes an error of the connection."),
    Rule("envoy", "9113/5.1", "none|answered", "Envoy ignores what comes for a stream that has ended, however it ended."),
    Rule("envoy", "without the length of padding", "", "A frame without its length of padding is too short (4.2) and its padding too long (6.1); each takes its side."),
)  # fmt: skip
NGINX = (
    Rule("nginx", "9113/3.4", "", "nginx does not insist that SETTINGS, and no acknowledgement, come first."),
    Rule("nginx", "9113/4.2", "", "nginx announces frames of up to 2^24 - 1 bytes, so that this one is not too large for it, and goes by its content."),
    Rule("nginx", "depend", "", "nginx keeps the rule of RFC 7540 that a stream may not depend on itself; RFC 9113 dropped priorities."),
    Rule("nginx", "over their priority", "", "Both end the connection; nginx counts the padding as missing bytes, where section 6.2 has PROTOCOL_ERROR."),
    Rule("nginx", "idle|above the last|even id", "none|answered", "nginx ignores frames that name a stream it does not know, which sections 5.1 and 5.1.1 make an error of the connection."),
    Rule("nginx", "7541/5", "FRAME_SIZE_ERROR", "nginx calls a block that breaks off a frame of a wrong size; RFC 7541 calls it a decoding error."),
    Rule("nginx", "", "connection: FRAME_SIZE_ERROR$", "nginx takes a HEADERS frame without content, or PRIORITY of a wrong length, for a broken frame and ends the connection."),
    Rule("nginx", "10.5.1.*small fields", "", "nginx refuses it too, but ends the connection with PROTOCOL_ERROR, where we reset the stream."),
    Rule("nginx", "trailers|after its end|after a reset|after the answer|asks again|HEADERS on a stream that the server", "connection: PROTOCOL_ERROR", "nginx 1.22 reads no trailers of requests: any second HEADERS of a stream is an id that was used already."),
    Rule("nginx", "9113/5.1", "none|answered", "nginx ignores DATA for a stream that has ended."),
    Rule("nginx", "", "answered: (400|405)$", "nginx answers what is malformed, or what it does not take for a request, by an HTTP status, as section 8.1.1 lets a server do; our carrier resets the stream."),
    Rule("nginx", "", "answered: 502", "nginx passes the field on, and our carrier behind it refuses the call."),
    Rule("nginx", "8.2.2|beyond ASCII", "answered: 200", "nginx drops the field and serves the request; the RFC calls the request malformed."),
    Rule("nginx", "behind a field", "answered: 200", "nginx does not look at the order of pseudo-headers."),
    Rule("nginx", "7541/4.2", "answered", "nginx takes a change of the table's size anywhere in a block; RFC 7541 has it only at the beginning."),
    Rule("nginx", "7541/5.2", "answered", "nginx does not check that Huffman's padding is shorter than eight bits."),
    Rule("nginx", "has 2,000 streams reset", "", "nginx ends the connection at the first window that grows by nothing."),
    Rule("nginx", "9113/10.5 ", "NO_ERROR", "nginx ends a connection when streams come too fast for `http2_max_concurrent_streams`, or are more than `keepalive_requests`, with NO_ERROR."),
    Rule("nginx", "9113/10.5 .*padding", "", "The padding fills the stream's window, which nginx does not open again for it; we do, and count the frames."),
    Rule("nginx", "9113/10.5 ", "none", "nginx measures floods by bytes of overhead, not by frames, and this one stays below its limit."),
    Rule("nginx", "9113/10.5 .*CONTINUATION", "", "Both end the connection; nginx names another code."),
    Rule("nginx", "10.5.1", "ENHANCE_YOUR_CALM", "nginx ends the connection over its limits on fields, where we reset the stream and keep reading."),
)  # fmt: skip


def why(target: str, case: Case, outcome: Outcome) -> str:
    """One sentence."""
    for rule in (*ENVOY, *NGINX):
        if rule.fits(target, case, outcome):
            return rule.reason
    if outcome.scope is Scope.CONNECTION and case.outcome.scope is Scope.STREAM:
        how = ", without GOAWAY" if outcome.detail == SILENT else ""
        return f"An error of the stream is treated as one of the connection{how}, which section 5.4.1 allows."
    if outcome.scope is Scope.STREAM and case.outcome.scope is Scope.CONNECTION:
        return "An error of the connection is treated as one of the stream, which section 6.9.2 does not allow."
    if outcome.detail == SILENT:
        return "The connection ends as it should, but without the GOAWAY that section 5.4.1 recommends."
    if outcome.scope is case.outcome.scope:
        return "The reach is the same, and the code another."
    return "The table has the RFC's rule; this target is more lenient, or stricter, without being told to."
