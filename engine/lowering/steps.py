"""The parts of a program under construction: buffers, values, steps and loops, each in its stage.

A register holds an int64: a length, a stride, an address. Every register has a *stage*: 0 if it follows
from the inputs alone, s + 1 if it is read from memory that the kernels of stage s write. The code of a
stage is: arithmetic on lengths, a stop for the memory that it needs, the addresses of views, then its
kernels. Most functions have one stage.

The body of a loop is a *region* with stages of its own, all of them later than any that its graph can
see. The first of them is its floor. It has what is done once, before the first pass, if there is one:
checks, memory, and kernels with the same result in every pass. Arithmetic that is the same in every
pass and cannot fail goes to the region around the loop.
"""

from __future__ import annotations

from msgspec import Struct, field

from cachegraph.named_tuples import NamedTuple
from engine.lowering.loops import Kernel
from engine.lowering.statements import Ref, ScalarRepeat, Statement
from engine.runtime.callbacks import Callback

STAGES = 2**32
"""More stages than a region has: stage s of region r has the number r * STAGES + s."""


class Buffer(Struct, eq=False):
    """Memory that the program has from `stage` on: scratch, or the caller's array number `result`.

    It `is_kept` if it lasts longer than its stage: it shares its memory with no buffer, and every pass
    of a loop finds it again. It `is_loaded` if the arithmetic of the next stage reads it: no other
    buffer of its stage may have its memory. The first `skipped` rows are no part of the result. `used`
    has, for each region, the last stage known so far that reads or writes it.
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


class Value(Struct, eq=False):
    """An array: the registers of its address, its lengths and, if it is not C-contiguous, its strides.

    Strides count elements. Kernels of `stage` and later may read the array. `buffer` has its memory.
    """

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


class CallbackInvocation(Struct, eq=False):
    """A call of Python: `callback` gets `inputs` and returns an array for each of `outputs`.

    The lengths of an output must be those in its registers of `dims`; None allows any length.
    """

    callback: Callback
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    dims: tuple[tuple[int | None, ...], ...]


class Step(Struct, eq=False):
    """A kernel call, an invocation, a loop, or (none of these) the store of a register into a buffer.

    `memory` has, for each argument, the buffer that it is the address of an element of, if there is one.
    `lengths` are those of the nest that a kernel runs over. If the call may run in parts, `elements` is
    their product. `work` says what the kernel does if that is one loop.
    """

    kernel: Kernel | None
    arguments: tuple[int, ...]
    stage: int
    reads: tuple[Buffer, ...]
    writes: tuple[Buffer, ...]
    op: str
    about: tuple[str, ...] = ()
    loop: LoopStep | None = None
    invocation: CallbackInvocation | None = None
    memory: tuple[Buffer | None, ...] = ()
    lengths: tuple[int, ...] = ()
    elements: int | None = None
    work: FlatWork | None = None


class FlatOperand(Struct, frozen=True):
    """An input of flat work: one element for all passes if it `is_repeated`, else one for each pass.

    `pointer` has its address, `stride` how many elements are between two, if it is not 1 (registers). A
    repeated one that `is_indexed` is a vector: statements `take` elements of it.
    """

    pointer: int
    dtype: str
    is_repeated: bool
    stride: int | None
    buffer: Buffer | None
    is_indexed: bool = False


class FlatStore(Struct, frozen=True):
    """An array of flat work, with an element for each pass: the value `ref`."""

    ref: Ref
    pointer: int
    dtype: str
    buffer: Buffer


class FlatReduction(Struct, frozen=True):
    """A number that flat work computes: the reduction of `ref`, cast to `accumulator`, over all passes."""

    kind: str
    ref: Ref
    accumulator: str
    pointer: int
    dtype: str
    buffer: Buffer


class FlatAddition(Struct, frozen=True):
    """An array of flat work to which each pass adds `ref` at one place.

    The operand number `index` has the places, checked, the repeated operand number `from_end` what is added
    to negative ones: 0 if there are none.
    """

    ref: Ref
    index: int
    from_end: int
    pointer: int
    dtype: str
    buffer: Buffer


class FlatWork(Struct, frozen=True):
    """The work of a kernel call that is one loop of `extent` passes (a register) and cannot fail."""

    extent: int
    operands: tuple[FlatOperand, ...]
    statements: tuple[Statement | ScalarRepeat, ...]
    stores: tuple[FlatStore, ...] = ()
    reductions: tuple[FlatReduction, ...] = ()
    additions: tuple[FlatAddition, ...] = ()

    @property
    def accumulated(self) -> tuple[FlatReduction | FlatAddition, ...]:
        """The results that are complete behind the loop only: nothing in it may read them."""
        return (*self.reductions, *self.additions)


class CarriedRegister(NamedTuple):
    """A register with the number of `initial` in the first pass; `by` is added for each further pass."""

    register: int
    initial: int
    by: int | None = None


class LoopStep(Struct, eq=False):
    """A loop of `count` passes in `stage`; the stages of its body begin at `floor`. `counter` counts from 0.

    After each pass the registers of a ring are exchanged: each gets the number of the next, the last
    that of the first. With `until`, a bool, the pass that makes it true is the last, and `done` holds
    the number of passes made.
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
        """Return the first stage of what is done in every pass."""
        return self.floor + 1


class Check(Struct, eq=False):
    """The kind and details of the failure that an instruction of the arithmetic reports."""

    kind: str
    op: str
    about: tuple[str, ...]


class ArithmeticInstruction(NamedTuple):
    """An instruction of the arithmetic (runtime/instructions.py), and its failure if it may fail."""

    name: str
    operands: tuple[int, ...]
    check: Check | None


def region_of(stage: int) -> int:
    """Return the number of the region that `stage` is in; 0 is outside all loops."""
    return stage // STAGES


def floor_of(stage: int) -> int:
    """Return the first stage of the region that `stage` is in."""
    return region_of(stage) * STAGES
