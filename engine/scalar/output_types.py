"""The types of a scalar Op's results, by those of its arguments: what users give a ScalarOp.

The names are PyTensor's. Each function takes ScalarTypes and returns a tuple of the one of the result. It
raises TypeError for types that it does not take.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.configdefaults import config
from engine.scalar.promotion import COMPLEX, upcast
from engine.scalar.type import ScalarType, scalar_type

Types = tuple[ScalarType, ...]

_NARROW = ("bool", "int8", "int16", "uint8", "uint16")
_WIDE = ("int32", "int64", "uint32", "uint64")
_REAL_OF = {"complex64": "float32", "complex128": "float64"}


class specific_out:  # PyTensor's name
    """A function that returns these types, whatever those of the arguments are."""

    def __init__(self, *types: ScalarType) -> None:
        self.types = types

    def __call__(self, *types: ScalarType) -> Types:
        return self.types

    def __eq__(self, other: object) -> bool:
        return isinstance(other, specific_out) and self.types == other.types

    def __hash__(self) -> int:
        return hash(self.types)


def upcast_out(*types: ScalarType) -> Types:
    """Return the smallest type that holds the values of all arguments."""
    return (scalar_type(upcast(*(type.dtype for type in types))),)


def upcast_out_nobool(*types: ScalarType) -> Types:
    """Return what `upcast_out` does; refuse bools."""
    return _without(("bool",), types, upcast_out(*types))


def upcast_out_no_complex(*types: ScalarType) -> Types:
    """Return what `upcast_out` does; refuse complex numbers."""
    return _without(COMPLEX, types, upcast_out(*types))


def upcast_out_min8(*types: ScalarType) -> Types:
    """Return what `upcast_out` does, and an int8 for bools."""
    (found,) = upcast_out(*types)
    return (scalar_type("int8"),) if found.dtype == "bool" else (found,)


def upgrade_to_float(*types: ScalarType) -> Types:
    """Return the float or complex type that holds the arguments: float32 for whole numbers of 16 bits."""
    floats = [_float_for(type.dtype) for type in types]
    return (scalar_type(upcast(*floats)),)


def upgrade_to_float_no_complex(*types: ScalarType) -> Types:
    """Return what `upgrade_to_float` does; refuse complex numbers."""
    return _without(COMPLEX, types, upgrade_to_float(*types))


def upgrade_to_float64(*types: ScalarType) -> Types:
    """Return float64, or the complex type that holds the arguments."""
    return (scalar_type(upcast("float64", *(type.dtype for type in types))),)


def same_out(type: ScalarType) -> Types:
    """Return the type of the argument."""
    return (type,)


def same_out_nobool(type: ScalarType) -> Types:
    """Return the type of the argument; refuse bools."""
    return _without(("bool",), (type,), (type,))


def same_out_min8(type: ScalarType) -> Types:
    """Return the type of the argument, and an int8 for a bool."""
    return upcast_out_min8(type)


def same_out_nocomplex(type: ScalarType) -> Types:
    """Return the type of the argument; refuse complex numbers."""
    return _without(COMPLEX, (type,), (type,))


def same_out_float_only(type: ScalarType) -> Types:
    """Return the type of the argument; refuse all but floats."""
    if type.dtype not in ("float16", "float32", "float64"):
        raise TypeError(f"Finding the type of a result: the argument is {type}; it must be a float")
    return (type,)


def int_out(*types: ScalarType) -> Types:
    """Return int64."""
    return (scalar_type("int64"),)


def float_out(*types: ScalarType) -> Types:
    """Return the float of the flag floatX."""
    return (scalar_type(config.floatX),)


def real_out(type: ScalarType) -> Types:
    """Return the type of the real part of the argument."""
    return (scalar_type(_REAL_OF.get(type.dtype, type.dtype)),)


def _float_for(dtype: str) -> str:
    if dtype in _NARROW:
        return "float32"
    return "float64" if dtype in _WIDE else dtype


def _without(refused: Sequence[str], types: Types, found: Types) -> Types:
    wrong = [type.dtype for type in types if type.dtype in refused]
    if wrong:
        raise TypeError(f"Finding the type of a result: no argument may be {wrong[0]}; cast it first")
    return found
