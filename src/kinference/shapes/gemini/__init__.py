"""Gemini's generateContent, as Google's two hosts speak it."""

from kinference.shapes.dialects import Client, Destination
from kinference.shapes.gemini.answer import emit_answer, parse_answer
from kinference.shapes.gemini.emit import emit_request
from kinference.shapes.gemini.emit_stream import GeminiStreamEmitter
from kinference.shapes.gemini.fields import FIELDS
from kinference.shapes.gemini.parse_stream import GeminiStreamParser
from kinference.shapes.gemini.request import parse_request

CLIENT: Client = Client(FIELDS, parse_request, emit_answer, GeminiStreamEmitter)
DESTINATION: Destination = Destination(emit_request, parse_answer, GeminiStreamParser)
