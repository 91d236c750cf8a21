"""A queue of deadlines that all lie the same time ahead, so that the next one is always in front."""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Generic, TypeVar

from kinference.ids import Seconds

Key = TypeVar("Key", bound=int)


class Timeline(Generic[Key]):
    """Keys in the order in which their time began. Starting, stopping and finding the next due are all O(1).

    A plain dictionary would not do: finding its first key walks over every key that was removed in front of it.
    """

    def __init__(self, ttl: Seconds) -> None:
        self._ttl = ttl
        self._began: OrderedDict[Key, Seconds] = OrderedDict()

    def __len__(self) -> int:
        return len(self._began)

    def __contains__(self, key: object) -> bool:
        return key in self._began

    def start(self, key: Key, now: Seconds) -> None:
        """Begin the key's time, or begin it anew."""
        began = self._began
        if key in began:
            began.move_to_end(key)
        began[key] = now

    def pack(self) -> None:
        """A table stays as large as it once was: make a new one."""
        self._began = OrderedDict(self._began)

    def stop(self, key: Key) -> None:
        """Forget the key; one that is not here is left alone."""
        self._began.pop(key, None)

    def deadline(self) -> Seconds | None:
        """When the next key is due."""
        oldest = self._oldest()
        return None if oldest is None else self._began[oldest] + self._ttl

    def pop_due(self, now: Seconds) -> Iterator[Key]:
        """Remove and yield the keys whose time is over, oldest first. What is not taken stays due."""
        while (oldest := self._oldest()) is not None and self._began[oldest] + self._ttl <= now:
            del self._began[oldest]
            yield oldest

    def pop_oldest(self) -> Key | None:
        """Remove the key in front, due or not."""
        oldest = self._oldest()
        if oldest is not None:
            del self._began[oldest]
        return oldest

    def oldest_since(self, began_by: Seconds) -> Key | None:
        """The key in front, if its time began by then."""
        oldest = self._oldest()
        return oldest if oldest is not None and self._began[oldest] <= began_by else None

    def _oldest(self) -> Key | None:
        return next(iter(self._began), None)
