"""YAML that somebody else wrote, as plain values: text, numbers, true and false, null, lists and mappings.

A file of a repository that nobody has looked at yet is read here. So its size once aliases and merge keys
are followed, and its depth, are bounded before any of it is built, and whatever the library trips over is
one typed error with the line. A date is text, as YAML 1.2 has it; other tags are refused.

Importing this takes a fifth of a second, so do it where a file is really read.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer, ComposerError
from ruamel.yaml.constructor import ConstructorError, DuplicateKeyError, SafeConstructor
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.events import AliasEvent
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode

MAX_NODES = 20_000
"""Values of a document, keys and what aliases repeat counted. The library takes some 0.3 ms for each."""
MAX_DEPTH = 64
LARGEST = 2**63
"""Of a whole number, on either side of 0: what a store and a protocol can hold."""

Version = tuple[int, int]

_TAG = "tag:yaml.org,2002:"
_TAGS = frozenset({"str", "int", "float", "bool", "null", "seq", "map", "merge", "value"})


class YamlError(ValueError):
    """A text that is no YAML, or none that is taken. ``line`` counts from 1; None where it is not known. No
    value of the document is quoted, which may be a secret."""

    def __init__(self, problem: str, line: int | None = None) -> None:
        super().__init__(f"line {line}: {problem}" if line else problem)
        self.problem = problem
        self.line = line


def load(text: str, version: Version = (1, 2)) -> Any:
    """The one document that a text holds; None where it is empty. A key that is given twice is an error.

    In version 1.2 ``id: no`` is text.

    :raises YamlError: it is not YAML, holds more than :data:`MAX_NODES` values or a tag that is not plain
        data, refers to itself, or has a number or a character that nobody could take.
    """
    with _readable():
        return _reader(version).load(text)


def compose(text: str, version: Version = (1, 2)) -> Node | None:
    """The same as nodes, which know where in the text they stand. :raises YamlError: as :func:`load`."""
    with _readable():
        root: Node | None = _reader(version).compose(text)
        return root


def _reader(version: Version) -> YAML:
    reader = YAML(typ="safe", pure=True)
    reader.version = version
    reader.Composer = _Composer
    reader.Constructor = _Constructor
    return reader


class _Composer(Composer):
    """Counts while it composes, what an alias repeats included: a few lines of them unfold without end."""

    def __init__(self, loader: Any = None) -> None:
        super().__init__(loader=loader)
        self.warn_double_anchors = False  # the later one counts, as YAML says
        self._nodes = 0
        self._sizes: dict[int, int] = {}
        """By a node's identity, with what it holds; of one that is not whole yet there is none."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.parser.peek_event()
        before = self._nodes
        self._count(1, event)
        if self.depth == MAX_DEPTH:
            raise ComposerError(None, None, f"it is nested more than {MAX_DEPTH} deep", event.start_mark)
        node = super().compose_node(parent, index)
        if not isinstance(event, AliasEvent):
            self._check(node)
            self._sizes[id(node)] = self._nodes - before
        elif (size := self._sizes.get(id(node))) is not None:
            self._count(size - 1, event)
        else:
            raise ComposerError(None, None, "an alias stands inside what it refers to", event.start_mark)
        return node

    def _count(self, more: int, event: Any) -> None:
        self._nodes += more
        if self._nodes > MAX_NODES:
            problem = f"it unfolds to more than {MAX_NODES} values (aliases?)"
            raise ComposerError(None, None, problem, event.start_mark)

    def _check(self, node: Any) -> None:
        kind = node.tag.removeprefix(_TAG)
        if kind == "timestamp":
            node.tag = f"{_TAG}str"
        elif kind not in _TAGS or not node.tag.startswith(_TAG):
            raise ComposerError(None, None, f"the tag {node.tag[:60]!r} is no plain data", node.start_mark)
        if isinstance(node, ScalarNode):
            try:
                node.value.encode()
            except UnicodeEncodeError:  # its escapes can write half a surrogate pair
                problem = "it holds a character that is no Unicode text"
                raise ComposerError(None, None, problem, node.start_mark) from None


class _Constructor(SafeConstructor):
    def construct_object(self, node: Any, deep: bool = False) -> Any:
        try:
            value = super().construct_object(node, deep=deep)
            if not isinstance(value, int) or abs(value) <= LARGEST:
                return value
            problem = "this number is too large"
        except (ValueError, LookupError, ArithmeticError):
            problem = f"this is no {node.tag.removeprefix(_TAG)}"
        raise ConstructorError(None, None, problem, node.start_mark)


@contextmanager
def _readable() -> Iterator[None]:
    try:
        yield
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        # ruamel's own text goes on with a link and advice on its API; its first line says it all.
        problem = (str(error.problem or error.context or "not YAML").splitlines() or ["not YAML"])[0]
        if isinstance(error, DuplicateKeyError):
            problem = problem.partition(" with value ")[0]  # which may be a secret
        raise YamlError(problem, mark.line + 1 if mark else None) from error
    except Exception as error:
        # Beside its own errors the library lets through what its conversions raise, assertions included.
        problem = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise YamlError(problem or type(error).__name__) from error


def pairs(node: Node | None) -> dict[str, Node]:
    """The values of a mapping node by those keys that are plain words; none of any other node."""
    members = node.value if isinstance(node, MappingNode) else ()
    return {key.value: value for key, value in members if isinstance(key, ScalarNode)}
