"""Names as text of other languages, where each form is read back as the same name and nothing else; what a page may load.

Whatever this package writes a name into (programs, YAML, pages, pictures, messages) takes it from here. Python, YAML and C++
forms escape everything that is not printable, which includes all line breaks (U+0085, U+2028 and U+2029 too) and marks that
change the direction of text.
"""

from __future__ import annotations

import shlex
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any
from unicodedata import category

#: Characters of a name that is accepted, and that messages show.
LONGEST_NAME, MOST_SHOWN = 500, 200
#: Characters that begin or end texts in other languages, and that escape others there.
_DELIMITERS = "\"'`\\"
#: Bytes that C++ reads as themselves within a string, in every encoding of the source; ``?`` begins trigraphs.
_PLAIN_CPP = frozenset(byte for byte in range(0x20, 0x7F) if chr(byte) not in '"\\?')


def is_harmless(name: str) -> bool:
    """Whether a name is printable text without quotes and backslashes, which other languages may not read as a name."""
    return is_one_line(name) and not any(letter in _DELIMITERS for letter in name)


def is_one_line(name: str) -> bool:
    """Whether a name has no line breaks, control characters, marks of direction, and halves of characters."""
    return all(letter.isprintable() or category(letter) == "Zs" for letter in name)


def printable(text: str) -> str:
    """One line of UTF-8, with escapes for all that is not printable: ``a\\n`` becomes ``a\\\\n``; half characters too."""
    return text if text.isprintable() else "".join(letter if letter.isprintable() else _escape(letter) for letter in text)


def shown(name: str) -> str:
    """A name for messages, :func:`printable`; of a long one its first :data:`MOST_SHOWN` characters and its length."""
    text = printable(name[: MOST_SHOWN + 1])
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}… ({len(name)} characters)"


def python_string(name: str) -> str:
    """A Python string literal in double quotation marks; what is between them may also stand in a docstring."""
    return '"' + "".join(_escaped(letter) for letter in name) + '"'


def yaml_string(name: str) -> str:
    """A YAML scalar in double quotation marks, for block and flow style."""
    return python_string(name)  # the escapes of both languages that are used here have the same meaning


def comment(name: str) -> str:
    """A quoted name within a comment that ends with the line; never a backslash at its end, which would continue one of C++."""
    return python_string(name)


def cpp_string(text: str) -> str:
    """A C++ string literal of the text in UTF-8, in ASCII: octal escapes, which end after three digits."""
    return '"' + "".join(chr(byte) if byte in _PLAIN_CPP else f"\\{byte:03o}" for byte in text.encode("utf-8")) + '"'


def markup(name: str) -> str:
    """Text of an element or a quoted attribute in HTML, SVG and XML; white space that attributes would lose is kept."""
    return "".join(f"&#{ord(letter)};" if letter in "\t\n\r" else letter for letter in escape(name))


def json_in_script(document: str) -> str:
    """A JSON document as content of an HTML ``<script>`` element, which no text in it can end."""
    return document.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def csv_cell(name: str) -> str:
    """A cell of a CSV file with commas, quoted if it contains a comma or a quotation mark."""
    return '"' + name.replace('"', '""') + '"' if "," in name or '"' in name else name


def figure_text(name: str) -> str:
    """Text of a matplotlib figure: dollar signs are shown and enclose no formula."""
    return name.replace("$", r"\$")


def _escaped(letter: str) -> str:
    return f"\\{letter}" if letter in '"\\' else letter if letter.isprintable() else _escape(letter)


def _escape(letter: str) -> str:
    """The escape of a character in Python and double-quoted YAML."""
    code = ord(letter)
    if letter in "\n\r\t":
        return {"\n": r"\n", "\r": r"\r", "\t": r"\t"}[letter]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def page_policy(scripts: Sequence[str]) -> str:
    """Returns the policy of a page, which connects to nothing.

    Args:
        scripts: Texts of its scripts, as they stand between the tags. They are known before contents are filled in, so that
            a script that got into the contents is not run.
    """
    hashes = [f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" for script in scripts]
    rules = {
        "default-src": ["'none'"],
        "script-src": hashes or ["'none'"],
        "style-src": ["'unsafe-inline'"],
        "img-src": ["data:", "blob:"],
        "connect-src": ["'none'"],
        "base-uri": ["'none'"],
        "form-action": ["'none'"],
    }
    return "; ".join(" ".join([name, *values]) for name, values in rules.items())


@dataclass(frozen=True)
class CommandPaths:
    """Files that commands about a result name; a placeholder stays where the file is unknown.

    Attributes:
        command: The command that is running, as typed; empty in Python.
    """

    robot: str | Path = ""
    result: str | Path = ""
    project: str | Path = ""
    command: str = ""

    def fill(self, text: str) -> str:
        """Text with paths for ROBOT.urdf and OUT/identification.json, for a shell in the folder that they refer to."""
        if self.project:
            text = text.replace("design ROBOT.urdf", f"design ROBOT.urdf -c {shlex.quote(str(self.project))}")
        for placeholder, path in (("ROBOT.urdf", self.robot), ("OUT/identification.json", self.result)):
            text = text.replace(placeholder, shlex.quote(str(path)) if path else placeholder)
        return text

    def fill_in(self, data: Any) -> Any:
        """Replaces the placeholders in all texts of plain data, as :meth:`fill` does."""
        if isinstance(data, str):
            return self.fill(data)
        if isinstance(data, Mapping):
            return {key: self.fill_in(value) for key, value in data.items()}
        return [self.fill_in(value) for value in data] if isinstance(data, list | tuple) else data
