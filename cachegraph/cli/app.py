"""The commands, assembled into one application. A command's module is imported when the command is asked for:
importing all of them takes longer than most of them run (decision 0154)."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

from cachegraph.cli.exit_codes import EXIT_CODES, INTERRUPTED
from cachegraph.cli.options import Group
from cachegraph.version import __version__

COMMANDS = {
    "dir": "dir:dir_command",
    "config": "config:config_command",
    "stats": "stats:stats_command",
    "list": "list:list_command",
    "show": "show:show_command",
    "why-miss": "why_miss:why_miss_command",
    "report": "report:report_command",
    "prune": "prune:prune_command",
    "verify": "verify:verify_command",
    "doctor": "doctor:doctor_command",
    "export": "bundles:export_command",
    "import": "bundles:import_command",
    "key": "key:key_group",
    "clear": "clear:clear_command",
    "completion": "completion:completion_command",
}
"""Each command: its module in cachegraph.cli, and its name there."""


class CommandGroup(Group):
    """A group that imports its commands one by one, when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[name].partition(":")
        command: click.Command = getattr(import_module(f"cachegraph.cli.{module}"), attribute)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise click.exceptions.Exit(INTERRUPTED) from None


@click.group(
    "cachegraph",
    cls=CommandGroup,
    no_args_is_help=True,
    epilog=EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, message="%(prog)s %(version)s")
def app() -> None:
    """Look at, prune and clear a cachegraph cache directory."""
