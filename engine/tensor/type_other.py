"""The types of None and of slices, under PyTensor's path."""

from engine.tensor.none_type import NoneConst, NoneTypeT, none_type_t
from engine.tensor.slice_type import (
    MakeSlice,
    NoneSliceConst,
    SliceConstant,
    SliceType,
    make_slice,
    slicetype,
)

__all__ = [
    "MakeSlice",
    "NoneConst",
    "NoneSliceConst",
    "NoneTypeT",
    "SliceConstant",
    "SliceType",
    "make_slice",
    "none_type_t",
    "slicetype",
]
