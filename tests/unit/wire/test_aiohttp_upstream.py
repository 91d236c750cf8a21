"""What the aiohttp client carrier does in its own way; what every carrier must do is in tests/conformance/http."""

import pytest

from kinference.errors import UpstreamUnreachable
from kinference.ports import UpstreamRequest
from kinference.wire.aiohttp_upstream import AiohttpUpstream


@pytest.mark.parametrize("origin", ["http://", "http://h:notaport"])
async def test_what_the_library_cannot_use_as_an_address_is_unreachable(origin: str) -> None:
    async with AiohttpUpstream() as upstream:
        with pytest.raises(UpstreamUnreachable):
            await upstream.send(UpstreamRequest("GET", origin, "/", ()))
