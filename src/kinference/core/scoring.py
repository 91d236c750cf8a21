"""What a policy is made of: cost terms, one list for each kind of class, and a chooser."""

from dataclasses import dataclass

from kinference.core.choose import Chooser
from kinference.core.cost import CostTerm


@dataclass(frozen=True, slots=True)
class Scoring:
    """A policy ready for use."""

    terms: tuple[CostTerm, ...]
    batch_terms: tuple[CostTerm, ...]
    """For BATCH and DEFERRABLE."""
    chooser: Chooser
    by_prefix: bool = True
    """False: the policy looks at neither prompts nor caches, so nothing is hashed."""
    guards: bool = True
    """Whoever would have to evict running requests for this one is left out while another has room."""
    in_milliseconds: bool = False
    """The terms are times: what a tenant's money is worth in time can be added."""
