"""Writes docs/project_file.md: every key of a project file with its default and its meaning, from the classes that read it.

scripts/docs/project_file.py            # writes the page; a test fails while it is stale
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from urdf_ident.files.read_write import write_text
from urdf_ident.friction import FRICTION
from urdf_ident.logs.columns.layout import NAMES
from urdf_ident.project import Project
from urdf_ident.settings import Section

PAGE = Path(__file__).parents[2] / "docs" / "project_file.md"
INTRODUCTION = """# The project file

Written by `scripts/docs/project_file.py` from the classes that read the file; do not edit.

A project file (YAML, `-c project.yaml`) holds what URDF and log do not: column names, units, gears, torque constants,
locked joints, and settings. Every key is optional; an unknown key is an error that names the nearest known one.
`urdf-ident inspect LOG --robot ROBOT.urdf --write-project F` writes a file to start from. Lists with a number per joint
follow `robot.joints`, otherwise the order of the unlocked joints in the URDF.
"""


def page() -> str:
    """The whole page."""
    lines = [INTRODUCTION]
    for name, field in Project.model_fields.items():
        section = _section(field)
        lines += [f"## `{name}`", "", _sentence(section), "", "| key | value | default | meaning |", "|---|---|---|---|"]
        lines += [*_rows(section), ""]
    lines += ["## Quantities of `log.columns`, `log.files` and `log.units`", ""]
    lines += ["`time`, and per joint (default header in brackets): "]
    lines += [", ".join(f"`{name}` (`{names.prefix}_<joint>`)" for name, names in NAMES.items()) + ".", ""]
    lines += [
        "## Friction laws of `model.friction`",
        "",
        "A name, or a mapping with its shapes: `{term: coulomb, width: 0.02}`;",
    ]
    lines += ["a shape given as `auto` is fitted.", "", "| law | shapes | what it is |", "|---|---|---|"]
    for name, law in FRICTION.items():
        if not law.__module__.startswith("urdf_ident."):  # laws of other packages, scripts and tests register here as well
            continue
        shapes = ", ".join(f"`{shape}`" for shape in law.shapes) or "-"
        lines.append(f"| `{name}` | {shapes} | {_sentence(law)} |")
    return "\n".join(lines) + "\n"


def _rows(section: type[Section], path: str = "") -> Iterator[str]:
    for name, field in section.model_fields.items():
        inner = _section(field)
        if inner is None:
            yield f"| `{path}{name}` | {_values(field)} | {_default(field)} | {_cell(field.description or '')} |"
        else:
            if not issubclass(type(field.default), Section):
                yield f"| `{path}{name}` | section | {_default(field)} | {_cell(field.description or '')} |"
            yield from _rows(inner, f"{path}{name}.")


def _section(field: FieldInfo) -> Any:
    kinds = [field.annotation, *get_args(field.annotation)]
    return next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Section)), None)


def _values(field: FieldInfo) -> str:
    """What may be written there, in a user's words."""
    return _cell(" or ".join(dict.fromkeys(_words(field.annotation))))


def _words(kind: Any) -> Iterator[str]:
    plain = {float: "number", int: "integer", str: "text", bool: "true, false", Any: "anything", type(None): ""}
    origin, inner = get_origin(kind), get_args(kind)
    if kind in plain:
        yield from [plain[kind]] if plain[kind] else []
    elif origin is Literal:
        yield ", ".join(f"`{value}`" for value in inner)
    elif origin is list:
        yield "list"
    elif origin is tuple:
        yield f"{len(inner)} numbers"
    elif origin is dict:
        yield f"{' or '.join(_words(inner[0]))}: {' or '.join(dict.fromkeys(_words(inner[1])))}"
    elif inner:  # a union, or Annotated with its limits behind the type
        for part in inner if origin is not None and not hasattr(kind, "__metadata__") else inner[:1]:
            yield from _words(part)
    else:
        yield getattr(kind, "__name__", str(kind))


def _default(field: FieldInfo) -> str:
    value = field.default
    if field.is_required():
        return "required"
    return "-" if value is None or value == {} else f"`{json.dumps(value)}`"


def _sentence(thing: Any) -> str:
    return _cell(" ".join((thing.__doc__ or "").strip().split("\n\n")[0].split()))


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    write_text(PAGE, page())
