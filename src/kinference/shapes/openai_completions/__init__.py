"""OpenAI's older Completions. Only a client: no conversation can be written as a bare prompt."""

from kinference.shapes.dialects import Client
from kinference.shapes.openai_completions.answer import CompletionStreamEmitter, emit_answer
from kinference.shapes.openai_completions.request import FIELDS, parse_request

CLIENT: Client = Client(FIELDS, parse_request, emit_answer, CompletionStreamEmitter)
