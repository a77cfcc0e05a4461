"""Ops made of Python functions, and copies, under PyTensor's path."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from engine.from_function import FromFunctionOp, InferShape, wrap_py
from engine.tensor.copying import DeepCopyOp, deep_copy_op

__all__ = ["DeepCopyOp", "FromFunctionOp", "as_op", "deep_copy_op", "wrap_py"]


def as_op(
    itypes: Any, otypes: Any, infer_shape: InferShape | None = None
) -> Callable[[Callable[..., Any]], FromFunctionOp]:
    """Return what `wrap_py` returns; `as_op` is its older name in PyTensor, and warns."""
    warnings.warn("`as_op` is deprecated; use `wrap_py`", FutureWarning, stacklevel=2)
    return wrap_py(itypes, otypes, infer_shape)
