import sys

from kinference.ids import Address, ObjectRef, StreamId
from kinference.packed import packed, unpacked
from kinference.ports import LocalTarget, PickArguments
from kinference.vocabulary import QosClass

SMALL_MAX = 512
"""Bytes of an object that Python's own allocator takes, its header included."""


def test_what_was_packed_is_one_object_that_is_not_small_and_comes_out_the_same() -> None:
    for value in ((1, None, "text", 2.5), list(range(5_000)), LocalTarget(Address("h:1"))):
        data = packed(value)
        assert sys.getsizeof(data) > SMALL_MAX
        assert unpacked(data) == value


def test_a_member_of_an_enum_comes_out_as_itself() -> None:
    arguments = PickArguments(StreamId(9), "acme", pool=ObjectRef("default", "gpu"), qos=QosClass.BATCH)
    same = unpacked(packed(arguments))
    assert same == arguments
    assert same.qos is QosClass.BATCH
