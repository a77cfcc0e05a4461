"""A graph compiler with PyTensor's public names, on top of a persistent cache of what it compiles."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cachegraph.forking import guard_imports
from cachegraph.platforms import require_linux

if TYPE_CHECKING:
    from engine.compiling.arguments import In, Out
    from engine.compiling.executable import Function
    from engine.compiling.mode import Mode, get_mode
    from engine.configdefaults import config
    from engine.from_function import wrap_py
    from engine.functions import function
    from engine.gradient import Lop, Rop, grad, pullback, pushforward
    from engine.gradient.gradient_check import verify_grad
    from engine.inner import OpFromGraph
    from engine.printing import dprint
    from engine.scanning import foldl, foldr, map, reduce, scan, until
    from engine.shared_variables import shared

require_linux("importing engine")

__all__ = [
    "Function",
    "In",
    "Lop",
    "Mode",
    "OpFromGraph",
    "Out",
    "Rop",
    "config",
    "dprint",
    "foldl",
    "foldr",
    "function",
    "get_mode",
    "grad",
    "map",
    "pullback",
    "pushforward",
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
    "config": "engine.configdefaults",
    "dprint": "engine.printing",
    "function": "engine.functions",
    "get_mode": "engine.compiling.mode",
    "grad": "engine.gradient",
    "pullback": "engine.gradient",
    "pushforward": "engine.gradient",
    "shared": "engine.shared_variables",
    "verify_grad": "engine.gradient.gradient_check",
    "wrap_py": "engine.from_function",
} | dict.fromkeys(["foldl", "foldr", "map", "reduce", "scan", "until"], "engine.scanning")
"""Public names by the module that has them, which a program that uses none of them does not import."""

_MODULES = (
    "assumptions",
    "compile",
    "conditional",
    "gradient",
    "graph",
    "ifelse",
    "link",
    "misc",
    "printing",
    "raise_op",
    "rewriting",
    "scalar",
    "tensor",
)
"""Modules that `import engine` alone gives, as PyTensor does."""

guard_imports()  # The first threads that use these names import them, while others may fork.


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"engine.{name}")
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)
