"""The exceptions for a program that stopped, made from the machine's status and registers; numpy would
raise the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from numpy.linalg import LinAlgError

from engine.errors import LengthError
from engine.runtime import kernel_interface
from engine.runtime.instructions import MOST
from engine.runtime.kernel_interface import ITEM_SIZES
from engine.runtime.program import Program, Site
from engine.runtime.registers import DETAILS
from engine.tensor.creation import too_many
from engine.tensor.gathering import unequal_lengths
from engine.tensor.masks import mismatch

Registers = Sequence[int]
Description = tuple[type[Exception], str]


def describe_failure(program: Program, name: str, status: int, registers: Registers) -> Exception:
    """Return the exception for a program that stopped with `status`, called with arguments of the right
    types."""
    site = next((site for site in program.sites if site.pc == registers[0]), None)
    if site is None or site.kind not in _DESCRIPTIONS:
        return RuntimeError(
            f"Calling {name}: the machine stopped with status {status} at word {registers[0]}"
        )
    error, found = _DESCRIPTIONS[site.kind](site, registers)
    return error(f"Calling {name}: {site.op}: {found}")


def describe_shortage(program: Program, name: str, registers: Registers) -> Exception:
    """Return the exception for a program that stopped because memory ran out; it names the largest
    array of that stop.

    As in numpy it is a ValueError if an int64 cannot count the bytes, else a MemoryError.
    """
    stop = max((s for s in program.sites if s.kind == "memory" and s.pc < registers[0]), key=lambda s: s.pc)
    size, shape, dtype, op = max(_wanted(about, registers) for about in stop.about)
    found = (
        f"Calling {name}: {op}: there is no memory for an array of {dtype} with shape {shape}: {size} bytes"
    )
    if size > MOST or any(length < 0 for length in shape):
        return ValueError(f"{found}, more than any array can have")
    return MemoryError(found)


def _wanted(about: str, registers: Registers) -> tuple[int, tuple[int, ...], str, str]:
    dtype, dims, op = about.split(" ", 2)
    shape = tuple(registers[int(dim)] for dim in dims.split(",") if dim)
    # A length of 0 does not make up for others, for numpy.
    return prod(length or 1 for length in shape) * ITEM_SIZES[dtype], shape, dtype, op


def _broadcast(site: Site, registers: Registers) -> Description:
    """Describe a broadcast refused by PyTensor's rule: a length of 1 broadcasts only if the type says so.

    Otherwise gradients would be wrong.
    """
    position, dim = site.about
    found, other = registers[3], registers[2]
    hint = ""
    if 1 in (found, other):
        hint = (
            " Runtime broadcasting not allowed: a length of 1 broadcasts only if the type says so"
            " (shape=(1, ...) where the variable is made, or dimshuffle)."
        )
    return ValueError, (
        f"input {position} has length {found} along dim {dim}, where another input has length {other}.{hint}"
    )


def _dropped_dim(site: Site, registers: Registers) -> Description:
    length = registers[2] if registers[2] != 1 else registers[3]
    return ValueError, f"dim {site.about[0]} is dropped, but its length is {length}, not 1"


def _reshape(site: Site, registers: Registers) -> Description:
    given, due = (tuple(registers[int(dim)] for dim in dims.split(",") if dim) for dims in site.about)
    return ValueError, f"the {prod(given)} elements of an array of shape {given} do not fill the shape {due}"


def _negative(site: Site, registers: Registers) -> Description:
    return ValueError, f"a length in the new shape is {registers[2]}; it must not be negative"


def _length(site: Site, registers: Registers) -> Description:
    found = registers[int(site.about[0])]
    return ValueError, (
        f"a length in the new shape is {found}; it must not be negative, but for one that may be -1"
    )


def _specified(site: Site, registers: Registers) -> Description:
    found, due = (
        tuple(registers[int(dim)] if dim else None for dim in dims.split(",")) for dims in site.about
    )
    return LengthError, LengthError.text(found, due)


def _dot(site: Site, registers: Registers) -> Description:
    return ValueError, (
        f"shapes do not match: the dims that are summed over have lengths {registers[2]} and {registers[3]}"
    )


def _rows(site: Site, registers: Registers) -> Description:
    return LengthError, f"{site.about[0]}: found lengths {registers[2]} and {registers[3]}"


def _index(site: Site, registers: Registers) -> Description:
    axis, index, size = map(int, site.about)
    found, length = registers[index], registers[size]
    return IndexError, f"index {found} is out of bounds for axis {axis} with size {length}"


def _mask(site: Site, registers: Registers) -> Description:
    return IndexError, mismatch(int(site.about[0]), registers[3], registers[2])


def _spread(site: Site, registers: Registers) -> Description:
    return IndexError, unequal_lengths(registers[2], registers[int(site.about[0])])


def _step(site: Site, registers: Registers) -> Description:
    """Describe a slice, or a range, whose step is zero."""
    if len(site.about) == 1:
        return ValueError, f"{site.about[0]} cannot be zero"
    step = registers[int(site.about[-1])]
    return ValueError, f"the step of a range cannot be {step or 'zero'}"


def _range(site: Site, registers: Registers) -> Description:
    return ValueError, str(too_many(*(registers[int(register)] for register in site.about)))


def _too_big(site: Site, registers: Registers) -> Description:
    shape = tuple(registers[int(register)] for register in site.about)
    return ValueError, (
        f"array is too big; one of shape {shape} would have more bytes than an array can have"
    )


def _steps(site: Site, registers: Registers) -> Description:
    return ValueError, f"n_steps is {registers[2]}; it must be 0 or more"


def _sequence(site: Site, registers: Registers) -> Description:
    number, length, steps = site.about[0], *(registers[int(register)] for register in site.about[1:])
    return ValueError, (
        f"sequence {number} has {length} rows, {steps} steps are to be done; give a longer sequence, or "
        "fewer steps"
    )


def _initial_rows(site: Site, registers: Registers) -> Description:
    return ValueError, (
        f"state {site.about[0]} is read from {registers[2]} rows before, as many initial rows are needed; "
        f"{registers[3]} were given"
    )


def _step_rows(site: Site, registers: Registers) -> Description:
    what, dim = site.about
    return ValueError, (
        f"{what}: a step gives a row of length {registers[3]} along dim {dim}, the rows before it have "
        f"length {registers[2]}; all rows must have one shape"
    )


def _kernel(site: Site, registers: Registers) -> Description:
    status, details = registers[1], registers[DETAILS : DETAILS + 3]
    match status:
        case kernel_interface.INDEX_OUT_OF_RANGE:
            position, index, size = details
            axis = site.about[0] if site.about else 0
            return IndexError, (
                f"index {index}, at position {position} of the indices, is out of bounds for axis {axis} "
                f"with size {size}"
            )
        case kernel_interface.NEGATIVE_POWER:
            return ValueError, "Integers to negative integer powers are not allowed."
        case kernel_interface.EMPTY_REDUCTION:
            return ValueError, "zero-size array to reduction operation which has no identity"
        case kernel_interface.NOT_POSITIVE_DEFINITE:
            return LinAlgError, (
                f"the matrix is not positive definite (its leading minor of order {details[0]} is not)"
            )
        case kernel_interface.TOO_LONG:
            return ValueError, f"LAPACK does not take a length of {details[0]}"
        case kernel_interface.FUNCTION_RAISED:
            return RuntimeError, (
                "a function given by numba_function() raised an exception; compile with mode='NUMPY' to "
                "see it"
            )
    return RuntimeError, f"its kernel returned status {status}"


_DESCRIPTIONS: dict[str, Callable[[Site, Registers], Description]] = {
    "broadcast": _broadcast,
    "dropped-dim": _dropped_dim,
    "reshape": _reshape,
    "negative": _negative,
    "length": _length,
    "dot": _dot,
    "specified": _specified,
    "rows": _rows,
    "index": _index,
    "step": _step,
    "range": _range,
    "too-big": _too_big,
    "mask": _mask,
    "spread": _spread,
    "steps": _steps,
    "sequence": _sequence,
    "initial-rows": _initial_rows,
    "step-rows": _step_rows,
    "kernel": _kernel,
}
