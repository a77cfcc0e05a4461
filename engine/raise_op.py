"""Checks of conditions, under PyTensor's path."""

from engine.tensor.checks import Assert, CheckAndRaise, assert_op

__all__ = ["Assert", "CheckAndRaise", "assert_op"]
