"""The one line that a refusal gives."""

from collections import Counter

from kinference.core.candidates import Options
from kinference.core.decision import Rejected
from kinference.core.filters import Verdict
from kinference.core.reasons import REASON_MAX, no_workers, unknown_pool
from kinference.core.request import Request
from kinference.ids import ObjectRef
from kinference.vocabulary import Api, Need, Outcome

REQUEST = Request("m", Api.OPENAI_CHAT, (), 0, tenant="t", pool=ObjectRef("default", "gpu"))


def reason(*verdicts: Verdict, rejected: tuple[Rejected, ...] = ()) -> tuple[Outcome, str]:
    return no_workers(REQUEST, Options([], list(rejected), Counter(verdicts)))


def test_nobody_at_all() -> None:
    outcome, text = reason()
    assert outcome is Outcome.NO_WORKERS
    assert text == "model 'm' has no endpoint in pool 'default/gpu'; add one to its pool, or see why none is discovered"


def test_the_causes_are_counted_and_the_last_one_gets_the_remedy() -> None:
    _, text = reason(Verdict.DRAINING, Verdict.NOT_READY, Verdict.NOT_READY)
    assert "2 not ready, 1 draining; " in text
    assert text.endswith(Verdict.DRAINING.remedy)


def test_those_without_the_model_are_named_only_when_nobody_has_it() -> None:
    assert "without the model" in reason(Verdict.NOT_SERVED)[1]
    assert "without the model" not in reason(Verdict.NOT_SERVED, Verdict.NOT_READY)[1]


def test_what_is_closed_to_the_tenant_is_policy() -> None:
    outcome, text = reason(Verdict.NOT_READY, Verdict.FORBIDDEN)
    assert outcome is Outcome.POLICY_REJECTED
    assert text.startswith("policy: tenant 't' may not use any destination of model 'm'")


def test_what_no_waiting_mends_is_told_apart_from_capacity_that_may_come_back() -> None:
    assert reason(Verdict.NOT_SERVED, Verdict.WRONG_API, Verdict.TOO_LONG)[1].startswith("context: ")
    assert reason(Verdict.NOT_SERVED, Verdict.WRONG_API)[1].startswith("api: ")
    for verdict in (Verdict.NOT_READY, Verdict.DRAINING, Verdict.TRIPPED):
        for hopeless in (Verdict.TOO_LONG, Verdict.WRONG_API):
            assert reason(verdict, hopeless)[1].startswith("no worker")


def test_open_circuits_say_why_and_stay_short() -> None:
    rejected = tuple(Rejected("d" * 300, f"{Verdict.TRIPPED.cause}: {number}") for number in range(50))
    _, text = reason(*[Verdict.TRIPPED] * 50, rejected=rejected)
    assert "50 with an open circuit" in text
    assert len(text) <= REASON_MAX


def test_an_unknown_pool_is_named() -> None:
    assert "'default/x'" in unknown_pool(ObjectRef("default", "x"))


def test_a_rule_about_money_is_told_as_quota_or_policy_and_before_missing_capacity() -> None:
    outcome, text = reason(Verdict.TRIPPED, Verdict.OVER_BUDGET, Verdict.FORBIDDEN)
    assert outcome is Outcome.POLICY_REJECTED
    assert text.startswith("quota: budget: tenant 't' has no money left for any destination of model 'm'")
    outcome, text = reason(Verdict.NOT_SERVED, Verdict.UNPRICED)
    assert outcome is Outcome.POLICY_REJECTED
    assert text.startswith("policy: tenant 't' minds money, and nobody knows the price of model 'm'; give the backend")


def test_a_need_that_nobody_has_is_named_and_told_apart_from_missing_capacity() -> None:
    options = Options([], [], Counter({Verdict.LACKS: 2}), {Need.STRUCTURED_OUTPUT, Need.AUDIO})
    outcome, text = no_workers(REQUEST, options)
    assert outcome is Outcome.NO_WORKERS
    assert text.startswith("needs: no worker for model 'm' in pool 'default/gpu': 2 lacking audio, structured output; ")
    options.verdicts[Verdict.NOT_READY] = 1
    assert no_workers(REQUEST, options)[1].startswith("no worker")
