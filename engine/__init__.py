"""A graph compiler with PyTensor's public names, on top of a persistent cache of what it compiles."""

from engine.gradient import grad
from engine.gradient_check import verify_grad
from engine.shared import shared

__all__ = ["grad", "shared", "verify_grad"]
