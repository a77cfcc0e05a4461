"""The operations in PyTensor's numba mode. Its caches are where `base_compiledir` in PYTENSOR_FLAGS says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytensor
import pytensor.tensor as pt

from symbolic import compiled, types_of

_FUNCTION = partial(pytensor.function, mode="NUMBA")


def build(name: str, arrays: Sequence[Any]) -> tuple[Callable[..., Any], list[Any]]:
    """Return the operation `name`, compiled for arrays like these, and its arguments."""
    return compiled(_FUNCTION, pt, name, types_of(arrays)), list(arrays)
