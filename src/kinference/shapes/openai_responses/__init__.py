"""OpenAI Responses, without the state that its own servers keep."""

from kinference.shapes.dialects import Client, Destination
from kinference.shapes.openai_responses.answer import ECHOED, emit_answer, parse_answer
from kinference.shapes.openai_responses.emit import emit_request
from kinference.shapes.openai_responses.emit_stream import ResponsesStreamEmitter
from kinference.shapes.openai_responses.fields import FIELDS
from kinference.shapes.openai_responses.parse_stream import ResponsesStreamParser
from kinference.shapes.openai_responses.request import parse_request

CLIENT: Client = Client(FIELDS, parse_request, emit_answer, ResponsesStreamEmitter, ECHOED)
DESTINATION: Destination = Destination(emit_request, parse_answer, ResponsesStreamParser)
