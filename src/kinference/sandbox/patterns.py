"""Which requests are inference, and in which protocol."""

import re
from dataclasses import dataclass
from urllib.parse import unquote


@dataclass(frozen=True, slots=True)
class Pattern:
    """One kind of request. `is_buffered`: its answer is short and comes whole, with its length."""

    method: str
    path: re.Pattern[str]
    protocol: str
    is_buffered: bool = False


PATTERNS = (
    Pattern("POST", re.compile(r"/v1/chat/completions"), "openai_chat_completions"),
    Pattern("POST", re.compile(r"/v1/completions"), "openai_completions"),
    Pattern("POST", re.compile(r"/v1/responses"), "openai_responses"),
    Pattern("POST", re.compile(r"/v1/messages"), "anthropic_messages"),
    Pattern("POST", re.compile(r"/v1/messages/count_tokens"), "anthropic_messages", is_buffered=True),
    Pattern("GET", re.compile(r"/v1/models(/.*)?"), "model_discovery", is_buffered=True),
    Pattern("POST", re.compile(r"/v1/embeddings"), "openai_embeddings", is_buffered=True),
    Pattern("POST", re.compile(r"/model/[^/]+/invoke"), "aws_bedrock_invoke", is_buffered=True),
)
_ASTRAY = re.compile(r"/\.{1,2}(/|$)|//|[^A-Za-z0-9._~!$&'()*+,:=@/-]")
"""What could make the far end read another path than we did: steps upwards, parameters, a second encoding."""


def pattern_of(method: str, path: str) -> Pattern | None:
    """The kind of a request by its method and its path without query; None for what is not inference."""
    if _ASTRAY.search(unquote(path)):
        return None
    wanted = method.upper()
    return next((each for each in PATTERNS if each.method == wanted and each.path.fullmatch(path)), None)
