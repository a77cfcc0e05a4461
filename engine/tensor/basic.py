"""Names of engine.tensor, under PyTensor's path."""

from typing import Any

from engine.paths import find
from engine.tensor.constant_values import infer_static_shape

__all__ = ["infer_static_shape"]


def __getattr__(name: str) -> Any:
    return find(__name__, name)
