"""Amazon Bedrock's Converse. Only a destination: no client of ours speaks it."""

from kinference.shapes.bedrock_converse.answer import parse_answer
from kinference.shapes.bedrock_converse.emit import emit_request
from kinference.shapes.bedrock_converse.frames import FrameReader
from kinference.shapes.bedrock_converse.parse_stream import ConverseStreamParser
from kinference.shapes.dialects import Destination

DESTINATION: Destination = Destination(emit_request, parse_answer, ConverseStreamParser, FrameReader)
