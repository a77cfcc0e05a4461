"""`cachegraph completion SHELL`: the script that lets a shell complete commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from cachegraph.cli.options import command

_PROGRAM = "cachegraph"
_VARIABLE = "_CACHEGRAPH_COMPLETE"
"""The variable by which the script asks, as click names it after the program."""


@command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion_command(context: click.Context, shell: str) -> None:
    """Print a script that completes commands and options: `eval "$(cachegraph completion bash)"`."""
    completion = get_completion_class(shell)
    assert completion is not None
    click.echo(completion(context.find_root().command, {}, _PROGRAM, _VARIABLE).source())
