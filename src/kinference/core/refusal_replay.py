"""Makes a recorded refusal again: destinations and rules of what was recorded, behind the very filters that refused."""

from dataclasses import replace

from kinference.core.candidates import Candidates
from kinference.core.decision import Decision
from kinference.core.fleet import Fleet
from kinference.core.policy import ModelRule, RoutingRules
from kinference.core.prefix.engine_blocks import EngineBlocks
from kinference.core.prefix.index import PrefixIndex
from kinference.core.reasons import unknown_pool
from kinference.core.refusal import Refusal, refuse
from kinference.core.roster import Roster
from kinference.core.rulebook import Rulebook
from kinference.vocabulary import Outcome

_LITERAL = str.maketrans({sign: f"[{sign}]" for sign in "*?["})
"""For a model's name that looks like a pattern."""


def replay_refusal(refusal: Refusal) -> Decision | None:
    """The same refusal, unless filters, rules or words have changed since. None: somebody could serve it now."""
    request, now = refusal.request, refusal.at
    if request.pool is not None and not refusal.is_pool_served:
        return Decision(Outcome.NO_WORKERS, unknown_pool(request.pool))
    rulebook, roster = Rulebook(_rules(refusal)), _roster(refusal)
    rule = rulebook.tenant_rule(request.tenant)
    refused = rulebook.refusal(request, rule)
    if refused:
        return Decision(Outcome.POLICY_REJECTED, refused)
    shortlist = Candidates(roster, rulebook).shortlist(request, rule, now)
    return None if shortlist.groups else refuse(request, shortlist.options, now)


def _roster(refusal: Refusal) -> Roster:
    index = PrefixIndex()
    roster = Roster(_fleet(refusal), index, EngineBlocks(index))
    roster.sync()
    circuits = {(one.spec.pool, one.spec.address): one.circuit for one in refusal.endpoints}
    tried = {one.spec.ref: one.circuit for one in refusal.backends}
    for destination in (*roster.endpoints, *roster.backends):
        endpoint = destination.endpoint
        known = tried[destination.ref] if endpoint is None else circuits[endpoint.spec.pool, endpoint.spec.address]
        destination.circuit = known.restored()
    for one in refusal.traits:
        traits = roster.traits(one.model)
        traits.bytes_per_token, traits.output_tokens = one.bytes_per_token, one.output_tokens
    return roster


def _fleet(refusal: Refusal) -> Fleet:
    fleet = Fleet()
    for pool in dict.fromkeys(one.spec.pool for one in refusal.endpoints):
        fleet.set_pool(pool, [replace(one.spec, models=None) for one in refusal.endpoints if one.spec.pool == pool])
    for one in refusal.endpoints:
        place = one.spec.pool, one.spec.address
        fleet.set_engine(*place, one.engine)
        fleet.set_models(*place, one.models, one.max_model_tokens)
        fleet.set_ready(*place, one.ready)
        fleet.set_draining(*place, one.draining)
    fleet.set_backends(one.spec for one in refusal.backends)
    return fleet


def _rules(refusal: Refusal) -> RoutingRules:
    request, rule = refusal.request, refusal.rule
    models = () if refusal.targets is None else (ModelRule(request.model.translate(_LITERAL), refusal.targets),)
    tenants = () if rule is None else (replace(rule, tenants=(request.tenant,)),)
    return RoutingRules(models, tenants, refusal.unmatched)
