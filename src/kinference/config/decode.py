"""A strict decoder from YAML to the dataclass tree: it knows the types of the tree and nothing of its meaning.

It reads the node graph that PyYAML composes, never the values that YAML would construct, so that every value keeps its
line and its spelling: `no` is not turned into false, `1:30` not into 90. Every problem is collected.
"""

import difflib
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import yaml
from yaml.composer import Composer
from yaml.resolver import Resolver

from kinference.config.keys import Key, Kind, is_choice, item_of, keys_of, spellings, value_of
from kinference.config.problems import InvalidConfig
from kinference.config.scalars import Scalar
from kinference.config.values import Unreadable
from kinference.errors import ConfigError

DEPTH_MAX = 16
NODES_MAX = 100_000
"""Values decoded, aliases counted each time they are used: what stops a file of aliases of aliases."""
PROBLEMS_MAX = 50
SHOWN_MAX = 60

Decoded: TypeAlias = Any
"""A value of the type that was asked for, or BROKEN."""

BROKEN: Final = object()
"""Stands for a value whose problem has been noted."""

_TAG = "tag:yaml.org,2002:"
_STRING, _NULL = _TAG + "str", _TAG + "null"
_UNCLEAN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_PLAIN = {_TAG + kind for kind in ("str", "int", "float", "bool", "timestamp", "value", "merge")}


class _BoundedComposer(Composer, Resolver):
    """Composes nodes from a parser's events, and refuses to nest deeper than any configuration does."""

    def __init__(self, parser: yaml.SafeLoader | yaml.CSafeLoader) -> None:
        Composer.__init__(self)
        Resolver.__init__(self)
        self._depth = 0
        self.check_event, self.peek_event, self.get_event = parser.check_event, parser.peek_event, parser.get_event

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self._depth >= DEPTH_MAX:
            event: Any = self.peek_event()
            raise yaml.MarkedYAMLError(problem=f"nested deeper than {DEPTH_MAX}", problem_mark=event.start_mark)
        self._depth += 1
        node: yaml.Node | None = super().compose_node(parent, index)
        self._depth -= 1
        return node


def compose(text: str) -> yaml.Node | None:
    """The node graph of a YAML text; None when it is empty. Raises InvalidConfig for what is not YAML."""
    if yaml.__with_libyaml__:  # a fifth of the time; what it refuses the other may take, and else says why
        with suppress(yaml.YAMLError, ValueError):
            return _BoundedComposer(yaml.CSafeLoader(text)).get_single_node()
    try:
        return _BoundedComposer(yaml.SafeLoader(text)).get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = (error.problem or error.context or "cannot be read")[:200]
        raise InvalidConfig([ConfigError("yaml", problem, line=mark.line + 1 if mark else None)]) from None
    except (yaml.YAMLError, ValueError, OverflowError):
        # PyYAML lets ValueError and OverflowError out for escapes beyond Unicode and absurd version numbers.
        raise InvalidConfig([ConfigError("yaml", "a character or an escape that YAML does not allow")]) from None


