"""A command group that imports a command's module only when it needs the command."""

import ast
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import click

_PACKAGE: Final = "service.cli."
_SUMMARY_MAX: Final = 1_000


class LazyGroup(click.Group):
    """A group that maps the names of its commands to their modules.

    `modules` maps each module of the command line to the names of its commands, separated by
    spaces. Listing a group reads its commands' help in their sources, and imports none of them;
    `summaries` has the help of those whose source has another.
    """

    def __init__(
        self,
        *,
        modules: Mapping[str, str],
        summaries: Mapping[str, str] | None = None,
        **attributes: Any,  # noqa: ANN401 - click's own
    ) -> None:
        super().__init__(**attributes)
        self._lazy = {
            name: f"{_PACKAGE}{module}"
            for module, names in modules.items()
            for name in names.split()
        }
        self._summaries = summaries or {}

    def module_of(self, name: str) -> str:
        """Return the module of a command, as `modules` names it."""
        return self._lazy[name].removeprefix(_PACKAGE)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the declaration."""
        del ctx
        return [*self._lazy, *(name for name in self.commands if name not in self._lazy)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, imported if it has not been used before."""
        if cmd_name in self._lazy and cmd_name not in self.commands:
            module = import_module(self._lazy[cmd_name])
            (command,) = (
                value
                for value in vars(module).values()
                if isinstance(value, click.Command) and value.name == cmd_name
            )
            self.add_command(command)
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands' summaries."""
        names = self.list_commands(ctx)
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.summary(ctx, name)) for name in names])

    def summary(self, ctx: click.Context, name: str) -> str:
        """Return a command's first sentence, whole: a line that is cut off says half of it."""
        if name in self._summaries:
            return self._summaries[name]
        told = None if name in self.commands else self._told(name)
        if told is not None:
            return click.Command(name, help=told).get_short_help_str(_SUMMARY_MAX)
        command = self.get_command(ctx, name)
        return command.get_short_help_str(_SUMMARY_MAX) if command else ""

    def _told(self, name: str) -> str | None:
        """Return a command's help as its source has it; None where that does not tell.

        Importing a group's modules for it would take a second.
        """
        spec = find_spec(self._lazy[name])
        if spec is None or spec.origin is None:
            return None
        for node in ast.parse(Path(spec.origin).read_bytes()).body:
            is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            if is_function and node.name.strip("_").replace("_", "-") == name:
                return ast.get_docstring(node)
        return None
