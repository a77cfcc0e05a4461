"""Names of engine.tensor, under PyTensor's path."""

from importlib import import_module
from typing import Any

from engine.tensor.constant_values import infer_static_shape

__all__ = ["infer_static_shape"]


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("engine.tensor"), name)
