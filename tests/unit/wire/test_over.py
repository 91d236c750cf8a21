"""What is over at once, awaited."""

import pytest

from kinference.wire.over import OVER, Over


def test_it_is_over_in_the_first_step_and_again() -> None:
    async def wait() -> str:
        await OVER
        await OVER
        await Over()
        return "done"

    with pytest.raises(StopIteration, match="done"):
        wait().send(None)
