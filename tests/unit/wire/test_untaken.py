"""The account of bytes that no handler has taken."""

from kinference.wire.untaken import Untaken


def test_room_is_short_above_a_quarter_of_the_bound() -> None:
    account = Untaken(100)
    for held, is_short in ((25, False), (26, True), (25, False)):
        account.held = held
        assert account.is_short is is_short


def test_above_half_of_the_bound_more_than_an_even_share_is_refused() -> None:
    account = Untaken(100)
    account.connections = 5
    account.held = 50
    assert not account.refuses(50)
    account.held = 51
    assert [account.refuses(own) for own in (10, 11)] == [False, True]


def test_who_waits_goes_on_in_the_order_of_asking_as_far_as_there_is_room() -> None:
    account, went = Untaken(100), list[str]()

    def first() -> None:
        went.append("first")
        account.held += 10

    def second() -> None:
        went.append("second")

    account.held = 30
    account.wait(first)
    account.wait(second)
    account.wait(first)
    account.give_back(4)
    assert went == []
    account.give_back(1)
    assert went == ["first"], "who went on has filled the room again"
    account.give_back(10)
    assert went == ["first", "second"]


def test_who_leaves_is_not_called_and_who_asks_while_there_is_room_is_at_once() -> None:
    account, went = Untaken(100), list[str]()

    def gone() -> None:
        went.append("gone")

    def there() -> None:
        went.append("there")

    account.held = 30
    account.wait(gone)
    account.leave(gone)
    account.leave(gone)
    account.give_back(30)
    account.wait(there)
    assert went == ["there"]
