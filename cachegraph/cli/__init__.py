"""The command line: `cachegraph COMMAND`, one command per module."""

from __future__ import annotations

import sys

from cachegraph.cli.exit_codes import INTERRUPTED


def main() -> None:
    """Run the command that the process's arguments name, and end the process."""
    if sys.stdout is None:  # the shell closed it: cachegraph list >&-
        sys.exit("cachegraph: standard output is closed; redirect it to /dev/null to see nothing")
    try:
        from cachegraph.cli.app import app
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except ModuleNotFoundError as error:  # a small installation (docs/library.md)
        if not error.name or error.name.startswith("cachegraph"):
            raise
        sys.exit(f"cachegraph: the commands need {error.name}, which `pip install cachegraph` installs")
    app()
