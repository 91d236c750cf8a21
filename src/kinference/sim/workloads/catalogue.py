"""The workloads by name."""

from collections.abc import Callable, Mapping
from random import Random
from typing import TypeAlias

from kinference.sim.cluster.job import Arrival
from kinference.sim.workloads.sessions import agents, chats, tenants
from kinference.sim.workloads.shared import bursts, documents, system_prompts

Workload: TypeAlias = Callable[[Random, int, float], list[Arrival]]
"""Draws so many requests, so many a second on average. Its docstring is its help."""

WORKLOADS: Mapping[str, Workload] = {
    "system_prompts": system_prompts,
    "chats": chats,
    "agents": agents,
    "documents": documents,
    "bursts": bursts,
    "tenants": tenants,
}
