"""The rules of routing as requests ask for them: where a model name leads, and who may go there."""

import re
from fnmatch import fnmatchcase, translate
from typing import Final

from kinference.core.policy import ModelRule, RoutingRules, Target, TenantRule, UnmatchedTenant
from kinference.core.request import Request
from kinference.ids import ObjectRef

NAME_MAX: Final = 512
"""A longer model or tenant name matches nothing: no pattern is run over what a client makes up at length."""
SHOWN_MAX: Final = 80


class Rulebook:
    """The rules made ready for use: an exact name before any glob, the most literal glob before the rest."""

    def __init__(self, rules: RoutingRules) -> None:
        self.models = rules.models
        self.unmatched = rules.unmatched_tenant
        self._allows_unmatched = rules.unmatched_tenant is UnmatchedTenant.ALLOW
        self._exact: dict[str, ModelRule] = {}
        globs: list[ModelRule] = []
        for rule in rules.models:
            if is_glob(rule.pattern):
                globs.append(rule)
            else:
                self._exact.setdefault(rule.pattern, rule)
        globs.sort(key=lambda rule: -_literals(rule.pattern))
        self._globs = [(re.compile(translate(rule.pattern)), rule) for rule in globs]
        self._tenants: dict[str, TenantRule] = {}
        for tenant_rule in rules.tenants:
            for tenant in tenant_rule.tenants:
                self._tenants.setdefault(tenant, tenant_rule)

    def resolve(self, model: str) -> tuple[Target, ...] | None:
        """The targets of a client's model name; None when no rule speaks of it."""
        rule = self._exact.get(model)
        if rule is not None:
            return rule.targets
        if len(model) <= NAME_MAX:
            for pattern, glob_rule in self._globs:
                if pattern.match(model):
                    return glob_rule.targets
        return None

    def tenant_rule(self, tenant: str) -> TenantRule | None:
        """The rule for a tenant: one that names it, else `*` for any that has a name."""
        rule = self._tenants.get(tenant) if tenant != "*" else None
        return rule or (self._tenants.get("*") if tenant else None)

    def may_use_model(self, tenant: str, model: str) -> bool:
        """True when the rules let a tenant use a model, whatever else they ask of it."""
        rule = self.tenant_rule(tenant)
        if rule is None:
            return self._allows_unmatched
        return rule.models is None or _matches(model, rule.models)

    def refusal(self, request: Request, rule: TenantRule | None) -> str:
        """Why this tenant may not ask for this, "" when it may."""
        if rule is None:
            if self._allows_unmatched:
                return ""
            tenant = shown(request.tenant)
            return f"policy: no tenant rule matches tenant {tenant}; add one, or set unmatched_tenant to allow"
        if rule.models is not None and not _matches(request.model, rule.models):
            return f"policy: tenant {shown(request.tenant)} may not use model {shown(request.model)}"
        if rule.classes is not None and request.qos not in rule.classes:
            return f"policy: tenant {shown(request.tenant)} may not send class {request.qos.name}"
        return ""


def may_go(rule: TenantRule | None, ref: ObjectRef) -> bool:
    """True when the tenant's rule lets it use this pool or backend, by its name or `namespace/name`."""
    if rule is None or rule.destinations is None:
        return True
    return _matches(ref.name, rule.destinations) or _matches(str(ref), rule.destinations)


def is_glob(pattern: str) -> bool:
    """True when the pattern stands for more than one name."""
    return any(sign in pattern for sign in "*?[")


def shown(name: str) -> str:
    """A name from a client as it may stand in a reason: quoted, escaped, short."""
    return repr(name if len(name) <= SHOWN_MAX else name[:SHOWN_MAX] + "...")


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return len(name) <= NAME_MAX and any(fnmatchcase(name, pattern) for pattern in patterns)


def _literals(pattern: str) -> int:
    return sum(sign not in "*?[]" for sign in pattern)
