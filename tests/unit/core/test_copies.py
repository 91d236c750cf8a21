"""When a prefix is worth one more copy."""

from random import Random

import pytest

from kinference.core.candidates import Group, Options, Shortlist
from kinference.core.copies import COPY, LOSSES_MAX, Copies
from kinference.core.cost import Interference
from kinference.core.fleet import BackendSpec, Endpoint, EndpointSpec
from kinference.core.policies import make_policy
from kinference.core.policy import TargetKind
from kinference.core.prefix.hashing import BLOCK_BYTES
from kinference.core.prefix.index import PrefixIndex
from kinference.core.rates import Typical, cold_rates
from kinference.core.request import Request
from kinference.core.roster import Destination, ModelTraits
from kinference.core.scoring import Draw, weigh
from kinference.core.weigh import Weighing, look_up, make_case
from kinference.ids import Address, ObjectRef
from kinference.vocabulary import Api, QosClass

REF = ObjectRef("default", "pool")
SCORING = make_policy("expected_latency", {}).scoring()
HARM = Interference()
HEAD = Random(1).randbytes(160 * BLOCK_BYTES)


class Pool:
    """Engines that compete, what each holds, and the copies that are made."""

    def __init__(self, size: int) -> None:
        self.group, self.index, self.copies = Group(), PrefixIndex(), Copies()
        for slot in range(size):
            endpoint = Endpoint(EndpointSpec(REF, Address(f"h{slot}:1")), slot, 1)
            self.group.add(
                Destination(TargetKind.POOL, REF, f"h{slot}", endpoint), "m", cold_rates(Typical()), ModelTraits()
            )

    def beside(self, *requests: int) -> None:
        """So many decode at each."""
        self.group.standing = None
        for load, count in zip(self.group.loads, requests, strict=True):
            load.requests = count

    def ask(self, head: bytes = HEAD) -> Weighing:
        """Weigh a prompt that begins like this, and send it where it is best off."""
        request = Request("m", Api.OPENAI_CHAT, (head,), len(head) + 100)
        prompt = look_up(request, self.group, self.index)
        case = make_case(request, self.group, prompt, 0, 0.0)
        paid = self.copies.paid(prompt, self.group, case, HARM)
        extra = () if paid is None else ((COPY, paid),)
        weighed = weigh(case, Draw("expected_latency", SCORING, QosClass.INTERACTIVE, extra, Random(1)))
        weighing = Weighing(request, self.group, prompt, case, weighed, Shortlist([], Options()))
        self.copies.learn(prompt, self.group, case, weighed, HARM)
        self.index.insert(self.group.slots[weighed.chosen], prompt.blocks["m"])
        return weighing


def paid(weighing: Weighing) -> list[float]:
    return list(dict(weighing.weighed.columns).get(COPY, []))


def test_nothing_is_paid_before_anything_was_lost() -> None:
    pool = Pool(2)
    pool.beside(0, 0)
    assert [paid(pool.ask()) for _ in range(3)] == [[], [], []]
    assert len(pool.copies) == 0


def test_what_was_lost_where_the_prefix_is_pays_for_a_copy_elsewhere_by_the_share_that_it_would_serve() -> None:
    pool = Pool(2)
    pool.beside(0, 9)
    pool.ask()
    pool.beside(9, 0)
    first, second = pool.ask(), pool.ask()
    assert (paid(first), first.weighed.chosen, second.weighed.chosen) == ([], 0, 0)
    terms = {name: column for name, column in first.weighed.columns if name != "interference"}
    decode = 9 * 2_000.0 / 60.0 * 2 * 0.05  # of nine requests, whatever the length of the answer
    stalls = 9 * HARM.weight * first.case.work[0]
    assert terms["queue_wait"] == [0.0, 0.0]
    assert paid(second) == [0.0, pytest.approx(-(decode + stalls) / 2)]


def test_when_as_much_was_lost_as_a_copy_costs_it_is_made_and_paid_for() -> None:
    pool = Pool(2)
    pool.beside(0, 9)
    pool.ask()
    pool.beside(60, 0)
    asked = [pool.ask() for _ in range(40)]
    places = [one.weighed.chosen for one in asked]
    made = places.index(1)
    lost = asked[0].weighed.totals[0] - asked[0].weighed.totals[1]
    assert 0 not in places[made:], "both have it from then on, and one is calm"
    price = asked[0].case.work[1] - asked[0].case.work[0]
    assert lost < 0, "to compute it would not have been worth it for one alone"
    assert -paid(asked[made])[1] <= price
    assert made > 3
    assert len(pool.copies) == 0


def test_what_was_gained_where_the_prefix_is_makes_up_for_what_was_lost_there() -> None:
    pool = Pool(2)
    pool.beside(0, 9)
    pool.ask()
    pool.beside(9, 0)
    pool.ask()
    assert len(pool.copies) == 1
    pool.beside(0, 9)
    pool.ask()
    assert len(pool.copies) == 0


def test_who_begins_otherwise_has_nothing_paid() -> None:
    pool = Pool(2)
    pool.beside(0, 9)
    other = HEAD[::-1]
    pool.ask()
    pool.ask(other)
    pool.beside(9, 0)
    pool.ask()
    assert paid(pool.ask(other)) == []
    assert len(paid(pool.ask())) == 2


def test_an_engine_that_has_a_part_of_a_prefix_takes_that_part_of_a_share() -> None:
    def paid_where_the_second_has(part: float) -> float:
        pool = Pool(3)
        pool.beside(0, 9, 9)
        blocks = pool.ask().prompt.blocks["m"]
        pool.index.insert(1, blocks[: int(part * len(blocks))])
        pool.beside(9, 9, 0)
        pool.ask()
        return paid(pool.ask())[2]

    assert paid_where_the_second_has(0.5) == pytest.approx(paid_where_the_second_has(0.0) * 2.0 / 2.5)


def test_where_a_backend_competes_no_copy_is_reckoned_with() -> None:
    pool = Pool(2)
    backend = BackendSpec(ObjectRef("default", "b"), Api.OPENAI_CHAT, {"m": "m"})
    destination = Destination(TargetKind.BACKEND, backend.ref, "b", backend=backend)
    pool.group.add(destination, "m", cold_rates(Typical()), pool.group.traits["m"])
    pool.beside(0, 9, 9)
    pool.ask()
    pool.beside(9, 0, 9)
    pool.ask()
    assert len(pool.copies) == 0


def test_losses_are_bounded_and_those_of_the_prefix_used_longest_ago_are_forgotten() -> None:
    size = 257
    pool = Pool(size)
    heads = [number.to_bytes(4, "big") * (len(HEAD) // 4) for number in range(LOSSES_MAX // (size - 1) + 1)]
    for head in heads:
        pool.beside(0, *[9] * (size - 1))
        pool.ask(head)
        pool.beside(9, *[0] * (size - 1))
        pool.ask(head)
    assert len(pool.copies) == LOSSES_MAX
    assert paid(pool.ask(heads[0])) == []
    assert len(paid(pool.ask(heads[-1]))) == size
