"""Modes, under PyTensor's path."""

from engine.compiling.mode import FAST_COMPILE, Mode, get_default_mode, get_mode

__all__ = ["FAST_COMPILE", "Mode", "get_default_mode", "get_mode"]
