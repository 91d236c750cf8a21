"""A streamed answer whose bytes its client is sent in the very calls that bring them: from its beginning, which is held
until it says something, to its end. Decides nothing that waits: where something is to be waited for, or was not as it
should be, it is left to a task, which goes on from there.
"""

import asyncio
from typing import Protocol

from kinference.gateway.attempts import Delivery
from kinference.gateway.dispatch import Dispatch
from kinference.gateway.flow import Flow
from kinference.gateway.opening import Opening
from kinference.gateway.relay import Relay
from kinference.ids import Seconds


class Host(Protocol):
    """Whose answer it is."""

    def start(self, delivery: Delivery) -> Relay | None:
        """Send its head. None where there is more to it than to relay it."""
        ...

    def settle(self, *, is_over: bool, failure: BaseException | None = None) -> None:
        """It was relayed to its end, or the rest is to be awaited."""
        ...


class Streaming:
    """One of them: a `Follower` of its answer."""

    _relay: Relay | None = None
    _flow: Flow | None = None
    """Where it goes, once what was held of it has gone."""
    _silence: asyncio.TimerHandle | None = None
    _is_left = False

    def __init__(self, host: Host, dispatch: Dispatch, answer: Opening, keep_alive: Seconds) -> None:
        self._host, self._dispatch, self._answer, self._keep_alive = host, dispatch, answer, keep_alive

    def begin(self) -> None:
        """Go on with what is here."""
        if not self._answer.follow(self):
            self._leave_it()
        elif not self._is_left:
            self._listen(self._keep_alive)

    def take(self, chunk: bytes) -> bool:
        flow = self._flow
        try:
            is_going_on = self._begins_with(chunk) if flow is None else flow.take(chunk)
        except Exception as error:  # noqa: BLE001 - task root: a call of the upstream's, where `service` meets it
            self._leave_it(error)
            return False
        if not is_going_on:
            self._leave_it()
        return is_going_on

    def _begins_with(self, chunk: bytes) -> bool:
        answer = self._answer
        overture = answer.hear(chunk)
        if not answer.is_plain:
            return False
        if not overture.is_over:
            return True
        delivery = self._dispatch.opened(overture)
        self._relay = relay = None if delivery is None else self._host.start(delivery)
        if relay is None:
            return False
        flow = relay.flow
        while (piece := answer.next_held()) is not None:
            if not flow.take(piece):
                return False
        self._flow = flow
        return True

    def ended(self, *, is_cut: bool) -> None:
        relay = self._relay
        try:
            is_over = relay is not None and not is_cut and relay.finish()
        except Exception as error:  # noqa: BLE001 - task root: a call of the upstream's, where `service` meets it
            self._leave_it(error)
            return
        if not is_over:
            self._leave_it()
            return
        self._leave()
        self._host.settle(is_over=True)

    def _leave_it(self, failure: BaseException | None = None) -> None:
        """To a task."""
        self._leave()
        self._host.settle(is_over=False, failure=failure)

    def stop(self) -> None:
        """Nobody is there for the rest of it."""
        self._leave()
        if self._relay is not None:
            self._relay.stop()

    def _leave(self) -> None:
        self._is_left = True
        self._answer.leave()
        if self._silence is not None:
            self._silence.cancel()

    # --- silence ---------------------------------------------------------------------------------

    def _listen(self, pause: Seconds) -> None:
        self._silence = asyncio.get_running_loop().call_later(pause, self._speak_up)

    def _speak_up(self) -> None:
        flow = self._flow
        if flow is None:
            self._leave_it()  # its client has to hear something
        elif flow.passage.can_keep_alive:
            self._listen(flow.speak_up(self._keep_alive))
