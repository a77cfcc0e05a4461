"""Arguments and results of derivatives: one variable or several, types, and answers for no connection."""

from __future__ import annotations

from typing import Any

from engine.graph.absent_gradients import disconnected_type
from engine.graph.variables import Variable
from engine.scalar.promotion import INEXACT
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.creation import zeros_like
from engine.tensor.elemwise import as_gradient


def as_variables(given: Any) -> list[Any]:
    """Return one variable or several as a list of tensor variables."""
    return [as_tensor_variable(item) for item in as_list(given)]


def as_list(given: Any) -> list[Any]:
    """Return one item or several, a list or a tuple, as a list."""
    return list(given) if isinstance(given, list | tuple) else [given]


def as_given(given: Any, found: list[Any]) -> Any:
    """Return `found` in the form of `given`: a list, a tuple or a single item."""
    return found if isinstance(given, list) else tuple(found) if isinstance(given, tuple) else found[0]


def check_choices(name: str, disconnected: str, returned: str) -> None:
    """Raise ValueError for an unknown choice of what to do about a variable that is not connected.

    `name` is the name of the argument `disconnected`.
    """
    if disconnected not in ("raise", "warn", "ignore"):
        raise ValueError(f'{name}={disconnected!r}: it must be "raise", "warn" or "ignore"')
    if returned not in ("zero", "none", "disconnected"):
        raise ValueError(f'return_disconnected={returned!r}: it must be "zero", "none" or "disconnected"')


def answer(derivative: Any, variable: Variable, return_disconnected: str) -> Any:
    """Return the derivative for `variable`; if there is none, what `return_disconnected` says."""
    if derivative is not None or return_disconnected == "zero":
        return as_derivative(derivative, variable)
    return None if return_disconnected == "none" else disconnected_type.make_variable()


def as_derivative(value: Any, variable: Any) -> Any:
    """Return `value` as a derivative for `variable`: cast to its dtype, or zeros for None."""
    dtype = derivative_dtype(variable)
    return zeros_like(variable, dtype) if value is None else as_gradient(value, dtype)


def derivative_dtype(variable: Any) -> str:
    """Return the dtype of derivatives for `variable`: its own, or float64 if that is no float."""
    dtype = getattr(variable.type, "dtype", None)
    return dtype if dtype in INEXACT else "float64"
