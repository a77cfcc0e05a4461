"""The command line: `cachegraph COMMAND`, one command per module.

Exit codes: 0 fine, 1 found a problem (no such key, a damaged index), 2 wrong usage.
"""

from __future__ import annotations


def main() -> None:
    """Run the command that the process's arguments name, and end the process."""
    from cachegraph.cli.app import app

    app()
