"""Who is next in the line: classes, tenants in turn, due times, ageing, and who is refused first."""

import tracemalloc
from itertools import islice
from random import Random

from msgspec.structs import replace

from kinference.core.alike import FOLLOWING_MAX
from kinference.core.fleet import EndpointSpec, Fleet
from kinference.core.pick import Router
from kinference.core.policy import RoutingRules
from kinference.core.request import Request
from kinference.core.turns import DEBTS_MAX, Waiting
from kinference.core.waiting import (
    AGED_TURN,
    CLASS_RULES,
    AdmissionRules,
    WaitingLine,
)
from kinference.core.weigh import Weighing
from kinference.ids import Address, ObjectRef, Seconds
from kinference.vocabulary import AbortReason, Api, QosClass

POOL = ObjectRef("default", "pool")
CHAT = Request("m", Api.OPENAI_CHAT, (b"x" * 4_000,), 4_000)
INTERACTIVE, BATCH, DEFERRABLE = QosClass


class Line:
    """A line, and requests of any size put into it."""

    def __init__(self) -> None:
        fleet = Fleet()
        fleet.set_pool(POOL, [EndpointSpec(POOL, Address(f"h{number}:1"), models=("m",)) for number in range(2)])
        for number in range(2):
            fleet.set_ready(POOL, Address(f"h{number}:1"), ready=True)
        self._router = Router(fleet, RoutingRules(), Random(1))
        self.line = WaitingLine(AdmissionRules())
        self._number = 0

    def weigh(self, size: int = 4_000, tenant: str = "", qos: QosClass = INTERACTIVE) -> Weighing:
        request = replace(CHAT, prompt=(b"x" * size,), prompt_bytes=size, tenant=tenant, qos=qos)
        weighing = self._router.weigh(request, 0.0)
        assert isinstance(weighing, Weighing)
        return weighing

    def add(
        self, at: Seconds = 0.0, size: int = 4_000, tenant: str = "", qos: QosClass = INTERACTIVE, until: Seconds = 60.0
    ) -> Waiting:
        weighing = self.weigh(size, tenant, qos)
        self._number += 1
        waiting = Waiting(self._number, weighing.request, weighing.prompt, at, until)
        self.line.add(waiting, weighing)
        return waiting

    def quicken(self) -> None:
        """An engine answers at once."""
        self._number += 1
        decision = self._router.decide(replace(CHAT, prompt=(bytes([self._number]) * 4_000,)), 0.0)
        self._router.first_token(decision.reservation, 1.0, 200, 0.0)
        self._router.abort(decision.reservation, AbortReason.UNSPECIFIED, 0.0)

    def ask(self, prompt: bytes, at: Seconds = 0.0) -> Waiting:
        """One with this very prompt is held."""
        weighing = self._router.weigh(replace(CHAT, prompt=(prompt,), prompt_bytes=len(prompt)), at)
        assert isinstance(weighing, Weighing)
        self._number += 1
        waiting = Waiting(self._number, weighing.request, weighing.prompt, at, at + 60.0)
        self.line.add(waiting, weighing)
        return waiting

    def leave(self, waiting: Waiting) -> str:
        """It goes where it is best off now. Returns where."""
        weighing = self._router.weigh(waiting.request, 0.0, waiting.prompt)
        assert isinstance(weighing, Weighing)
        self.line.serve(waiting)
        self.line.follow(weighing)
        return weighing.group.names[weighing.weighed.chosen]

    def order(self, now: Seconds = 0.0) -> list[Waiting]:
        return list(self.line.in_turn(now))


def test_equal_work_leaves_in_the_order_of_its_coming() -> None:
    line = Line()
    late, early = line.add(at=2.0), line.add(at=1.0)
    assert line.order() == [early, late]


def test_short_work_overtakes_long_work_that_has_only_just_come() -> None:
    line = Line()
    long, short = line.add(at=0.0, size=400_000), line.add(at=0.1, size=400)
    assert line.order() == [short, long]


def test_long_work_ages_and_then_goes_before_short_work() -> None:
    line = Line()
    long = line.add(at=0.0, size=40_000)
    short = line.add(at=100 * CLASS_RULES[INTERACTIVE].objective_s, size=400)
    assert line.order() == [long, short]


def test_interactive_goes_before_batch_and_batch_before_deferrable() -> None:
    line = Line()
    last, second, first = (line.add(qos=qos) for qos in (DEFERRABLE, BATCH, INTERACTIVE))
    assert line.order() == [first, second, last]


