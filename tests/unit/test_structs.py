"""Structs keep the options of their base where the class line says nothing, as in a compiled module."""

import msgspec
import pytest

from kinference.structs import EntityLeaf, Frozen, FrozenLeaf, FrozenRecord


@pytest.mark.parametrize(
    ("base", "frozen", "equal", "collected"),
    [
        (Frozen, True, True, True),
        (FrozenLeaf, True, True, False),
        (FrozenRecord, True, False, False),
        (EntityLeaf, False, False, False),
    ],
)
def test_a_struct_has_the_options_of_its_base(
    base: type[msgspec.Struct], frozen: bool, equal: bool, collected: bool
) -> None:
    told = msgspec.defstruct("Told", [("field", int)], bases=(base,)).__struct_config__
    assert (told.frozen, told.eq, told.gc) == (frozen, equal, collected)
