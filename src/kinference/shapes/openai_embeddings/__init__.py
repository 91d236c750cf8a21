"""OpenAI Embeddings: texts in, vectors out, and no conversation."""

from kinference.shapes.dialects import Client
from kinference.shapes.openai_chat.emit_stream import ChatStreamEmitter
from kinference.shapes.openai_embeddings.answer import ECHOED, emit_answer
from kinference.shapes.openai_embeddings.request import FIELDS, parse_request

CLIENT: Client = Client(FIELDS, parse_request, emit_answer, ChatStreamEmitter, ECHOED)
