"""The functions of array_api_strict, on numpy arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import is_dataclass
from functools import reduce
from typing import Any

import array_api_strict
import numpy as np

array_api_strict.set_array_api_strict_flags(api_version="2025.12")

_EXTENSIONS = {"": array_api_strict, "linalg.": array_api_strict.linalg, "fft.": array_api_strict.fft}


def function_names() -> list[str]:
    """Return the names of all functions of the standard; extensions are "linalg.NAME" and "fft.NAME"."""
    names = {prefix + name for prefix, module in _EXTENSIONS.items() for name in module.__all__}
    names |= {"linalg.eig", "linalg.eigvals", "linalg.svdvals"}
    return sorted(name for name in names if _is_function(name))


def _is_function(name: str) -> bool:
    found = function_of(name)
    is_class = isinstance(found, type)
    return callable(found) and not is_class and "flags" not in name and not name.startswith("__")


def function_of(name: str) -> Callable[..., Any]:
    """Return array_api_strict's function of that name."""
    found: Callable[..., Any] = reduce(getattr, name.split("."), array_api_strict)
    return found


def reference_call(name: str, args: Any, options: Any) -> Any:
    """Return what array_api_strict returns, with numpy arrays and dtypes in the place of its own."""
    with np.errstate(all="ignore"):
        found = function_of(name)(*_strict(args), **_strict(options))
    return _plain(found)


def _strict(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return array_api_strict.asarray(value)
    if isinstance(value, np.dtype):
        return getattr(array_api_strict, value.name)
    if isinstance(value, dict):
        return {key: _strict(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(_strict(each) for each in value)
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, array_api_strict._array_object.Array):
        return np.asarray(value)
    if hasattr(value, "_np_dtype"):
        return value._np_dtype.name
    if is_dataclass(value) and not isinstance(value, type):
        return tuple(_plain(each) for each in vars(value).values())
    if isinstance(value, tuple | list):
        parts = [_plain(each) for each in value]
        return value._make(parts) if hasattr(value, "_make") else tuple(parts)
    return value
