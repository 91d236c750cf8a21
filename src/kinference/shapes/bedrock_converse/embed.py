"""Embeddings on Bedrock, where each maker's models are asked in a way of their own, and none in Converse's."""

from typing import Final

from kinference.shapes.answers import Answer, Counts
from kinference.shapes.gemini.embed import numbers_in
from kinference.shapes.ir import Json, Request
from kinference.shapes.lost import Untranslatable
from kinference.shapes.openai_chat.answer import count_in

PURPOSE: Final = "search_document"
"""What Cohere is told that the vectors are for, which OpenAI's API cannot say."""
TEXTS_MAX: Final = 96


def embeds_by_cohere(model: str) -> bool:
    """Whether a model is one of Cohere's."""
    return "cohere." in model


def emit_embeddings(request: Request) -> Json:
    """The body. Raises Untranslatable."""
    size = request.dimensions
    if embeds_by_cohere(request.model):
        if len(request.inputs) > TEXTS_MAX:
            raise Untranslatable(f"input: more than {TEXTS_MAX} texts, which this destination does not take at once")
        body: Json = {"texts": list(request.inputs), "input_type": PURPOSE}
        return body | ({"output_dimension": size} if size is not None else {})
    if "titan" not in request.model:
        raise Untranslatable("model: nobody has said how this one is asked for embeddings")
    if len(request.inputs) > 1:
        raise Untranslatable("input: this destination embeds one text at a time")
    return {"inputText": request.inputs[0]} | ({"dimensions": size} if size is not None else {})


def parse_embeddings(body: Json) -> Answer | None:
    """The vectors, in the order of the texts; None where the answer has none."""
    if isinstance(one := body.get("embedding"), list):
        return Answer(vectors=(numbers_in(one),), counts=Counts(prompt=count_in(body, "inputTextTokenCount")))
    several = body.get("embeddings")
    if isinstance(several, dict):  # by the type of number
        several = several.get("float")
    return Answer(vectors=tuple(map(numbers_in, several))) if isinstance(several, list) else None
