"""Anthropic Messages, as Anthropic, its hosts and engines speak it."""

from kinference.shapes.anthropic_messages.answer import emit_answer, parse_answer
from kinference.shapes.anthropic_messages.emit import emit_request
from kinference.shapes.anthropic_messages.emit_stream import MessagesStreamEmitter
from kinference.shapes.anthropic_messages.fields import FIELDS
from kinference.shapes.anthropic_messages.parse_stream import MessagesStreamParser
from kinference.shapes.anthropic_messages.request import parse_request
from kinference.shapes.dialects import Client, Destination

CLIENT: Client = Client(FIELDS, parse_request, emit_answer, MessagesStreamEmitter)
DESTINATION: Destination = Destination(emit_request, parse_answer, MessagesStreamParser)
