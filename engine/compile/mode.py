"""Modes, under PyTensor's path."""

from engine.compiling.mode import FAST_COMPILE, Mode, get_default_mode, get_mode
from engine.compiling.mode import FAST_RUN as OPT_FAST_RUN

__all__ = ["FAST_COMPILE", "OPT_FAST_RUN", "Mode", "get_default_mode", "get_mode"]
