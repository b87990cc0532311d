"""Templates of pages."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Any

from ..errors import MissingExtraError
from ..quoting import markup, page_policy
from ..result.text.commands import CommandPaths
from .content import number


def rendered(name: str, paths: CommandPaths | None = None, **values: Any) -> str:
    """Renders a page from its template; paths: files that its commands name, or None to keep their placeholders."""
    try:
        from jinja2 import Environment, FunctionLoader, StrictUndefined
    except ImportError as error:
        raise MissingExtraError("the report needs jinja2", remedy="pip install 'urdf-ident[report]'") from error
    environment = Environment(
        loader=FunctionLoader(_text), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )

    def code(text: str) -> str:  # HTML, to be marked as safe
        html = re.sub(r"`([^`]+)`", r"<code>\1</code>", markup((paths or CommandPaths()).fill(text)))
        return html.replace(" -&gt; ", " → ")

    environment.filters.update(number=number, code=code)
    script = _text("sort.js")
    return environment.get_template(name).render(**values, script=script, policy=page_policy([script]))


def _text(file: str) -> str:
    return files(__package__).joinpath(file).read_text(encoding="utf-8")
