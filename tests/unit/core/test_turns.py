"""Whose turn it is, by the work that each tenant has had served; what a line makes of it is in test_waiting."""

from collections.abc import Iterable

from kinference.core.request import Request
from kinference.core.turns import DEBTS_MAX, Turns, Waiting
from kinference.core.weigh import Prompt
from kinference.ids import Seconds
from kinference.vocabulary import Api


def one(number: int, tenant: str, work_ms: float = 1.0, due: Seconds = 0.0) -> Waiting:
    request = Request("m", Api.OPENAI_CHAT, (), 0, tenant=tenant)
    return Waiting(number, request, Prompt({}, {}), 0.0, 60.0, work_ms=work_ms, due=due)


def of(waiting: Iterable[Waiting]) -> Turns:
    turns = Turns()
    for each in waiting:
        turns.add(each)
    return turns


def serve_all(turns: Turns) -> list[int]:
    served = []
    while turns.tenants:
        first = next(turns.in_turn())
        served.append(first.number)
        turns.charge(first)
        turns.drop(first)
    return served


def test_whoever_has_had_less_work_served_goes_first() -> None:
    turns = of([*(one(number, "long", 3.0) for number in range(2)), *(one(number, "short") for number in range(2, 8))])
    assert serve_all(turns) == [0, 2, 3, 4, 1, 5, 6, 7]


def test_what_is_foreseen_is_what_happens() -> None:
    waiting = [one(number, "abc"[number % 3], 1.0 + number % 4, float(number % 5)) for number in range(30)]
    foreseen = [each.number for each in of(waiting).in_turn()]
    assert foreseen == serve_all(of(waiting))


def test_within_a_tenant_who_is_due_first_goes_first_also_after_a_move() -> None:
    waiting = [one(number, "t", due=float(number)) for number in range(3)]
    turns = of(waiting)
    turns.move(waiting[2], 0.5)
    assert serve_all(turns) == [0, 2, 1]


def test_to_leave_and_come_back_forgives_nothing() -> None:
    greedy, patient = one(0, "greedy", 10.0), one(1, "patient")
    turns = of([greedy, patient])
    turns.charge(greedy)
    turns.drop(greedy)
    turns.add(one(2, "greedy"))
    assert serve_all(turns) == [1, 2]


def test_no_more_debts_are_remembered_than_are_bounded() -> None:
    turns = of([one(0, "stays")])
    for number in range(1, 3 * DEBTS_MAX):
        waiting = one(number, f"t{number}", 5.0)
        turns.add(waiting)
        turns.charge(waiting)
        turns.drop(waiting)
        assert len(turns._debts) <= DEBTS_MAX
