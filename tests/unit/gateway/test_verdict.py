import asyncio
import gzip
import json
import zlib
from collections.abc import AsyncIterator

import pytest

from kinference.gateway import errors, verdict
from kinference.gateway.backends import Leg
from kinference.gateway.errors import Refusal
from kinference.gateway.verdict import Blame, ErrorAnswer
from kinference.ports import Headers
from kinference.vocabulary import Api
from tests.unit.gateway.fakes import CUT, JSON, FakeAnswer

ENGINE = Leg("10.0.0.1:8000", "http://10.0.0.1:8000", "/", (), Api.OPENAI_CHAT)
CLOUD = Leg("default/cloud", "https://cloud.test", "/", (), Api.OPENAI_CHAT)
CLOUD.is_provider, CLOUD.secret = True, "sk-ours"
NOON = 784_123_200.0
"""Of Sunday, 6 November 1994."""
CREDIT = b'{"error":{"message":"Your credit balance is too low"}}'


def answered(status: int, body: bytes = b'{"error":{}}', headers: Headers = JSON) -> ErrorAnswer:
    return ErrorAnswer(status, headers, body)


async def test_an_error_is_read_whole_and_its_connection_given_back() -> None:
    answer = FakeAnswer(400, JSON, (b'{"a"', b":1}"))
    assert await verdict.read_error(answer, ENGINE) == ErrorAnswer(400, [*JSON], b'{"a":1}')
    assert answer.is_closed


@pytest.mark.parametrize("packed", [gzip.compress(b'{"a":1}'), zlib.compress(b'{"a":1}')], ids=["gzip", "zlib"])
async def test_h10_a_compressed_error_reaches_the_client_as_plain_text(packed: bytes) -> None:
    headers = (*JSON, (b"content-encoding", b"gzip"))
    error = await verdict.read_error(FakeAnswer(400, headers, (packed,)), ENGINE)
    assert (error.body, error.headers) == (b'{"a":1}', [*JSON])


@pytest.mark.parametrize(
    "body",
    [b"not gzip", gzip.compress(b"x" * 100)[:-9], gzip.compress(bytes(2 << 20))],
    ids=["none", "cut off", "too large"],
)
async def test_an_error_that_cannot_be_unpacked_within_bounds_is_told_by_its_status(body: bytes) -> None:
    error = await verdict.read_error(FakeAnswer(400, ((b"content-encoding", b"gzip"),), (body,)), ENGINE)
    assert error.body == b""


async def test_an_endless_error_is_told_by_its_status() -> None:
    answer = FakeAnswer(400, JSON, [bytes(1 << 20)] * 3)
    assert (await verdict.read_error(answer, ENGINE)).body == b""
    assert answer.is_closed


class SlowError(FakeAnswer):
    """Tells a byte at a time, for ever."""

    async def chunks(self) -> AsyncIterator[bytes]:
        while True:
            await asyncio.sleep(0.005)
            yield b" "


async def test_an_error_that_takes_for_ever_to_be_told_is_told_by_its_status() -> None:
    answer = SlowError(500)
    error = await asyncio.wait_for(verdict.read_error(answer, ENGINE, patience=0.02), 60)
    assert (error.status, error.body, answer.is_closed) == (500, b"", True)


async def test_an_error_that_breaks_off_is_told_by_its_status() -> None:
    answer = FakeAnswer(400, JSON, (b'{"a', CUT))
    assert (await verdict.read_error(answer, ENGINE)).body == b""
    assert answer.is_closed


async def test_j8_our_credential_is_taken_out_of_what_a_provider_says() -> None:
    error = await verdict.read_error(FakeAnswer(400, JSON, (b'"bad key sk-ours"',)), CLOUD)
    assert error.body == b'"bad key [redacted]"'


@pytest.mark.parametrize(
    ("answer", "leg", "blame"),
    [
        (answered(400), CLOUD, Blame.CLIENT),
        (answered(404), ENGINE, Blame.CLIENT),
        (answered(422), ENGINE, Blame.CLIENT),
        (answered(429), ENGINE, Blame.DESTINATION),
        (answered(500), ENGINE, Blame.DESTINATION),
        (answered(503), CLOUD, Blame.DESTINATION),
        (answered(529), CLOUD, Blame.DESTINATION),
        (answered(520), CLOUD, Blame.DESTINATION),
        (answered(524), CLOUD, Blame.DESTINATION),
        (answered(999), ENGINE, Blame.DESTINATION),
        (answered(501), ENGINE, Blame.CLIENT),
        (answered(505), ENGINE, Blame.CLIENT),
        (answered(307), ENGINE, Blame.DESTINATION),
        (answered(401), CLOUD, Blame.CREDENTIAL),
        (answered(403), ENGINE, Blame.CREDENTIAL),
        (answered(402), CLOUD, Blame.ACCOUNT),
        (answered(400, CREDIT), CLOUD, Blame.ACCOUNT),
        (answered(400, CREDIT), ENGINE, Blame.CLIENT),
        (answered(429, b'{"error":{"code":"insufficient_quota"}}'), CLOUD, Blame.ACCOUNT),
    ],
)
def test_h5_blame_lies_with_the_client_the_destination_or_our_account(
    answer: ErrorAnswer, leg: Leg, blame: Blame
) -> None:
    assert verdict.blame(answer, leg) is blame


