from datetime import UTC, datetime
from typing import Any
from unittest.mock import patch

import pytest
from botocore.auth import SigV4Auth  # type: ignore[import-untyped] # ships no types
from botocore.awsrequest import AWSRequest  # type: ignore[import-untyped] # ships no types
from botocore.credentials import Credentials  # type: ignore[import-untyped] # ships no types
from hypothesis import given
from hypothesis import strategies as st

from kinference.shapes.paths import segment
from kinference.wire.sigv4 import AwsKeys, Signable, signature

NOW = 1_795_978_704.25
KEYS = AwsKeys("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", region="us-east-1")


def as_botocore_signs(request: Signable, keys: AwsKeys, region: str) -> dict[str, str]:
    """What the official SDK adds to the same request at the same time."""
    theirs: Any = AWSRequest(request.method, request.origin + request.target, data=b"".join(request.body))
    credentials = Credentials(keys.access_key_id, keys.secret_access_key, keys.session_token or None)
    with patch("botocore.auth.get_current_datetime", lambda: datetime.fromtimestamp(NOW, UTC).replace(tzinfo=None)):
        SigV4Auth(credentials, "bedrock", region).add_auth(theirs)
    return {name.lower(): value for name, value in theirs.headers.items()}


def as_we_sign(request: Signable, keys: AwsKeys) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in signature(request, keys, "bedrock", NOW)}


@pytest.mark.parametrize(
    ("origin", "target"),
    [
        ("https://bedrock-runtime.us-east-1.amazonaws.com", "/model/m/converse"),
        ("https://bedrock-runtime.us-east-1.amazonaws.com", "/model/anthropic.claude-v1%3A0/converse-stream"),
        (
            "https://bedrock-runtime.us-east-1.amazonaws.com",
            "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fm/converse",
        ),
        ("https://localhost:8443", "/model/m/converse?b=2&a=1&c"),
        ("https://localhost:443", "/"),
    ],
)
@pytest.mark.parametrize("token", ["", "FwoGZXIvYXdzEBYaD//////////+="])
def test_a_request_is_signed_as_the_official_sdk_signs_it(origin: str, target: str, token: str) -> None:
    keys = AwsKeys(KEYS.access_key_id, KEYS.secret_access_key, token, "us-east-1")
    request = Signable("POST", origin, target, (b'{"messages":', b"[]}"))
    assert as_we_sign(request, keys) == as_botocore_signs(request, keys, "us-east-1")


@given(
    model=st.text(st.characters(exclude_categories=["C", "Z"], exclude_characters="/."), min_size=1, max_size=20),
    body=st.binary(max_size=50),
    secret=st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1),
)
def test_whatever_the_model_is_called_and_the_body_holds(model: str, body: bytes, secret: str) -> None:
    keys = AwsKeys("AKID", secret, region="eu-central-1")
    target = f"/model/{segment(model)}/converse"
    request = Signable("POST", "https://bedrock-runtime.eu-central-1.amazonaws.com", target, (body,))
    assert as_we_sign(request, keys) == as_botocore_signs(request, keys, "eu-central-1")


def test_the_region_of_the_host_is_signed_for_where_none_is_given() -> None:
    request = Signable("POST", "https://bedrock-runtime.eu-west-3.amazonaws.com", "/model/m/converse", (b"{}",))
    assert "/eu-west-3/bedrock/aws4_request" in as_we_sign(request, AwsKeys("AKID", "secret"))["authorization"]


def test_nothing_secret_is_shown() -> None:
    assert "EXAMPLEKEY" not in repr(KEYS)
    assert "token" not in repr(AwsKeys("a", "s", "token!")).replace("session_token", "")
