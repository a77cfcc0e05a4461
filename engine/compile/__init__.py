"""Functions, their arguments and modes, under PyTensor's path."""

from typing import Any

from engine.compiling.arguments import In, Out
from engine.compiling.executable import Function
from engine.compiling.mode import Mode, get_default_mode, get_mode
from engine.errors import UnusedInputError
from engine.from_function import wrap_py
from engine.functions import function
from engine.graph.features.destroy import Supervisor
from engine.paths import find
from engine.shared_variables import shared

__all__ = [
    "Function",
    "In",
    "Mode",
    "Out",
    "Supervisor",
    "UnusedInputError",
    "function",
    "get_default_mode",
    "get_mode",
    "shared",
    "wrap_py",
]


def __getattr__(name: str) -> Any:
    return find(__name__, name)
