"""A graph compiler with PyTensor's public names, on top of a persistent cache of what it compiles."""

from typing import TYPE_CHECKING, Any

from engine.function import Function, function
from engine.gradient import grad
from engine.gradient_check import verify_grad
from engine.mode import Mode
from engine.printing import dprint
from engine.shared import shared

if TYPE_CHECKING:
    from engine.inner import OpFromGraph

__all__ = ["Function", "Mode", "OpFromGraph", "dprint", "function", "grad", "shared", "verify_grad"]


def __getattr__(name: str) -> Any:
    if name == "OpFromGraph":  # which a model that has none does not import
        from engine.inner import OpFromGraph

        return OpFromGraph
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
