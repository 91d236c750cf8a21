"""The options of msgspec structs, each set of them a base: a compiled module loses what its own class lines ask for.

Only modules that are compiled need these. Their class lines repeat `frozen=True` for the type checker.
"""

import msgspec


class Frozen(msgspec.Struct, frozen=True):
    """A value."""


class FrozenLeaf(msgspec.Struct, frozen=True, gc=False):
    """A value that can be in no cycle, of which the collector is spared."""


class FrozenRecord(msgspec.Struct, frozen=True, eq=False, gc=False):
    """What is known by its identity, does not change and can be in no cycle."""


class Entity(msgspec.Struct, eq=False):
    """What is known by its identity and changes."""


class EntityLeaf(msgspec.Struct, eq=False, gc=False):
    """What is known by its identity, changes and can be in no cycle."""
