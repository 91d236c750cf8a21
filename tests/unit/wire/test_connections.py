import asyncio

import pytest

from kinference.wire.connections import Connections, peer_of


def test_there_is_room_up_to_the_bound_and_again_when_one_has_gone() -> None:
    held = Connections[int](2, 2)
    for guest in (1, 2):
        assert held.admits("10.0.0.1")
        held.add(guest, f"10.0.0.{guest}")
    assert not held.admits("10.0.0.3")
    assert (len(held), list(held)) == (2, [1, 2])
    held.discard(1)
    assert held.admits("10.0.0.3")


def test_a_peer_takes_no_more_than_its_share() -> None:
    held = Connections[int](10, 1)
    held.add(1, "10.0.0.1")
    assert not held.admits("10.0.0.1")
    assert held.admits("10.0.0.2")
    held.discard(1)
    held.discard(1)
    assert held.admits("10.0.0.1")
    assert not held._counts


@pytest.mark.parametrize(
    ("first", "second", "is_one"),
    [
        ("2001:db8::1", "2001:db8::ffff:2", True),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
        ("fe80::1%eth0", "fe80::2", True),
        ("::ffff:10.0.0.1", "10.0.0.1", True),
        ("::ffff:10.0.0.1", "::ffff:10.0.0.2", False),
    ],
)
def test_addresses_that_one_holder_may_choose_between_are_one_peer(first: str, second: str, is_one: bool) -> None:
    held = Connections[int](10, 1)
    held.add(1, first)
    assert held.admits(second) is not is_one


def test_peers_without_an_address_are_bounded_in_all_only() -> None:
    held = Connections[int](3, 1)
    for guest in range(3):
        assert held.admits("")
        held.add(guest, "")
    assert not held.admits("")


async def test_a_peer_without_an_address_has_none() -> None:
    class Unix(asyncio.Transport):
        def get_extra_info(self, name: str, default: object = None) -> object:
            return "" if name == "peername" else default

    assert peer_of(Unix()) == ""


async def test_who_closes_them_waits_until_the_last_is_gone() -> None:
    held = Connections[int](10, 10)
    await held.wait_empty(60)
    for guest in (1, 2):
        held.add(guest, "10.0.0.1")
    waiting = asyncio.ensure_future(held.wait_empty(60))
    held.discard(1)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not waiting.done()
    held.discard(2)
    await waiting
    held.add(3, "10.0.0.1")
    await held.wait_empty(0.001)
    assert len(held) == 1
