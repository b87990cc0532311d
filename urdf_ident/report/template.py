"""Templates of pages."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Any

from ..errors import MissingExtraError
from ..files.page_policy import page_policy
from ..quoting import markup
from ..result.text.commands import CommandPaths
from .content import number


def rendered(name: str, paths: CommandPaths | None = None, **values: Any) -> str:
    """Renders a page from its template.

    Args:
        paths: Files that its commands name; if None, their placeholders remain.
    """
    try:
        from jinja2 import Environment, FunctionLoader, StrictUndefined
    except ImportError as error:
        raise MissingExtraError("the report needs jinja2", remedy="pip install 'urdf-ident[report]'") from error
    environment = Environment(
        loader=FunctionLoader(_text), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(number=number, code=lambda text: _code((paths or CommandPaths()).fill(text)))
    script = _text("sort.js")
    return environment.get_template(name).render(**values, script=script, policy=page_policy([script]))


def _text(file: str) -> str:
    return files(__package__).joinpath(file).read_text(encoding="utf-8")


def _code(text: str) -> str:
    """Converts text to HTML (to be marked as safe), with backquoted parts as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", markup(text)).replace(" -&gt; ", " → ")
