"""Every field of a Chat Completions request, and what it is to other APIs."""

from types import MappingProxyType
from typing import Final

from kinference.shapes.concepts import Concept, Fields, Treatment

_KEPT, _MAPPED, _DROPPED = Treatment.KEPT, Treatment.MAPPED, Treatment.DROPPED
_IGNORED, _REFUSED = Treatment.IGNORED, Treatment.REFUSED

DEFAULTS: Final = MappingProxyType({"modalities": ["text"]})
"""Values that ask for nothing more than leaving the field out."""

_MARK = {"cache_control": Concept.CACHE_MARKS}
_PART_MARKS = {"prompt_cache_breakpoint": Concept.CACHE_MARKS, **_MARK}

FIELDS: Final[Fields] = {
    "": {
        "model": _MAPPED,
        "messages": _KEPT,
        "max_completion_tokens": Concept.MAX_TOKENS,
        "max_tokens": Concept.MAX_TOKENS,
        "temperature": Concept.TEMPERATURE,
        "top_p": Concept.TOP_P,
        "top_k": Concept.TOP_K,
        "min_p": Concept.MIN_P,
        "seed": Concept.SEED,
        "frequency_penalty": Concept.PENALTIES,
        "presence_penalty": Concept.PENALTIES,
        "repetition_penalty": Concept.REPETITION_PENALTY,
        "stop": Concept.STOP,
        "tools": Concept.TOOLS,
        "functions": Concept.TOOLS,
        "tool_choice": Concept.FORCED_TOOLS,
        "function_call": Concept.FORCED_TOOLS,
        "parallel_tool_calls": Concept.PARALLEL_TOOLS,
        "reasoning_effort": Concept.THINKING,
        "reasoning": Concept.THINKING,
        "thinking": Concept.THINKING,
        "verbosity": Concept.VERBOSITY,
        "safety_identifier": Concept.END_USER,
        "user": Concept.END_USER,
        "service_tier": Concept.SERVICE_TIER,
        "prompt_cache_key": Concept.CACHE_KEY,
        "response_format": Concept.JSON_SCHEMA,
        "stream": _KEPT,
        "stream_options": _MAPPED,
        "n": Concept.SEVERAL_ANSWERS,
        "logprobs": Concept.LOGPROBS,
        "top_logprobs": Concept.LOGPROBS,
        "logit_bias": Concept.LOGIT_BIAS,
        "audio": _REFUSED,
        "modalities": Concept.MADE_IMAGES,
        "web_search_options": Concept.WEB_SEARCH,
        "prediction": _DROPPED,
        "moderation": _DROPPED,
        "metadata": _IGNORED,
        "store": _IGNORED,
        "prompt_cache_options": _IGNORED,
        "prompt_cache_retention": _IGNORED,
        "cache_salt": _IGNORED,
        "continue_final_message": _MAPPED,
        "add_generation_prompt": _IGNORED,
    },
    "system": {"role": _KEPT, "content": _KEPT, "name": Concept.NAMES, **_MARK},
    "user": {"role": _KEPT, "content": _KEPT, "name": Concept.NAMES, **_MARK},
    "assistant": {
        "role": _KEPT,
        "content": _KEPT,
        "name": Concept.NAMES,
        "refusal": _MAPPED,
        "tool_calls": Concept.TOOLS,
        "function_call": Concept.TOOLS,
        "reasoning_content": Concept.OLD_REASONING,
        "reasoning": Concept.OLD_REASONING,
        "thinking_blocks": Concept.SEALED_REASONING,
        "audio": _REFUSED,
        "images": Concept.EARLIER_IMAGES,
        **_MARK,
    },
    "tool": {"role": _KEPT, "content": _KEPT, "tool_call_id": _KEPT, **_MARK},
    "function": {"role": _KEPT, "content": _KEPT, "name": _MAPPED},
    "text": {"type": _KEPT, "text": _KEPT, **_PART_MARKS},
    "refusal": {"type": _KEPT, "refusal": _MAPPED},
    "image_url": {"type": _KEPT, "image_url": Concept.IMAGE, **_PART_MARKS},
    "image": {"url": Concept.IMAGE_URL, "detail": Concept.IMAGE_DETAIL},
    "input_audio": {"type": _KEPT, "input_audio": Concept.AUDIO, **_PART_MARKS},
    "audio": {"data": _KEPT, "format": _KEPT},
    "file": {"type": _KEPT, "file": Concept.FILE, **_PART_MARKS},
    "document": {"file_data": _KEPT, "file_id": Concept.HELD_MEDIA, "filename": _KEPT},
    "tool_call": {"id": _KEPT, "type": _KEPT, "function": _KEPT, "custom": Concept.FREE_FORM_TOOLS},
    "tools": {
        "type": _KEPT,
        "function": _KEPT,
        "custom": Concept.FREE_FORM_TOOLS,
        "cache_control": Concept.CACHE_MARKS,
    },
    "tools.function": {
        "name": _KEPT,
        "description": _KEPT,
        "parameters": _KEPT,
        "strict": Concept.STRICT_TOOLS,
        **_MARK,
    },
    "tools.custom": {"name": _KEPT, "description": _KEPT, "format": Concept.GRAMMARS},
    "reasoning": {
        "effort": Concept.THINKING,
        "max_tokens": Concept.THINKING,
        "enabled": Concept.THINKING,
        "exclude": _MAPPED,
    },
    "thinking": {"type": Concept.THINKING, "budget_tokens": Concept.THINKING, "display": _MAPPED},
    "web_search_options": {"search_context_size": Concept.WEB_SEARCH, "user_location": Concept.WEB_SEARCH},
    "response_format": {"type": Concept.JSON_OBJECT, "json_schema": Concept.JSON_SCHEMA},
    "json_schema": {"name": _KEPT, "description": _KEPT, "schema": _KEPT, "strict": _KEPT},
    "tool_choice": {
        "type": Concept.NO_TOOLS,
        "function": Concept.FORCED_TOOLS,
        "custom": Concept.FORCED_TOOLS,
        "allowed_tools": Concept.ALLOWED_TOOLS,
    },
    "stream_options": {"include_usage": _MAPPED, "include_obfuscation": _IGNORED},
}
