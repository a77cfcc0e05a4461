"""Functions, under PyTensor's path."""

from engine.errors import UnusedInputError
from engine.functions import function

__all__ = ["UnusedInputError", "function"]
