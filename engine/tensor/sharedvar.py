"""Shared variables that hold arrays, under PyTensor's path."""

import warnings
from typing import TYPE_CHECKING, Any

from engine.shared_variables import SharedVariable, TensorSharedVariable

__all__ = ["SharedVariable", "TensorSharedVariable"]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Return TensorSharedVariable for its older name, with a FutureWarning."""
        if name != "ScalarSharedVariable":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        warnings.warn(
            "ScalarSharedVariable has been deprecated: it is a TensorSharedVariable of 0 dimensions",
            FutureWarning,
            stacklevel=2,
        )
        return TensorSharedVariable
