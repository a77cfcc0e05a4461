"""Parts that the families of kernels share: the builder of a kernel's parameters, and constants.

`Kernel.arguments` says what the caller passes for the parameters, one tuple for each:

    ("input", i)            the address of the first element of operand i
    ("output", k)           the address of output k, which is C-contiguous
    ("extent", (d, ...))    the product of the lengths of these dims of the nest (1 if there are none)
    ("stride", i, d)        how many elements operand i steps along dim d
    ("length", i, d)        the length of operand i along its own dim d
    ("details",)            the address of three int64 that describe a failure
    (name,)                 a number that the family of the kernel describes
"""

from __future__ import annotations

import struct

from msgspec import Struct, field

from engine.lowering.loops import (
    Address,
    Argument,
    Call,
    Integer,
    Kernel,
    Literal,
    Node,
    Number,
    Parameter,
    Place,
    Pointer,
    Reference,
)

_LETTERS = {"float64": "d", "float32": "s"}
"""The letters by which BLAS and LAPACK name their functions for each dtype."""
_FORMATS = {
    "float64": "<d",
    "float32": "<f",
    "bool": "<?",
    "int64": "<q",
    "int32": "<i",
    "int16": "<h",
    "int8": "<b",
    "uint64": "<Q",
    "uint32": "<I",
    "uint16": "<H",
    "uint8": "<B",
}


class KernelBuilder(Struct):
    """The parameters of a kernel under construction, and what the caller passes for each."""

    parameters: list[Parameter] = field(default_factory=list)
    arguments: list[Argument] = field(default_factory=list)

    def pointer(self, name: str, dtype: str, argument: Argument) -> str:
        """Add the address of elements of `dtype`; return its name."""
        self.parameters.append(Pointer(name, dtype))
        self.arguments.append(argument)
        return name

    def integer(self, name: str, argument: Argument) -> str:
        """Add an int64; return its name."""
        self.parameters.append(Integer(name))
        self.arguments.append(argument)
        return name

    def kernel(self, body: tuple[Node, ...], summary: str) -> Kernel:
        """Return the kernel that has these parameters."""
        return Kernel(tuple(self.parameters), body, tuple(self.arguments), summary)


def number_bytes(dtype: str, value: float) -> bytes:
    """Return the little-endian bytes of `value` as a number of `dtype`."""
    return struct.pack(_FORMATS[dtype], value)


def constant(target: str, dtype: str, value: float) -> Number:
    """Return the node that names the number `value` of `dtype`."""
    return Number(target, dtype, number_bytes(dtype, value))


def fortran_call(library: str, function: str, dtype: str, *arguments: Place | str | float | bytes) -> Call:
    """Return the call of a function of BLAS or LAPACK for `dtype`, which takes the address of everything.

    An argument is an element, the name of an integer parameter, an int (an int64), a float (of
    `dtype`), or a letter.
    """
    return Call(f"{library}_{_LETTERS[dtype]}{function}", tuple(_passed(a, dtype) for a in arguments))


def _passed(argument: Place | str | float | bytes, dtype: str) -> Address | Reference | Literal:
    match argument:
        case Place():
            return Address(argument)
        case str():
            return Reference(argument)
        case bytes():
            return Literal(argument)
        case _:
            return Literal(number_bytes("int64" if isinstance(argument, int) else dtype, argument))
