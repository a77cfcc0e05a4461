"""The type of None, under PyTensor's path."""

from engine.tensor.none_type import NoneConst, NoneTypeT, none_type_t

__all__ = ["NoneConst", "NoneTypeT", "none_type_t"]
