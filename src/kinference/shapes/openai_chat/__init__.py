"""OpenAI Chat Completions, as OpenAI and the engines that follow it speak it."""

from kinference.shapes.dialects import Client, Destination
from kinference.shapes.openai_chat.answer import emit_answer, parse_answer
from kinference.shapes.openai_chat.emit import emit_request
from kinference.shapes.openai_chat.emit_stream import ChatStreamEmitter
from kinference.shapes.openai_chat.fields import FIELDS
from kinference.shapes.openai_chat.parse_stream import ChatStreamParser
from kinference.shapes.openai_chat.request import parse_request

CLIENT: Client = Client(FIELDS, parse_request, emit_answer, ChatStreamEmitter)
DESTINATION: Destination = Destination(emit_request, parse_answer, ChatStreamParser)
