"""The logger of a package. `logging` takes 7 ms to import, which a warm start does not need."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logging import Logger


def logger(package: str) -> Logger:
    """Return the logger of `package`, "cachegraph" or "engine"."""
    import logging

    return logging.getLogger(package)
