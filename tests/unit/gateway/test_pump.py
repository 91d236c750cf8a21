"""A relay where something is waited for; what comes of each kind of answer is in test_relay."""

import asyncio

from kinference.gateway.access_log import End
from kinference.gateway.flow import Flow
from kinference.gateway.passage import PlainPassage
from kinference.gateway.pump import Pump
from kinference.gateway.relay import Relay
from kinference.vocabulary import Api
from tests.unit.gateway.fakes import FakeAnswer, FakeExchange, ManualClock


class Behind(FakeExchange):
    """Has taken what it was sent only once it is told to."""

    def __init__(self) -> None:
        super().__init__("/v1/chat/completions")
        self.status = 200
        self.takes = asyncio.Event()

    def send(self, chunk: bytes) -> bool:
        super().send(chunk)
        return False

    async def drained(self) -> None:
        await self.takes.wait()


def relayed() -> tuple[Relay, Behind]:
    exchange = Behind()
    flow = Flow(exchange, PlainPassage(Api.OPENAI_CHAT), ManualClock(), lambda _: None)
    return Relay(FakeAnswer(chunks=(b"{", b"}")), flow, 15.0), exchange


async def test_a_client_that_is_behind_is_waited_for_and_nothing_more_is_sent_meanwhile() -> None:
    relay, exchange = relayed()
    pumping = asyncio.create_task(Pump(relay).run())
    await asyncio.sleep(0.01)
    assert exchange.written == [b"{"]
    exchange.takes.set()
    await pumping
    assert (exchange.written, relay.end) == ([b"{", b"}"], End.OK)


async def test_what_went_its_way_before_is_not_sent_again() -> None:
    relay, exchange = relayed()
    assert not relay.at_once(b"{}")
    exchange.takes.set()
    await Pump(relay).run()
    assert (exchange.written, relay.end, exchange.is_finished) == ([b"{}"], End.OK, True)


async def test_a_relay_that_is_cancelled_is_over() -> None:
    ends: list[End] = []
    relay, _ = relayed()
    relay = Relay(relay.answer, relay.flow, 15.0, lambda _, end: ends.append(end))
    pumping = asyncio.create_task(Pump(relay).run())
    await asyncio.sleep(0.01)
    pumping.cancel()
    await asyncio.wait((pumping,))
    assert pumping.cancelled()
    assert ends == [End.CLIENT_CLOSED]
