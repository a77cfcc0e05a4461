"""A graph compiler with PyTensor's public names, on top of a persistent cache of what it compiles."""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.compiling.arguments import In, Out
    from engine.compiling.executable import Function
    from engine.compiling.mode import Mode
    from engine.from_function import wrap_py
    from engine.function import function
    from engine.gradient import Lop, Rop, grad
    from engine.gradient.gradient_check import verify_grad
    from engine.inner import OpFromGraph
    from engine.printing import dprint
    from engine.scanning import foldl, foldr, map, reduce, scan, until
    from engine.shared import shared

__all__ = [
    "Function",
    "In",
    "Lop",
    "Mode",
    "OpFromGraph",
    "Out",
    "Rop",
    "dprint",
    "foldl",
    "foldr",
    "function",
    "grad",
    "map",
    "reduce",
    "scan",
    "shared",
    "until",
    "verify_grad",
    "wrap_py",
]

_LATER = {
    "Function": "engine.compiling.executable",
    "In": "engine.compiling.arguments",
    "Lop": "engine.gradient",
    "Mode": "engine.compiling.mode",
    "OpFromGraph": "engine.inner",
    "Out": "engine.compiling.arguments",
    "Rop": "engine.gradient",
    "dprint": "engine.printing",
    "function": "engine.function",
    "grad": "engine.gradient",
    "shared": "engine.shared",
    "verify_grad": "engine.gradient.gradient_check",
    "wrap_py": "engine.from_function",
} | dict.fromkeys(["foldl", "foldr", "map", "reduce", "scan", "until"], "engine.scanning")
"""Public names by the module that has them, which a program that uses none of them does not import."""


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)


class _Package(ModuleType):
    """This package. Two of its modules have the names of what they define, which the package has instead."""

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute: a public name instead of the module of that name, which its import sets."""
        is_module = isinstance(value, ModuleType) and name in _LATER
        super().__setattr__(name, getattr(value, name) if is_module else value)


if not TYPE_CHECKING:
    sys.modules[__name__].__class__ = _Package
