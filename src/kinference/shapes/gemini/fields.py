"""Every field of a generateContent request, and what it is to other APIs. Names are in camel case; the API takes snake
case as well, and so does the reader.
"""

import re
from types import MappingProxyType
from typing import Final

from kinference.shapes.concepts import Concept, Fields, Treatment
from kinference.shapes.ir import Json

_KEPT, _MAPPED, _DROPPED = Treatment.KEPT, Treatment.MAPPED, Treatment.DROPPED
_IGNORED, _REFUSED = Treatment.IGNORED, Treatment.REFUSED

DEFAULTS: Final = MappingProxyType({"responseModalities": ["TEXT"], "responseMimeType": "text/plain"})
"""Values that ask for nothing more than leaving the field out."""

_SNAKE = re.compile(r"_([a-z])")

FIELDS: Final[Fields] = {
    "": {
        "model": _MAPPED,
        "contents": _KEPT,
        "systemInstruction": _KEPT,
        "tools": Concept.TOOLS,
        "toolConfig": Concept.FORCED_TOOLS,
        "generationConfig": _MAPPED,
        "serviceTier": Concept.SERVICE_TIER,
        "safetySettings": _DROPPED,
        "cachedContent": _REFUSED,
        "modelArmorConfig": _DROPPED,
        "labels": _IGNORED,
        "store": _IGNORED,
    },
    "generationConfig": {
        "temperature": Concept.TEMPERATURE,
        "topP": Concept.TOP_P,
        "topK": Concept.TOP_K,
        "maxOutputTokens": Concept.MAX_TOKENS,
        "stopSequences": Concept.STOP,
        "seed": Concept.SEED,
        "presencePenalty": Concept.PENALTIES,
        "frequencyPenalty": Concept.PENALTIES,
        "responseMimeType": Concept.JSON_OBJECT,
        "responseSchema": Concept.JSON_SCHEMA,
        "responseJsonSchema": Concept.JSON_SCHEMA,
        "thinkingConfig": Concept.THINKING,
        "candidateCount": Concept.SEVERAL_ANSWERS,
        "responseLogprobs": Concept.LOGPROBS,
        "logprobs": Concept.LOGPROBS,
        "responseModalities": Concept.MADE_IMAGES,
        "speechConfig": _REFUSED,
        "imageConfig": _REFUSED,
        "responseFormat": _REFUSED,
        "continuationToken": _REFUSED,
        "routingConfig": _DROPPED,
        "modelSelectionConfig": _DROPPED,
        "mediaResolution": _IGNORED,
        "audioTimestamp": _DROPPED,
        "audioTranscriptionConfig": _DROPPED,
        "translationConfig": _DROPPED,
        "enableAffectiveDialog": _DROPPED,
        "enableEnhancedCivicAnswers": _DROPPED,
        "generationOutputConfig": _DROPPED,
        "automaticContinuation": _DROPPED,
    },
    "content": {"role": _KEPT, "parts": _KEPT},
    "part": {
        "text": _KEPT,
        "inlineData": Concept.IMAGE,
        "fileData": Concept.IMAGE_URL,
        "functionCall": Concept.TOOLS,
        "functionResponse": Concept.TOOLS,
        "thought": Concept.OLD_REASONING,
        "thoughtSignature": Concept.SEALED_REASONING,
        "mediaResolution": Concept.IMAGE_DETAIL,
        "videoMetadata": _IGNORED,
        "partMetadata": _IGNORED,
        "mediaProcessing": _IGNORED,
        "audioTranscription": _IGNORED,
        "speechMetadata": _IGNORED,
        "documentMetadata": _IGNORED,
        "spreadsheetMetadata": _IGNORED,
        "audioMetadata": _IGNORED,
        "codeExecutionResult": Concept.EARLIER_CODE,
        "executableCode": Concept.EARLIER_CODE,
        "toolCall": _REFUSED,
        "toolResponse": _REFUSED,
    },
    "functionCall": {"id": _KEPT, "name": _KEPT, "args": _KEPT, "partialArgs": _IGNORED, "willContinue": _IGNORED},
    "functionResponse": {
        "id": _KEPT,
        "name": _KEPT,
        "response": _KEPT,
        "parts": Concept.TOOL_MEDIA,
        "willContinue": _IGNORED,
        "scheduling": _IGNORED,
    },
    "tools": {
        "functionDeclarations": Concept.TOOLS,
        "retrieval": _REFUSED,
        "computerUse": _REFUSED,
        "fileSearch": _REFUSED,
        "googleSearch": Concept.WEB_SEARCH,
        "googleMaps": _REFUSED,
        "codeExecution": Concept.CODE_EXECUTION,
        "enterpriseWebSearch": _REFUSED,
        "googleSearchRetrieval": _REFUSED,
        "parallelAiSearch": _REFUSED,
        "urlContext": _REFUSED,
        "mcpServers": _REFUSED,
        "exaAiSearch": _REFUSED,
    },
    "googleSearch": {
        "excludeDomains": Concept.WEB_SEARCH,
        "searchTypes": _REFUSED,
        "timeRangeFilter": _REFUSED,
        "blockingConfidence": _DROPPED,
    },
    "functionDeclarations": {
        "name": _KEPT,
        "description": _KEPT,
        "parameters": _MAPPED,
        "parametersJsonSchema": _KEPT,
        "response": _IGNORED,
        "responseJsonSchema": _IGNORED,
        "behavior": _IGNORED,
    },
    "toolConfig": {
        "functionCallingConfig": Concept.FORCED_TOOLS,
        "retrievalConfig": _IGNORED,
        "includeServerSideToolInvocations": _IGNORED,
    },
    "functionCallingConfig": {
        "mode": Concept.NO_TOOLS,
        "allowedFunctionNames": Concept.ALLOWED_TOOLS,
        "streamFunctionCallArguments": _IGNORED,
    },
    "thinkingConfig": {
        "thinkingBudget": Concept.THINKING,
        "thinkingLevel": Concept.THINKING,
        "includeThoughts": _MAPPED,
    },
}


def camel(members: Json) -> Json:
    """The members under their names in camel case; the very same where they are so already."""
    if "_" not in "".join(members):
        return members
    return {_SNAKE.sub(lambda match: match[1].upper(), name): value for name, value in members.items()}