def test_batch_that_has_waited_out_its_objective_gets_one_turn_in_so_many() -> None:
    line = Line()
    aged = line.add(at=0.0, qos=BATCH)
    now = CLASS_RULES[BATCH].objective_s
    interactive = [line.add(at=now) for _ in range(AGED_TURN)]
    assert line.order(now)[0] is aged
    line.line.serve(interactive[0])
    assert line.order(now)[0] is interactive[1]
    assert line.order(now / 2)[0] is interactive[1]


def test_tenants_take_turns_whatever_one_of_them_brings() -> None:
    line = Line()
    for _ in range(20):
        line.add(tenant="many")
    few = [line.add(tenant="few") for _ in range(3)]
    served = []
    for _ in range(8):
        first = line.order()[0]
        line.line.serve(first)
        served.append(first)
    assert set(few) <= set(served)


def test_a_tenant_of_long_prompts_gets_no_more_work_served_than_one_of_short_ones() -> None:
    line = Line()
    for _ in range(10):
        line.add(tenant="long", size=200_000)
    short = [line.add(tenant="short", size=10_000) for _ in range(30)]
    served: list[Waiting] = []
    while not set(short) <= set(served):
        served.append(line.order()[0])
        line.line.serve(served[-1])
    assert len(served) - len(short) <= 3, "as much work as thirty short ones, and one begun before and after"


def test_who_comes_one_by_one_gains_nothing_by_it_and_who_stayed_away_saves_nothing_up() -> None:
    line = Line()
    for _ in range(40):
        line.add(tenant="many", size=20_000)
    turns = 0
    for number in range(20):
        single = line.add(tenant="single", size=100_000) if number % 2 == 0 and turns == number // 2 else None
        first = line.order()[0]
        line.line.serve(first)
        if single is not None and first is single:
            turns += 1
    assert turns <= 5, "each asks for as much as five of the others"
    late = [line.add(tenant="late", size=20_000) for _ in range(3)]
    assert line.order()[:4].count(late[0]) == 1
    assert not set(late) <= set(line.order()[:4])


def test_tenants_without_end_leave_no_more_debts_than_are_bounded() -> None:
    line = Line()
    tracemalloc.start()
    try:
        line.add(tenant="stays", size=400_000)
        before = tracemalloc.get_traced_memory()[0]
        for number in range(3 * DEBTS_MAX):
            line.line.serve(line.add(tenant=f"tenant {number}", size=400))
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < 1_000 * DEBTS_MAX


def test_a_look_ahead_follows_the_same_turns_as_serving_does() -> None:
    line = Line()
    for number in range(6):
        line.add(tenant=f"tenant {number % 3}", size=1_000 * (number + 1))
    foreseen = line.order()
    served = []
    while len(line.line):
        first = next(line.line.in_turn(0.0))
        line.line.serve(first)
        served.append(first)
    assert served == foreseen


def test_who_left_is_in_no_order_and_counts_for_nothing() -> None:
    line = Line()
    gone, stays = line.add(tenant="a"), line.add(tenant="b")
    line.line.drop(gone)
    assert line.order() == [stays]
    assert gone not in line.line
    assert line.line.tenants() == 1
    line.line.drop(stays)
    assert line.line.work_ms == 0.0
    assert not line.line.bound_ms
    assert line.line.counts() == {}


def test_the_overdue_are_told_once_they_are_and_not_those_who_left() -> None:
    line = Line()
    first, second, gone = line.add(until=5.0), line.add(until=6.0), line.add(until=4.0)
    line.line.drop(gone)
    assert list(line.line.overdue(4.5)) == []
    assert list(line.line.overdue(5.0)) == [first]
    assert list(line.line.overdue(10.0)) == [second]


def test_the_least_class_is_refused_first_and_never_for_its_own_kind() -> None:
    line = Line()
    batch, deferrable = line.add(qos=BATCH), line.add(qos=DEFERRABLE)
    assert line.line.to_shed(INTERACTIVE) is deferrable
    assert line.line.to_shed(DEFERRABLE) is None
    line.line.drop(deferrable)
    assert line.line.to_shed(INTERACTIVE) is batch
    assert line.line.to_shed(BATCH) is None


def test_work_that_is_bound_for_one_destination_sends_the_next_to_another() -> None:
    line = Line()
    bound = [line.add(size=4_000).bound_for for _ in range(4)]
    assert len(set(bound)) == 2
    assert sum(line.line.bound_ms.values()) > 0


