"""A graph compiler with PyTensor's public names, on top of a persistent cache of what it compiles."""

from engine.function import Function, function
from engine.gradient import grad
from engine.gradient_check import verify_grad
from engine.mode import Mode
from engine.printing import dprint
from engine.shared import shared

__all__ = ["Function", "Mode", "dprint", "function", "grad", "shared", "verify_grad"]
