"""Ops made of Python functions, under PyTensor's path."""

from engine.from_function import FromFunctionOp, wrap_py

__all__ = ["FromFunctionOp", "wrap_py"]