class Decoder:
    """One pass over one file: the problems found, and the line of every path seen."""

    def __init__(self, scalars: Mapping[Kind, Scalar]) -> None:
        self._scalars = scalars
        self._nodes = 0
        self.problems: list[ConfigError] = []
        self.lines: dict[str, int] = {}

    def decode(self, kind: Kind, node: yaml.Node, path: str) -> Decoded:
        """The value of this type, or BROKEN."""
        self._nodes += 1
        if self._nodes > NODES_MAX:
            raise InvalidConfig([ConfigError(path, f"over {NODES_MAX} values", "aliases count each time")])
        self.lines[path] = line_of(node)
        if (item := item_of(kind)) is not None:
            return self._list(item, node, path)
        if (value := value_of(kind)) is not None:
            return self._mapping(value, node, path)
        if kind in self._scalars or is_choice(kind):
            return self._single(kind, node, path)
        return self._object(kind, node, path)

    def read(self, kind: Kind, text: str, path: str, line: int | None = None) -> Decoded:
        """A single value from its text, or BROKEN."""
        if is_choice(kind):
            return self._choice(kind, text, path, line)
        scalar = self._scalars[kind]
        found = "" if scalar.is_secret else f", found {shown(text)}"
        if not is_clean(text):
            return self._broken(path, f"control characters{found}", "take them out", line)
        try:
            return scalar.parse(text)
        except Unreadable as error:
            return self._broken(path, error.problem + found, error.fix, line)

    def _object(self, cls: type, node: yaml.Node, path: str) -> Decoded:
        keys = keys_of(cls)
        if not isinstance(node, yaml.MappingNode):
            return self._shorthand(cls, node, path)
        found: dict[str, Any] = {}
        for name, value_node in self._pairs(node, path):
            if (key := keys.get(name)) is None:
                self._broken(join(path, name), "no such key", nearest(name, keys), line_of(value_node))
            else:
                found[key.attribute] = self.decode(key.kind, value_node, join(path, name))
        for key in keys.values():
            if key.is_required and key.attribute not in found:
                found[key.attribute] = self._missing(key, node, path)
        return BROKEN if BROKEN in found.values() else cls(**found)

    def _shorthand(self, cls: type, node: yaml.Node, path: str) -> Decoded:
        short = next((key for key in keys_of(cls).values() if key.shorthand), None)
        if short is None or not isinstance(node, yaml.ScalarNode) or node.tag == _NULL:
            return self._mistaken(node, path, "a mapping", f"keys: {', '.join(keys_of(cls))}")
        value = self.decode(short.kind, node, path)
        return BROKEN if value is BROKEN else cls(**{short.attribute: value})

    def _list(self, item: Kind, node: yaml.Node, path: str) -> Decoded:
        if not isinstance(node, yaml.SequenceNode):
            return self._mistaken(node, path, "a list", "begin each item with a dash, or write []")
        items = [self.decode(item, each, f"{path}[{place}]") for place, each in enumerate(node.value)]
        return BROKEN if BROKEN in items else tuple(items)

    def _mapping(self, value: Kind, node: yaml.Node, path: str) -> Decoded:
        if not isinstance(node, yaml.MappingNode):
            return self._mistaken(node, path, "a mapping", "write NAME: VALUE lines, or {}")
        entries = {name: self.decode(value, each, join(path, name)) for name, each in self._pairs(node, path)}
        return BROKEN if BROKEN in entries.values() else MappingProxyType(entries)

    def _single(self, kind: Kind, node: yaml.Node, path: str) -> Decoded:
        called = "one of a choice" if is_choice(kind) else f"a {self._scalars[kind].called}"
        if not isinstance(node, yaml.ScalarNode) or node.tag not in _PLAIN:
            return self._mistaken(node, path, called, "see the reference of this key")
        if kind in self._scalars and self._scalars[kind].is_text and node.tag != _STRING:
            hidden = self._scalars[kind].is_secret
            found = "" if hidden else f", and {shown(node.value)} means something else in YAML"
            return self._broken(path, f"must be text{found}", "put it in quotes", line_of(node))
        return self.read(kind, node.value, path, line_of(node))

    def _choice(self, choice: type[Enum], text: str, path: str, line: int | None) -> Decoded:
        members = spellings(choice)
        if text not in members:
            return self._broken(path, f"no such choice: {shown(text)}", nearest(text, members), line)
        return members[text]

    def _pairs(self, node: yaml.MappingNode, path: str) -> Iterator[tuple[str, yaml.Node]]:
        seen: set[str] = set()
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode) or key_node.tag != _STRING or not is_clean(key_node.value):
                self._broken(
                    path, f"a key that is not text: {described(key_node)}", "put it in quotes", line_of(key_node)
                )
            elif key_node.value in seen:
                self._broken(join(path, key_node.value), "given twice", "keep one of them", line_of(key_node))
            else:
                seen.add(key_node.value)
                yield key_node.value, value_node

    def _missing(self, key: Key, node: yaml.Node, path: str) -> object:
        return self._broken(join(path, key.name), "missing", f"add it: {key.help}", line_of(node))

    def _mistaken(self, node: yaml.Node, path: str, wanted: str, fix: str) -> object:
        if isinstance(node, yaml.ScalarNode) and node.tag == _NULL:
            fix = f"leave the key out, or {fix}"
        return self._broken(path, f"must be {wanted}, found {described(node)}", fix, line_of(node))

    def _broken(self, path: str, problem: str, fix: str, line: int | None) -> object:
        if len(self.problems) < PROBLEMS_MAX:
            self.problems.append(ConfigError(path or "the file", problem, fix, line))
        return BROKEN


def join(path: str, name: str) -> str:
    """The path of a key under a path; a name that would confuse the reader is quoted."""
    step = name if name.replace("_", "").replace("-", "").isalnum() and len(name) <= SHOWN_MAX else shown(name)
    return f"{path}.{step}" if path else step


def nearest(word: str, known: Mapping[str, Any]) -> str:
    """What the writer may have meant, else what there is."""
    close = difflib.get_close_matches(word[:SHOWN_MAX], known, 1)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"


def shown(text: str) -> str:
    """A text fit for a message: quoted, escaped, of bounded length."""
    return repr(text if len(text) <= SHOWN_MAX else text[:SHOWN_MAX] + "...")


def described(node: yaml.Node) -> str:
    """What kind of thing stands here, without repeating it: it may be a secret in the wrong place."""
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    if isinstance(node, yaml.SequenceNode):
        return "a list"
    return "nothing" if node.tag == _NULL else "a single value"


def is_clean(text: str) -> bool:
    """No control character, line break or lone surrogate: none belongs in a name, a URL or a header."""
    return _UNCLEAN.search(text) is None


def line_of(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1
