"""Every case, by group."""

from kinference.conformance.case import Case
from kinference.conformance.cases import abort, access, budget, flow, length, pick, pull, push, report

GROUPS = (push, length, budget, pick, pull, report, abort, flow, access)
CASES: tuple[Case, ...] = tuple(value for group in GROUPS for value in vars(group).values() if isinstance(value, Case))
