"""The command line as `python -m cachegraph`."""

from __future__ import annotations

from cachegraph.cli import main

main()