def test_a_long_line_is_only_read_as_far_as_it_is_looked_at() -> None:
    line = Line()
    for number in range(50):
        line.add(tenant=f"tenant {number}")
    assert len(list(islice(line.line.in_turn(0.0), 5))) == 5


def test_how_long_the_first_has_waited_is_known() -> None:
    line = Line()
    assert line.line.longest_s(9.0) == 0.0
    line.add(at=2.0)
    assert line.line.longest_s(9.0) == 7.0


def test_who_has_left_leaves_nothing_behind_however_long_others_wait() -> None:
    line = Line()
    line.add(until=60.0)
    weighing = line.weigh(size=4_000)
    tracemalloc.start()
    try:
        for number in range(100, 3_100):
            request = replace(weighing.request, prompt=(b"x" * 1_000 + str(number).encode(),))
            waiting = Waiting(number, request, weighing.prompt, 0.0, until=3_600.0)
            line.line.add(waiting, weighing)
            line.line.drop(waiting)
        assert tracemalloc.get_traced_memory()[0] < 100_000
    finally:
        tracemalloc.stop()
    assert list(line.line.overdue(60.0)) == line.order()


def test_people_see_classes_and_tenants_the_longest_wait_first() -> None:
    line = Line()
    line.add(qos=BATCH, tenant="a")
    line.add(qos=INTERACTIVE, tenant="b")
    line.add(qos=INTERACTIVE, tenant="b")
    groups = {(one.qos, one.tenant): one.requests for one in line.line.groups(5.0)}
    assert groups == {(BATCH, "a"): 1, (INTERACTIVE, "b"): 2}
    waits = [one.longest_s for one in line.line.groups(5.0)]
    assert waits == sorted(waits, reverse=True)
    assert sum(one.work_ms for one in line.line.groups(5.0)) == line.line.work_ms


def test_long_work_is_overtaken_for_no_longer_than_its_objective_after_what_was_held_before_it() -> None:
    line = Line()
    objective_s = CLASS_RULES[INTERACTIVE].objective_s
    for number in range(20):
        line.add(at=0.0, size=40_000 + number)
    before_s = min(line.line.bound_ms.values()) / 1e3
    long = line.add(at=0.0, size=4_000_000)
    assert objective_s < long.due <= objective_s + before_s + 1.0
    assert line.order()[-1] is long
    late = line.add(at=long.due + 0.1, size=400)
    assert line.order()[-2:] == [long, late]


def test_those_that_came_before_an_engine_was_known_to_be_quick_go_before_equal_ones_that_come_then() -> None:
    line = Line()
    line.quicken()
    early = [line.add(at=0.0) for _ in range(3)]
    for _ in range(50):
        line.quicken()
    late = line.add(at=0.01)
    assert early[0].work_ms > 10 * late.work_ms
    assert line.order() == [*early, late]


HEAD, OTHER_HEAD = b"a" * 400_000, b"b" * 400_000


def test_those_that_begin_like_one_that_left_are_due_sooner_and_bound_for_where_it_went() -> None:
    line = Line()
    first = line.ask(HEAD + b"1" * 400)
    apart, alike = line.ask(OTHER_HEAD + b"3" * 400), line.ask(HEAD + b"2" * 400)
    assert line.order() == [first, apart, alike]
    place = line.leave(first)
    assert line.order() == [alike, apart]
    assert alike.bound_for == place
    assert alike.uncached < 500
    assert abs(sum(line.line.bound_ms.values()) - alike.work_ms - apart.work_ms) < 1e-6


def test_each_of_a_conversation_is_due_sooner_as_the_one_before_it_leaves() -> None:
    line = Line()
    turns = [line.ask(HEAD * number) for number in (1, 2, 3)]
    for number, turn in enumerate(turns[:2]):
        before = turns[number + 1].uncached
        line.leave(turn)
        assert turns[number + 1].uncached < before - 90_000


def test_many_that_begin_alike_move_up_in_portions() -> None:
    line = Line()
    first, second, *others = [line.ask(HEAD + str(number).encode() * 400) for number in range(FOLLOWING_MAX + 12)]
    line.leave(first)
    assert sum(one.uncached < 2_000 for one in (second, *others)) == FOLLOWING_MAX
    line.leave(second)
    assert all(one.uncached < 2_000 for one in others)


def test_what_has_no_whole_block_or_is_held_already_waits_for_no_other() -> None:
    line = Line()
    first = line.ask(HEAD)
    short, again = line.ask(b"hello"), line.ask(HEAD)
    line.leave(first)
    assert short.uncached < 100
    assert again.uncached < 2_000
    assert line.order() == [short, again]
