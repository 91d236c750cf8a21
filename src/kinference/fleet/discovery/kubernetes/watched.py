"""What is known of the objects that are watched: a list, and what has happened since. Pure."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias

import msgspec

from kinference.fleet.discovery.kubernetes.objects import UNREADABLE, Happened, Known, Listed, Status, of_one_family
from kinference.fleet.discovery.place import Place

OBJECTS_MAX: Final = 4096
LINE_BYTES_MAX: Final = 4 * 1024 * 1024
"""A cluster keeps no object over 1.5 MiB."""
_GONE: Final = 410

Reader: TypeAlias = Callable[[bytes | msgspec.Raw], Known]


class Expired(Exception):
    """The version that we know is too old to go on from: list anew."""


class Senseless(Exception):
    """An answer that is none, or too long."""


class Lines:
    """Lines of a stream, cut anywhere."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that are whole now. Raises Senseless."""
        *whole, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > LINE_BYTES_MAX:
            raise Senseless(f"an object is over {LINE_BYTES_MAX} bytes")
        return [line for line in whole if line.strip()]


class Watched:
    """Every object by its name, as of a version; "" where there is none to go on from."""

    def __init__(self, read: Reader) -> None:
        self._read = read
        self._objects: dict[str, tuple[Place, ...]] = {}
        self._places: Sequence[Place] | None = ()
        self.version = ""

    @property
    def places(self) -> Sequence[Place]:
        """What the objects stand for: the very same tuple as long as that has not changed."""
        if self._places is None:
            told = (place for name in sorted(self._objects) for place in self._objects[name])
            self._places = of_one_family(told)
        return self._places

    def replace(self, pages: Iterable[bytes]) -> None:
        """A list, page by page. Raises Senseless, and then nothing has changed."""
        objects: dict[str, tuple[Place, ...]] = {}
        version = ""
        for page in pages:
            listed = listed_in(page)
            version = listed.metadata.resource_version
            for raw in listed.items or ():
                known = self._known(raw)
                objects[known.name] = known.places
                _bound(objects)
        self._objects, self._places, self.version = objects, None, version

    def happened(self, line: bytes) -> None:
        """One line of a watch. Raises Expired or Senseless."""
        try:
            event = msgspec.json.decode(line, type=Happened)
            if event.type == "ERROR":
                status = msgspec.json.decode(event.object, type=Status)
        except UNREADABLE as error:
            raise Senseless("a line of the watch makes no sense") from error
        match event.type:
            case "ADDED" | "MODIFIED":
                known = self._known(event.object)
                if self._objects.get(known.name) != known.places:
                    self._objects[known.name], self._places = known.places, None
                _bound(self._objects)
            case "DELETED":
                known = self._known(event.object)
                self._objects.pop(known.name, None)
                self._places = None
            case "BOOKMARK":
                known = self._known(event.object)
            case "ERROR" if status.code == _GONE:
                self.version = ""
                raise Expired
            case "ERROR":
                raise Senseless(f"the watch ended with status {status.code}")
            case _:
                raise Senseless("the watch tells something unheard of")
        self.version = known.version or self.version

    def _known(self, raw: bytes | msgspec.Raw) -> Known:
        try:
            return self._read(raw)
        except UNREADABLE as error:
            raise Senseless("an object makes no sense") from error


def listed_in(page: bytes) -> Listed:
    """Raises Senseless."""
    try:
        return msgspec.json.decode(page, type=Listed)
    except UNREADABLE as error:
        raise Senseless("the answer is no list") from error


def _bound(objects: dict[str, tuple[Place, ...]]) -> None:
    if len(objects) > OBJECTS_MAX:
        raise Senseless(f"over {OBJECTS_MAX} objects match; choose labels that fewer pods have")
