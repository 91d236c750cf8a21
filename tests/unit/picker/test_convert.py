import pytest

import kinference.errors as failures
from kinference.errors import InvalidArgument, KinferenceError
from kinference.ids import Address, ObjectRef, ResponseId
from kinference.picker import convert
from kinference.ports import LocalTarget, PickArguments, PickResult, ProviderTarget
from kinference.vocabulary import AbortReason, Outcome, QosClass
from kinference.wire.proto import picker_pb2 as pb
from kinference.wire.rpc import Status

NOT_THE_PICKERS = {
    "KinferenceError",
    "ConfigError",
    "UpstreamUnreachable",
    "NoConnectionLeft",
    "UpstreamTimeout",
    "UpstreamCut",
    "PickerUnreachable",
}


def arguments(message: bytes, *metadata: tuple[str, str | bytes]) -> PickArguments:
    return convert.pick_arguments(message, metadata, name_max_chars=64)


def test_every_failure_of_the_picker_has_a_status() -> None:
    kinds = {kind for kind in vars(failures).values() if isinstance(kind, type) and issubclass(kind, KinferenceError)}
    assert {kind.__name__ for kind in kinds - set(convert.STATUS)} == NOT_THE_PICKERS


def test_where_a_request_failed_travels_beside_it() -> None:
    tried: frozenset[LocalTarget | ProviderTarget] = frozenset(
        {LocalTarget(Address("[::1]:8000")), ProviderTarget(ObjectRef("a b", "größe"))}
    )
    fields = [(convert.FAILED, convert.spelled(destination)) for destination in tried]
    assert all(value.isascii() and value.isprintable() for _, value in fields)
    assert arguments(b"", *fields).failed == tried
    for text, attempts_left in (("2", 2), ("", 1), ("-1", 1), ("\u0662", 1), ("9" * 99, 1)):
        assert arguments(b"", *fields, (convert.ATTEMPTS_LEFT, text)).attempts_left == attempts_left
    assert len(arguments(b"", *((convert.FAILED, f"h:{port}") for port in range(99))).failed) == convert.FAILED_MAX


def test_the_contracts_own_numbers_are_kept() -> None:
    assert convert.STATUS[failures.UnknownId] == 5
    assert convert.STATUS[failures.BodyConsumed] == 9
    assert convert.STATUS[failures.BudgetExceeded] == 8
    assert convert.STATUS[failures.IdleTimeout] == 4
    assert convert.STATUS[failures.InvalidArgument] == 3
    assert convert.STATUS[failures.Draining] is Status.UNAVAILABLE


