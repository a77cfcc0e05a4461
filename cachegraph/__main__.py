"""`python -m cachegraph` is the command line."""

from __future__ import annotations

from cachegraph.cli import main

main()
