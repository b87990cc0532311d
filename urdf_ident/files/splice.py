"""Edits an XML text and leaves every other byte unchanged.

Reading and writing with an XML library loses comments, quotes, attribute order or line ends. Here the expat parser only
provides the byte positions of elements and attribute values; changes are inserted into the original text. Tags and
attributes are compared as written: like URDF readers, this module ignores namespaces.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from xml.parsers import expat

from ..errors import UrdfError

_OPENING = re.compile(rb"<[^\s/>]+")
_ATTRIBUTE = re.compile(rb"(\s+)([^\s=]+)\s*=\s*(\"[^\"]*\"|'[^']*')")
_CLOSING = re.compile(rb"\s*(/?)>")
_INDENT = re.compile(rb"[ \t]*")


@dataclass(frozen=True)
class Attribute:
    """An attribute's value and the byte range between its quotes."""

    value: str
    start: int
    end: int


@dataclass(frozen=True)
class Node:
    """An element and its position in the text.

    Attributes:
        tag: Tag as written, with its prefix.
        attributes: Attributes by name as written.
        children: Direct children, in document order.
        start: Byte of the opening tag's ``<``.
        names_end: Byte after the last attribute (or the tag's name), where an attribute can be added.
        separator: White space before the last attribute; one space if there is none.
        head_end: Byte after the opening tag's ``>``.
        tail: Byte of the closing tag's ``<``; equal to ``head_end`` in ``<tag/>``.
    """

    tag: str
    attributes: Mapping[str, Attribute]
    children: tuple[Node, ...]
    start: int
    names_end: int
    separator: str
    head_end: int
    tail: int
    end: int

    def get(self, name: str, default: str = "") -> str:
        """Returns the value of an attribute."""
        return self.attributes[name].value if name in self.attributes else default

    def all(self, tag: str) -> tuple[Node, ...]:
        """Returns all children with a tag, in document order."""
        return tuple(child for child in self.children if child.tag == tag)

    def only(self, tag: str, where: str) -> Node | None:
        """Returns the only child with a tag, if any; UrdfError if there are more, with ``where`` (file, link or joint)."""
        nodes = self.all(tag)
        if len(nodes) > 1:
            raise UrdfError(f"<{self.tag}> holds {len(nodes)} <{tag}> elements", where=where, remedy="keep one of them")
        return nodes[0] if nodes else None


def outline(text: str, where: str = "URDF") -> Node:
    """Locates every element of an XML text by its byte in UTF-8; well-formed XML without a DOCTYPE."""
    source = text.encode("utf-8")
    parser = expat.ParserCreate("utf-8")
    open_tags: list[tuple[str, dict[str, str], int, list[Node]]] = []
    roots: list[Node] = []

    def begin(tag: str, values: dict[str, str]) -> None:
        open_tags.append((tag, values, parser.CurrentByteIndex, []))

    def finish(_: str) -> None:
        tag, values, start, children = open_tags.pop()
        position = start + len(_OPENING.match(source, start)[0])  # type: ignore[index]
        attributes, separator = {}, b" "
        while match := _ATTRIBUTE.match(source, position):
            name, separator, position = match[2].decode("utf-8"), match[1], match.end()
            attributes[name] = Attribute(values[name], match.start(3) + 1, match.end(3) - 1)
        closing, tail = _CLOSING.match(source, position), parser.CurrentByteIndex
        head_end = closing.end()  # type: ignore[union-attr]
        ends = (head_end, head_end) if closing[1] else (tail, source.index(b">", tail) + 1)  # type: ignore[index]
        node = Node(tag, attributes, tuple(children), start, position, separator.decode(), head_end, *ends)
        (open_tags[-1][3] if open_tags else roots).append(node)

    parser.StartElementHandler, parser.EndElementHandler = begin, finish
    try:
        parser.Parse(source, True)
    except expat.ExpatError as error:
        raise UrdfError(
            f"XML does not parse ({expat.ErrorString(error.code)})", where=f"{where}, line {error.lineno}"
        ) from error
    return roots[0]


