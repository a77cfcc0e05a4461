"""The loop language: one kernel, completely described, knowing nothing of who compiles it.

A kernel is a C function `int32 symbol(int64 *arguments)`. Each argument is an address or an int64 (an extent, or a
stride counted in elements). It returns OK or another status of runtime/kernel_interface.py; the details of a failure
it writes through an address that it was given. Buffers belong to the caller; a kernel allocates nothing and calls only libm
and the externals it names. bool is one byte, 0 or 1.

A body is a sequence of nodes. Every value has a fresh name and is never assigned again: a loop carries values from one
pass to the next by naming them (`Carried`), and after the loop the name means the last. Where an integer is asked
for, a `Bound` is the name of an int64 or a number.

The canonical encoding of a kernel is that of the tuple (LOOPS_VERSION, parameters, body) as
cachegraph/fingerprint/values.py writes it.

Version history
    1  first
    2  a loop may end early (`until`)
    3  functions of users' as operations, and on arrays
"""

from __future__ import annotations

from dataclasses import dataclass

from cachegraph.fingerprint.encoding import encode
from engine.scalar.embedded import Embedded

LOOPS_VERSION = 3

Bound = str | int


@dataclass(frozen=True, slots=True)
class Pointer:
    """A parameter: the address of elements of `dtype`."""

    name: str
    dtype: str


@dataclass(frozen=True, slots=True)
class Integer:
    """A parameter: an int64."""

    name: str


@dataclass(frozen=True, slots=True)
class Place:
    """An element: `pointer[sum of the products in terms]`, each factor an int64's name; no terms is element 0."""

    pointer: str
    terms: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Number:
    """`target` is a scalar of `dtype`; `value` holds its bytes, little-endian."""

    target: str
    dtype: str
    value: bytes


@dataclass(frozen=True, slots=True)
class Compute:
    """`target` of `dtype` is `op`, a scalar operation (operations.py) or a user's function, of the values named
    `arguments`. If such a function raises, the kernel ends with FUNCTION_RAISED."""

    target: str
    op: str | Embedded
    arguments: tuple[str, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class Elements:
    """A C-contiguous array: the pointer to its elements, and its lengths (int64 names)."""

    pointer: str
    lengths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Evaluate:
    """`target` is the number that `function`, a user's, gives for `arrays`."""

    target: str
    function: Embedded
    arrays: tuple[Elements, ...]


@dataclass(frozen=True, slots=True)
class ReadElement:
    """`target` is the element at `place`."""

    target: str
    place: Place


@dataclass(frozen=True, slots=True)
class WriteElement:
    """The element at `place` becomes `value`, which has the dtype of the pointer."""

    place: Place
    value: str


@dataclass(frozen=True, slots=True)
class Array:
    """`name` is a pointer to `size` uninitialized elements of `dtype` that live as long as the call."""

    name: str
    dtype: str
    size: int


@dataclass(frozen=True, slots=True)
class Carried:
    """`name` is `initial` in the first pass and `following`, a value of the pass, in the next; then the last one."""

    name: str
    initial: str
    following: str


@dataclass(frozen=True, slots=True)
class Loop:
    """For `index` (int64) from `start` while less than `stop`, `step` (a positive number) apart: `body`.

    With `until`, the name of a bool of the body, the pass in which that is true is the last.
    """

    index: str
    start: Bound
    stop: Bound
    step: int
    body: tuple[Node, ...]
    carried: tuple[Carried, ...] = ()
    until: str = ""


@dataclass(frozen=True, slots=True)
class If:
    """`then` where the bool named `condition` is true, else `otherwise`; what they name ends with them."""

    condition: str
    then: tuple[Node, ...]
    otherwise: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class Fail:
    """Write `details` (int64 names) to elements 0, 1, ... of the int64 pointer `pointer`, then return `status`."""

    status: int
    pointer: str = ""
    details: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Address:
    """An argument of a call: where the element at `place` is."""

    place: Place


@dataclass(frozen=True, slots=True)
class Reference:
    """An argument of a call: the address of an int64 that holds `parameter`, an integer of the kernel's own."""

    parameter: str


@dataclass(frozen=True, slots=True)
class Literal:
    """An argument of a call: the address of a constant with these bytes."""

    value: bytes


@dataclass(frozen=True, slots=True)
class Call:
    """Call `external` (externals.py), a C function that takes addresses and returns nothing."""

    external: str
    arguments: tuple[Address | Reference | Literal, ...]


Parameter = Pointer | Integer
Node = Number | Compute | Evaluate | ReadElement | WriteElement | Array | Loop | If | Fail | Call

Argument = tuple[str, *tuple[object, ...]]
"""What the caller passes for one parameter; each kernel family says which there are."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """`parameters` and `body` are the computation; `arguments` says what to pass, `summary` what it is to a reader."""

    parameters: tuple[Parameter, ...]
    body: tuple[Node, ...]
    arguments: tuple[Argument, ...]
    summary: str

    def encoding(self) -> bytes:
        """Return the canonical encoding of the computation (without `arguments` and `summary`)."""
        return encode((LOOPS_VERSION, self.parameters, self.body))
