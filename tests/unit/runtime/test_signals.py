import asyncio
import os
import signal

from kinference.runtime.signals import STOPPING, deadly, each, ignored, requested


async def test_a_request_to_stop_can_be_waited_for() -> None:
    with requested(*STOPPING) as stop:
        assert not stop.is_set()
        os.kill(os.getpid(), signal.SIGTERM)
        async with asyncio.timeout(5):
            await stop.wait()


async def test_each_request_is_told_once() -> None:
    with requested(signal.SIGHUP) as hangup:
        source = each(hangup)
        async with asyncio.timeout(5):
            for _ in range(3):
                os.kill(os.getpid(), signal.SIGHUP)
                await anext(source)
        assert not hangup.is_set()
        await source.aclose()


async def test_afterwards_the_signal_does_what_it_did_before() -> None:
    with requested(signal.SIGUSR1):
        assert signal.getsignal(signal.SIGUSR1) != signal.SIG_DFL
    assert signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL


def test_a_deadly_signal_is_the_systems_own_until_afterwards() -> None:
    before = signal.getsignal(signal.SIGINT)
    with deadly(*STOPPING):
        assert {signal.getsignal(number) for number in STOPPING} == {signal.SIG_DFL}
    assert signal.getsignal(signal.SIGINT) == before


def test_an_ignored_signal_does_nothing_until_afterwards() -> None:
    before = signal.getsignal(signal.SIGHUP)
    with ignored(signal.SIGHUP):
        os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    assert signal.getsignal(signal.SIGHUP) == before