class Splicer:
    """Collects changes of an XML text and applies them at once.

    Args:
        text: The XML.
        where: File name for messages.

    Raises:
        UrdfError: The XML does not parse.
    """

    def __init__(self, text: str, where: str = "URDF") -> None:
        self.root = outline(text, where)
        self._source = text.encode("utf-8")
        self._cuts: list[tuple[int, int, bytes]] = []
        body = self._source[self.root.head_end : self.root.tail]
        self._line_end = "\r\n" if b"\r\n" in body else "\n" if b"\n" in body else ""
        self._quote = "'" if self._source.count(b"='") > self._source.count(b'="') else '"'
        self._unit = self._find_unit(self.root) if self._line_end else ""

    def set(self, node: Node, name: str, value: str) -> None:
        """Sets an attribute to a value without XML escapes; a missing one is added after the others, with their spacing."""
        if name in node.attributes:
            place = node.attributes[name]
            self._cut(place.start, place.end, value)
        else:
            self._cut(node.names_end, node.names_end, f"{node.separator}{name}={self._quote}{value}{self._quote}")

    def set_words(self, node: Node, name: str, words: Sequence[str | None]) -> None:
        """Changes white-space separated words of an existing attribute: one per word in the text, None leaves it unchanged."""
        place = node.attributes[name]
        spans = list(re.finditer(rb"\S+", self._source[place.start : place.end]))
        if len(spans) != len(words):  # white space as a character reference: rewrite the whole value
            old = place.value.split()
            self._cut(place.start, place.end, " ".join(o if w is None else w for o, w in zip(old, words, strict=True)))
            return
        for span, word in zip(spans, words, strict=True):
            if word is not None:
                self._cut(place.start + span.start(), place.start + span.end(), word)

    def append(self, node: Node, lines: Iterable[tuple[int, str]]) -> None:
        """Adds text as the last child of an element, with the file's indentation and line ends.

        Args:
            node: The element; ``<tag/>`` is opened.
            lines: (depth relative to the child's indentation, text with ``"`` as quotes) of each line.
        """
        indent = self._indent(node)
        first = next((child for child in node.children if self._starts_line(child)), None)
        inner = self._indent(first) if first is not None else indent + self._unit
        block = "".join(f"{self._line_end}{inner}{self._unit * depth}{line}" for depth, line in lines)
        block = block.replace('"', self._quote)
        if node.end == node.head_end:  # <tag/>
            slash = self._source.rindex(b"/", node.start, node.head_end)
            spaces = len(self._source[:slash]) - len(self._source[:slash].rstrip())
            self._cut(slash - spaces, node.end, f">{block}{self._line_end}{indent}</{node.tag}>")
            return
        at = node.head_end + len(self._source[node.head_end : node.tail].rstrip())
        last_line = "" if b"\n" in self._source[at : node.tail] else f"{self._line_end}{indent}"
        self._cut(at, at, block + last_line)

    def prepend(self, node: Node, line: str) -> None:
        """Adds one line before the first child of an element that has children; line: the text, with ``"`` as quotes."""
        first = node.children[0]
        gap = f"{self._line_end}{self._indent(first)}" if self._starts_line(first) else ""
        self._cut(first.start, first.start, line.replace('"', self._quote) + gap)

    def replace(self, node: Node, line: str) -> None:
        """Replaces an element; line: the new one, with ``"`` as quotes."""
        self._cut(node.start, node.end, line.replace('"', self._quote))

    def remove(self, node: Node) -> None:
        """Removes an element, including its line if nothing else is on it."""
        start, end = node.start, node.end
        if self._starts_line(node):
            after = self._source.find(b"\n", end)
            if after >= 0 and not self._source[end:after].strip():
                start, end = self._line_start(node), after + 1
        self._cuts.append((start, end, b""))

    def text(self) -> str:
        """Applies the changes.

        Raises:
            ValueError: Two changes overlap.
        """
        pieces, position = [], 0
        for start, end, new in sorted(self._cuts, key=lambda cut: cut[:2]):
            if start < position:
                raise ValueError("two changes of the same place in a document")
            pieces += [self._source[position:start], new]
            position = end
        return b"".join([*pieces, self._source[position:]]).decode("utf-8")

    def _cut(self, start: int, end: int, new: str) -> None:
        self._cuts.append((start, end, new.encode("utf-8")))

    def _line_start(self, node: Node) -> int:
        return self._source.rfind(b"\n", 0, node.start) + 1

    def _starts_line(self, node: Node) -> bool:
        begin = self._line_start(node)
        return begin > 0 and not self._source[begin : node.start].strip()

    def _indent(self, node: Node) -> str:
        if not self._line_end:
            return ""
        return _INDENT.match(self._source, self._line_start(node))[0].decode()  # type: ignore[index]

    def _find_unit(self, node: Node) -> str:
        """Indentation of one level, from the first element with a more deeply indented child."""
        indent = self._indent(node)
        for child in node.children:
            inner = self._indent(child)
            if self._starts_line(child) and inner.startswith(indent) and len(inner) > len(indent):
                return inner[len(indent) :]
        return next((unit for child in node.children if (unit := self._find_unit(child)) != "  "), "  ")
