"""What a program under construction is made of: buffers, values, steps and loops, each in its stage.

A register holds an int64: a length, a stride, an address. Every register has a *stage*: 0 if it follows from the
inputs alone, s + 1 if it was read from memory that the kernels of stage s write. A stage is laid out as: arithmetic on
lengths, a stop for the memory that it needs, the addresses of views, then its kernels. Most functions have one stage.

The body of a loop is a *region*, with stages of its own, all of them later than whatever its graph can see. In the
first of them, its floor, belongs what is done once before the first pass, if there is one: checks and kernels that no
pass changes, and memory. Arithmetic that no pass changes, and that cannot fail, goes to the region around the loop.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from engine.lowering.loops import Kernel
from engine.runtime.callbacks import Callback

STAGES = 2**32
"""More stages than a region has: stage number s of region r is r * STAGES + s."""


@dataclass(eq=False, slots=True)
class Buffer:
    """Memory that the program has from `stage` on: scratch, or, with a number in `result`, an array that the caller makes.

    `is_kept` if it lasts for longer than its stage: then its memory is its own, and found again in every pass of a loop.
    `is_loaded` if the arithmetic of the next stage reads it: then no other buffer of its stage may have its memory.
    `skipped` is how many of its first rows are no part of the result.
    `used` has for each region the last stage that reads or writes it, of those known so far.
    """

    pointer: int
    dtype: str
    dims: tuple[int, ...]
    nbytes: int
    stage: int
    result: int | None = None
    is_loaded: bool = False
    is_kept: bool = False
    skipped: int = 0
    used: dict[int, int] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Value:
    """Where an array is: the registers of its address, its lengths and, unless it is C-contiguous, its strides in
    elements. Kernels of `stage` and later may read it; `buffer` is what keeps its memory."""

    pointer: int
    dtype: str
    dims: tuple[int, ...]
    stage: int
    strides: tuple[int, ...] | None = None
    buffer: Buffer | None = None

    def stride_in(self, dim: int, rank: int) -> int:
        """Return the stride along `dim` of a nest of `rank` dims, of which the array has the last."""
        assert self.strides is not None
        return self.strides[dim - (rank - len(self.dims))]


@dataclass(eq=False, slots=True)
class CallbackInvocation:
    """What Python computes: `callback` is shown `inputs` and returns an array for each of `outputs`, whose lengths
    must be those that the registers `dims` hold (None: any will do)."""

    callback: Callback
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    dims: tuple[tuple[int | None, ...], ...]


@dataclass(eq=False, slots=True)
class Step:
    """One kernel call, an invocation, a loop with all that is in it, or (none of these) the store of a register into a
    buffer."""

    kernel: Kernel | None
    arguments: tuple[int, ...]
    stage: int
    reads: tuple[Buffer, ...]
    writes: tuple[Buffer, ...]
    op: str
    about: tuple[str, ...] = ()
    loop: LoopStep | None = None
    invocation: CallbackInvocation | None = None


class CarriedRegister(NamedTuple):
    """A register that holds what is in `initial` in the first pass, and, with `by`, so much more in every further one."""

    register: int
    initial: int
    by: int | None = None


@dataclass(eq=False, slots=True)
class LoopStep:
    """A loop of `count` passes, a step of `stage`; what is in it has stages from `floor` on. `counter` counts from 0.

    After each pass the registers of a ring are exchanged: each holds what the next one did, the last what the first did.
    With `until`, a bool, the pass that makes it true is the last, and `done` holds the number of passes made.
    """

    floor: int
    stage: int
    count: int
    counter: int
    carried: list[CarriedRegister] = field(default_factory=list)
    rings: list[tuple[int, ...]] = field(default_factory=list)
    until: Value | None = None
    done: int | None = None

    @property
    def first(self) -> int:
        """The first stage of what is done in every pass."""
        return self.floor + 1


@dataclass(eq=False, slots=True)
class Check:
    """What to say when an instruction of the arithmetic fails."""

    kind: str
    op: str
    about: tuple[str, ...]


class ArithmeticInstruction(NamedTuple):
    """One instruction of the arithmetic (instructions.py), and what to say when it stops the program."""

    name: str
    operands: tuple[int, ...]
    check: Check | None


def region_of(stage: int) -> int:
    """The number of the region that `stage` is in; 0 is what is in no loop."""
    return stage // STAGES


def floor_of(stage: int) -> int:
    """The first stage of the region that `stage` is in."""
    return region_of(stage) * STAGES