@pytest.mark.parametrize(
    "message", [b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", b"\x0a\x05ab", b"\x0f", b"\xff", None]
)
def test_what_is_not_the_message_is_an_invalid_argument(message: bytes | None) -> None:
    with pytest.raises(InvalidArgument, match="BodyChunk"):
        convert.decode(pb.BodyChunk, message)


def test_unknown_fields_are_skipped_and_the_last_of_a_repeated_field_wins() -> None:
    assert convert.decode(pb.BodyChunk, b"\x0a\x01a\x12\x03xyz\x0a\x01b").chunk == b"b"


@pytest.mark.parametrize("size", [0, 1, 127, 128, 16_383, 16_384, 2**21 - 1, 2**21, 2**21 + 1])
def test_a_chunk_is_what_the_message_says(size: int) -> None:
    piece = b"x" * size
    message = pb.BodyChunk(chunk=piece).SerializeToString()
    assert convert.chunk(message) == piece
    if piece:
        assert convert.body_chunk(piece) == message


@pytest.mark.parametrize(
    ("message", "carried"),
    [
        (b"\x0a\x83\x00abc", b"abc"),  # a length spelled longer than it need be
        (b"\x0a\x03abc\x12\x01x", b"abc"),  # a field of another version behind
        (b"\x12\x01x\x0a\x03abc", b"abc"),
        (b"\x0a\x03abc\x0a\x03def", b"def"),
        (b"\x0a\x00", b""),
    ],
)
def test_a_chunk_in_another_spelling_is_read_all_the_same(message: bytes, carried: bytes) -> None:
    assert convert.chunk(message) == carried


@pytest.mark.parametrize("message", [b"\x0a", b"\x0a\x04abc", b"\x0a\x02abc", b"\x0a\xff\xff\xff\xff\x7fabc"])
def test_what_is_no_chunk_is_an_invalid_argument(message: bytes) -> None:
    with pytest.raises(InvalidArgument, match="BodyChunk"):
        convert.chunk(message)


def test_a_declared_length_is_optional() -> None:
    assert convert.declared_length([("other", "5")]) is None


@pytest.mark.parametrize(
    ("text", "length"), [("0", 0), ("007", 7), ("18446744073709551615", 2**64 - 1), ("1048576", 1048576)]
)
def test_a_declared_length_is_a_decimal_number(text: str, length: int) -> None:
    assert convert.declared_length([("kinference-declared-length", text)]) == length


@pytest.mark.parametrize(
    "text", ["", "-1", "+5", "5.0", " 5 ", "0x10", "1_000", "18446744073709551616", "٣", "5,5", "9" * 5000, b"5"]
)
def test_anything_else_is_refused(text: str | bytes) -> None:
    with pytest.raises(InvalidArgument, match="decimal"):
        convert.declared_length([("kinference-declared-length", text)])


def test_a_length_declared_twice_must_agree() -> None:
    twice = [("kinference-declared-length", "5"), ("kinference-declared-length", "05")]
    assert convert.declared_length(twice) == 5
    with pytest.raises(InvalidArgument, match="different"):
        convert.declared_length([*twice, ("kinference-declared-length", "6")])


def test_a_client_request_id_is_kept_as_far_as_it_is_visible_ascii() -> None:
    request = pb.PickRequest(client_request_id="a b\tc\x7fd\xe9" + "x" * 500)
    assert arguments(request.SerializeToString()).client_request_id == ("abcd" + "x" * 500)[:256]


def test_a_pick_request_becomes_arguments() -> None:
    request = pb.PickRequest(body_stream_id=7, client_request_id="r\n1", tenant="acme", qos_class=pb.PickRequest.BATCH)
    request.inference_pool.CopyFrom(pb.InferencePoolRef(namespace="ns", name="gpu", resource_version="12"))
    found = arguments(
        request.SerializeToString(),
        ("kinference-request-path", "/v1/messages?beta=true"),
        ("kinference-translates", "true"),
    )
    assert (found.stream_id, found.client_request_id, found.tenant, found.qos) == (7, "r1", "acme", QosClass.BATCH)
    assert (found.pool, found.pool_resource_version) == (ObjectRef("ns", "gpu"), "12")
    assert (found.request_path, found.translates) == ("/v1/messages", True)


def test_what_a_pick_request_leaves_out_is_absent() -> None:
    found = arguments(b"")
    assert (found.stream_id, found.tenant, found.pool, found.qos) == (0, "", None, QosClass.INTERACTIVE)
    assert (found.request_path, found.translates) == ("", False)


def test_a_pool_with_an_empty_name_is_no_pool() -> None:
    request = pb.PickRequest(inference_pool=pb.InferencePoolRef(namespace="ns"))
    assert arguments(request.SerializeToString()).pool is None


def test_an_unknown_class_is_interactive() -> None:
    assert arguments(b"\x20\x07").qos is QosClass.INTERACTIVE


@pytest.mark.parametrize("path", ["v1/messages", "/" + "x" * 3000])
def test_a_path_that_is_none_is_as_absent(path: str) -> None:
    assert arguments(b"", ("kinference-request-path", path)).request_path == ""


@pytest.mark.parametrize(
    "request_", [pb.PickRequest(tenant="t" * 65), pb.PickRequest(inference_pool=pb.InferencePoolRef(name="p" * 65))]
)
def test_a_name_without_bounds_is_refused(request_: pb.PickRequest) -> None:
    with pytest.raises(InvalidArgument, match="longer than 64"):
        arguments(request_.SerializeToString())


def test_a_local_destination_is_answered() -> None:
    result = PickResult(Outcome.DEGRADED, "warming", "m", LocalTarget(Address("[::1]:80")), ResponseId(2**64 - 1), 42)
    response = pb.PickResponse.FromString(convert.pick_response(result))
    assert (response.outcome, response.reason, response.requested_model) == (3, "warming", "m")
    assert (response.local.endpoint, response.response_id, response.body_total_bytes) == ("[::1]:80", 2**64 - 1, 42)


def test_a_provider_destination_is_answered() -> None:
    result = PickResult(Outcome.OK, destination=ProviderTarget(ObjectRef("cloud", "openai"), "/v2/chat?x=1"))
    response = pb.PickResponse.FromString(convert.pick_response(result))
    assert response.WhichOneof("destination") == "provider"
    backend = response.provider.backend_ref
    assert (backend.namespace, backend.name, response.provider.path) == ("cloud", "openai", "/v2/chat?x=1")


def test_a_refusal_names_no_destination() -> None:
    response = pb.PickResponse.FromString(convert.pick_response(PickResult(Outcome.NO_WORKERS, "none", "m")))
    assert response.WhichOneof("destination") is None
    assert (response.response_id, response.body_total_bytes) == (0, 0)


def test_text_that_utf8_cannot_spell_does_not_break_the_answer() -> None:
    response = pb.PickResponse.FromString(convert.pick_response(PickResult(Outcome.BAD_REQUEST, "", "m\ud83d")))
    assert response.requested_model == "m?"


def test_a_first_token_report_is_read() -> None:
    message = pb.ReportFirstTokenRequest(response_id=5, observed_ttft_ms=12, upstream_status=-1).SerializeToString()
    report = convert.first_token_report(message)
    assert (report.response_id, report.observed_ttft_ms, report.upstream_status) == (5, 12, -1)


@pytest.mark.parametrize(
    ("request_", "cached"),
    [
        (pb.ReportFinalTokenRequest(cached_tokens=0), 0),
        (pb.ReportFinalTokenRequest(), None),
    ],
)
def test_cached_tokens_zero_is_not_absent(request_: pb.ReportFinalTokenRequest, cached: int | None) -> None:
    assert convert.final_token_report(request_.SerializeToString()).cached_tokens == cached


def test_a_final_report_is_read() -> None:
    request = pb.ReportFinalTokenRequest(response_id=5, model="m" * 999, prompt_tokens=7, completion_tokens=8)
    request.itl_bucket_counts.extend([1, 2, 3])
    request.itl_bucket_layout = 9
    report = convert.final_token_report(request.SerializeToString())
    assert (report.response_id, report.prompt_tokens, report.completion_tokens) == (5, 7, 8)
    assert (report.model, report.itl_bucket_counts, report.itl_bucket_layout) == ("m" * 256, (1, 2, 3), 9)


def test_an_abort_is_read_and_its_unknown_reason_is_unspecified() -> None:
    message = pb.AbortRequest(response_id=5, detail="d" * 999).SerializeToString() + b"\x10\x63"
    assert convert.abort_arguments(message) == (5, AbortReason.UNSPECIFIED, "d" * 512)
