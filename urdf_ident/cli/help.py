"""Format of `--help`: commands in workflow order, arguments without Python types, one example per line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup

#: Commands in workflow order; others follow alphabetically.
ORDER = (
    *("demo", "check", "inspect", "identify", "validate", "report", "plot", "export"),
    *("design", "simulate", "play", "export-motion", "payload", "compare", "fleet"),
)


class Commands(TyperGroup):
    """The application; lists its commands in :data:`ORDER`."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Returns the names of all commands.

        Returns:
            The names, in workflow order.
        """
        names = super().list_commands(ctx)
        return sorted(names, key=lambda name: (ORDER.index(name) if name in ORDER else len(ORDER), name))


class Command(TyperCommand):
    """One command; its arguments are listed by name, without their Python type."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Returns arguments and options.

        Returns:
            The parameters, arguments without their Python type.
        """
        found = list(super().get_params(ctx))
        for parameter in found:
            if isinstance(parameter, TyperArgument):
                parameter.display_type_rich = lambda ctx: None  # type: ignore[method-assign]
        return found


def command(app: typer.Typer, *examples: str, name: str | None = None) -> Callable[[Any], Any]:
    """Registers a function as a command.

    Args:
        examples: Command lines without the program's name.
        name: Its name; that of the function if None.
    """
    lines = ["\b", "Example:" if len(examples) == 1 else "Examples:", *(f"  urdf-ident {example}" for example in examples)]
    return app.command(name, cls=Command, epilog="\n".join(lines))
