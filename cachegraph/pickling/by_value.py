"""Pickling of functions and classes that no name imports as code, by cloudpickle."""

from __future__ import annotations

from types import FunctionType, MethodType
from typing import Any

import cloudpickle

from cachegraph.fingerprint.native import is_native_type
from cachegraph.pickling.pickler import Pickler


class ByValuePickler(Pickler, cloudpickle.Pickler):  # type: ignore[misc]
    """A pickler that lets cloudpickle reduce classes, and functions without an import path."""

    def check_unnamed(self, function: Any) -> None:
        """Leave Python functions and methods to cloudpickle; refuse native functions."""
        if is_native_type(type(function)) and not _is_bound(function):
            super().check_unnamed(function)

    def by_name(self, obj: Any) -> Any:
        """Return cloudpickle's reduction of a class or a function."""
        reduced = cloudpickle.Pickler.reducer_override(self, obj)
        if isinstance(reduced, tuple):
            self.calls(reduced)
        return reduced


def _is_bound(function: Any) -> bool:
    owner = getattr(function, "__self__", None)
    return isinstance(function, FunctionType | MethodType) or hasattr(type(owner), function.__name__)
