"""Ops made of Python functions, and copies, under PyTensor's path."""

from engine.from_function import FromFunctionOp, as_op, wrap_py
from engine.tensor.copying import DeepCopyOp, deep_copy_op

__all__ = ["DeepCopyOp", "FromFunctionOp", "as_op", "deep_copy_op", "wrap_py"]
