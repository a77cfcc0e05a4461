"""What the Ops of linear algebra take: square matrices of floats, and right-hand sides that fit them."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.scalar.promotion import FLOATS, common
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.elemwise import cast


def as_floats(*values: Any) -> list[Any]:
    """`values` as tensors of one float dtype: float32 if all are, else float64."""
    tensors = [as_tensor_variable(value) for value in values]
    dtype = common(tuple([tensor.type.dtype for tensor in tensors]))
    return [cast(tensor, dtype if dtype in FLOATS else "float64") for tensor in tensors]


def as_square(what: str, value: Any) -> Any:
    """`value` as a matrix of floats; refuses (TypeError) other dimensions, (ValueError) lengths known to differ."""
    (matrix,) = as_floats(value)
    if matrix.type.ndim != 2:
        raise TypeError(f"Applying {what} to {matrix.type}: it takes a matrix")
    rows, columns = matrix.type.shape
    if None not in (rows, columns) and rows != columns:
        raise ValueError(f"Applying {what} to {matrix.type}: the matrix must be square")
    return matrix


def check_square(what: str, matrix: np.ndarray) -> None:
    """Refuse (ValueError) a matrix that is not square."""
    if matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"Computing {what} of a matrix of shape {matrix.shape}: it must be square")


def failure(what: str, error: Exception) -> np.linalg.LinAlgError:
    """The error for a matrix of which `what` does not exist."""
    return np.linalg.LinAlgError(f"Computing {what}: {error}")
