"""Types, under PyTensor's path: there are no linkers and no C code here."""

from engine.link.c import type

__all__ = ["type"]