def test_a_json_error_is_told_as_it_is() -> None:
    error = answered(400)
    assert verdict.told_to_client(error, Blame.CLIENT, NOON) is error


@pytest.mark.parametrize(
    ("error", "blame", "status", "code"),
    [
        (answered(401), Blame.CREDENTIAL, 502, "upstream_auth_error"),
        (answered(402), Blame.ACCOUNT, 502, "upstream_account_error"),
        (answered(302), Blame.DESTINATION, 502, "upstream_error"),
        (answered(999), Blame.DESTINATION, 502, "upstream_error"),
        (answered(503, b"<html>", ((b"content-type", b"text/html"),)), Blame.DESTINATION, 503, "overloaded"),
        (answered(500, b""), Blame.DESTINATION, 500, None),
    ],
)
def test_what_is_of_no_use_to_the_client_is_said_in_our_own_words(
    error: ErrorAnswer, blame: Blame, status: int, code: str | None
) -> None:
    told = verdict.told_to_client(error, blame, NOON)
    assert isinstance(told, Refusal)
    assert (told.fault.status, told.fault.code) == (status, code)


def test_h1_a_retry_after_survives_a_body_that_does_not() -> None:
    told = verdict.told_to_client(answered(429, b"slow down", ((b"retry-after", b"7"),)), Blame.DESTINATION, NOON)
    assert isinstance(told, Refusal)
    assert told.retry_after == 7


PACED = (
    b'{"error":{"code":429,"message":"You exceeded your current quota, please check your plan","status":"RESOURCE_EXHAUSTED"'
    b',"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}]}}'
)


@pytest.mark.parametrize(
    ("body", "fields", "seconds"),
    [
        (b"{}", ((b"retry-after", b"1.5"),), b"2"),
        (b"{}", ((b"retry-after-ms", b"2500"), (b"retry-after", b"9")), b"3"),
        (PACED, (), b"35"),
        (b"{}", ((b"retry-after", b"soon"),), b"1"),
        (b"{}", ((b"retry-after", b"Sun, 06 Nov 1994 12:00:40 GMT"),), b"40"),
        (b"{}", ((b"retry-after", b"Sunday, 06-Nov-94 12:00:40 GMT"),), b"40"),
        (b"{}", ((b"retry-after", b"Sun Nov  6 12:00:40 1994"),), b"40"),
        (b"{}", ((b"retry-after", b"Sun, 06 Nov 1994 11:59:59 GMT"),), b"0"),
        (b"{}", ((b"retry-after", b"Fri, 31 Dec 9999 23:59:59 GMT"),), b"86400"),
        (b"{}", ((b"retry-after", b"Sun, 99 Nov 1994 12:00:40 GMT"),), b"1"),
        (PACED, ((b"retry-after", b"Sun, 06 Nev 1994 12:00:40 GMT"),), b"35"),
    ],
)
def test_h1_a_destination_is_left_alone_for_as_long_as_it_says_wherever_it_says_so(
    body: bytes, fields: Headers, seconds: bytes
) -> None:
    told = verdict.retold(answered(429, body, fields), NOON)
    assert errors.headers(told) == ((b"retry-after", seconds),)


def test_h5_a_quota_by_the_minute_is_none_that_is_spent() -> None:
    assert verdict.blame(answered(429, PACED), CLOUD) is Blame.DESTINATION
    spent = b'{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}'
    assert verdict.blame(answered(429, spent), CLOUD) is Blame.ACCOUNT


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("prompt is too long: 9 tokens > 8 maximum", "prompt is too long: 9 tokens > 8 maximum"),
        ("Input is too long for requested model.", "prompt is too long: Input is too long for requested model."),
    ],
)
def test_a_prompt_that_is_too_long_is_told_in_the_words_and_by_the_code_that_agents_know(
    message: str, told: str
) -> None:
    refusal = verdict.retold(answered(400, json.dumps({"message": message}).encode()), NOON)
    assert (refusal.fault, refusal.message) == (errors.TOO_LONG, told)
    assert verdict.retold(answered(500, json.dumps({"message": message}).encode()), NOON).fault is not errors.TOO_LONG
    coded = b'{"error":{"message":"too many","code":"context_length_exceeded"}}'
    assert verdict.retold(answered(400, coded), NOON).fault is errors.TOO_LONG


@pytest.mark.parametrize("forever", [b"99999999999", b"9" * 5000])
def test_no_destination_sends_a_client_away_for_ever(forever: bytes) -> None:
    sent_away = answered(503, b"full", ((b"retry-after", forever),))
    for told in (verdict.told_to_client(sent_away, Blame.DESTINATION, NOON), verdict.retold(sent_away, NOON)):
        assert isinstance(told, Refusal)
        assert errors.headers(told) == ((b"retry-after", b"86400"),)
