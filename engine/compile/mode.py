"""Modes, under PyTensor's path."""

from typing import Any

from engine.compiling.mode import FAST_COMPILE, Mode, get_default_mode, get_mode
from engine.compiling.mode import FAST_RUN as OPT_FAST_RUN
from engine.paths import find

__all__ = ["FAST_COMPILE", "OPT_FAST_RUN", "Mode", "get_default_mode", "get_mode"]


def __getattr__(name: str) -> Any:
    return find(__name__, name)
