"""The items of a streamed response that tell of MCP servers, each with the events of its life."""

from kinference.shapes import mcp_calls
from kinference.shapes.ir import Json, ServerCall, ServerTools
from kinference.shapes.openai_responses.items import ADDED, DONE, Events


class ServerCallItem:
    """A call of a server."""

    def __init__(self, suffix: str, call: ServerCall) -> None:
        self._id = mcp_calls.item_id(call, suffix)
        self._call = call

    def begun(self) -> Events:
        return [
            (ADDED, {"item": mcp_calls.to_responses(self._id, self._call, "in_progress")}),
            ("response.mcp_call.in_progress", {"item_id": self._id}),
        ]

    def grown(self, text: str) -> Events:  # noqa: ARG002 - it comes whole
        return []

    def done(self) -> Events:
        arguments = self._call.arguments or "{}"
        outcome = "failed" if self._call.has_failed else "completed"
        return [
            ("response.mcp_call_arguments.delta", {"item_id": self._id, "delta": arguments}),
            ("response.mcp_call_arguments.done", {"item_id": self._id, "arguments": arguments}),
            (f"response.mcp_call.{outcome}", {"item_id": self._id}),
            (DONE, {"item": self.whole()}),
        ]

    def whole(self) -> Json:
        return mcp_calls.to_responses(self._id, self._call)


class ServerToolsItem:
    """What a server offers."""

    def __init__(self, suffix: str, found: ServerTools) -> None:
        self._id = f"mcpl_{suffix}"
        self._found = found

    def begun(self) -> Events:
        nothing_yet = ServerTools(self._found.server)
        return [
            (ADDED, {"item": mcp_calls.listing_to_responses(self._id, nothing_yet)}),
            ("response.mcp_list_tools.in_progress", {"item_id": self._id}),
        ]

    def grown(self, text: str) -> Events:  # noqa: ARG002 - it comes whole
        return []

    def done(self) -> Events:
        return [("response.mcp_list_tools.completed", {"item_id": self._id}), (DONE, {"item": self.whole()})]

    def whole(self) -> Json:
        return mcp_calls.listing_to_responses(self._id, self._found)
