"""Linear algebra under the paths of PyTensor's earlier releases, `tensor.nlinalg` and `tensor.slinalg`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from engine.tensor import linalg


def older_path(path: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module that stood at `path` in PyTensor: it gives the names of
    engine.tensor.linalg, with a DeprecationWarning. It raises AttributeError for other names.
    """

    def found(name: str) -> Any:
        if name not in linalg.__all__:
            raise AttributeError(f"module {path!r} has no attribute {name!r}")
        warnings.warn(
            f"Asking {path} for {name}: the module is deprecated; tensor.linalg has its names",
            DeprecationWarning,
            stacklevel=2,
        )
        return getattr(linalg, name)

    return found
