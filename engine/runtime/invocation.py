"""A callback at its place in a linked program: shown the arrays that registers describe, and its results checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from engine.runtime.callbacks import Run
from engine.runtime.program import Invocation, Operand

Registers = Sequence[int]


class BoundInvocation:
    """Call it with the registers of a program that stopped for it: the arrays to go on with.

    Each is C-contiguous, of the dtype, rank and known lengths that the program expects, and shares no memory with what
    the callback was shown. Anything else that the callback `run` returns is a TypeError or ValueError that names the Op
    and the function; what it raises comes through.
    """

    def __init__(self, site: Invocation, run: Run, function: str) -> None:
        self._run = run
        self._subject = f"Calling {function}: {site.op}"
        self._inputs = [_Shown(row) for row in site.inputs]
        self._outputs = [(np.dtype(row.dtype), row.dims) for row in site.outputs]

    def __call__(self, registers: Registers) -> tuple[np.ndarray[Any, Any], ...]:
        results = self._run([shown.view(registers) for shown in self._inputs])
        if len(results) != len(self._outputs):
            self._refuse(
                TypeError, f"{len(self._outputs)} arrays are due, its callback returned {len(results)}"
            )
        return tuple([self._checked(k, result, registers) for k, result in enumerate(results)])

    def _checked(self, position: int, result: Any, registers: Registers) -> np.ndarray[Any, Any]:
        dtype, dims = self._outputs[position]
        lengths = tuple([None if dim is None else registers[dim] for dim in dims])
        if not isinstance(result, np.ndarray) or result.dtype != dtype or result.ndim != len(dims):
            self._refuse(
                TypeError, f"{_due(position, dtype, lengths)}, its callback returned {_found(result)}"
            )
        if any(due not in (None, found) for due, found in zip(lengths, result.shape, strict=True)):
            self._refuse(
                ValueError, f"{_due(position, dtype, lengths)}, its callback returned {_found(result)}"
            )
        # A view may lie in memory that the program uses for something else next.
        is_plain = type(result) is np.ndarray and result.flags.owndata and result.flags.carray
        return result if is_plain else np.array(result, dtype, order="C", subok=False)

    def _refuse(self, kind: type[Exception], found: str) -> NoReturn:
        raise kind(f"{self._subject}: {found}")


class _Shown:
    """One array that a callback is shown."""

    def __init__(self, row: Operand) -> None:
        self._row = row
        self._dtype = np.dtype(row.dtype)

    def view(self, registers: Registers) -> np.ndarray[Any, Any]:
        """The array where it lies, not to be written to."""
        _, pointer, dims, strides = self._row
        size = self._dtype.itemsize
        return np.asarray(
            _Memory(
                {
                    "version": 3,
                    "typestr": self._dtype.str,
                    "data": (registers[pointer], True),
                    "shape": tuple([registers[dim] for dim in dims]),
                    "strides": None if strides is None else tuple([size * registers[s] for s in strides]),
                }
            )
        )


class _Memory:
    """Memory as numpy's array interface (version 3) describes it."""

    __slots__ = ("__array_interface__",)

    def __init__(self, interface: dict[str, Any]) -> None:
        self.__array_interface__ = interface


def _due(position: int, dtype: np.dtype[Any], lengths: tuple[int | None, ...]) -> str:
    shape = ", ".join("?" if length is None else str(length) for length in lengths)
    return f"output {position} must be an array of {dtype} with shape ({shape}{',' if len(lengths) == 1 else ''})"


def _found(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"one of {value.dtype} with shape {value.shape}"
    return f"a {type(value).__name__}"
