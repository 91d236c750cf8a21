"""What is left to be done once a connection has ended."""

import asyncio

import pytest

from kinference.gateway.closing import closed


@pytest.mark.parametrize("fails", [False, True])
async def test_what_is_left_is_done_after_it_however_it_ended(fails: bool) -> None:
    done: list[str] = []

    async def close() -> None:
        await asyncio.sleep(0)
        done.append("closed")
        if fails:
            raise OSError

    closing = asyncio.create_task(closed(close(), lambda: done.append("left")))
    await asyncio.wait((closing,))
    assert done == ["closed", "left"]
    assert isinstance(closing.exception(), OSError) is fails
