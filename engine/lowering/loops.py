"""The loop language: the complete description of one kernel, independent of the compiler.

A kernel is a C function `int32 symbol(int64 *arguments)`. Each argument is an address or an int64 (an
extent, or a stride in elements). It returns OK or another status of runtime/kernel_interface.py, and
writes the details of a failure through an address that it is given. Buffers belong to the caller: a
kernel allocates nothing. It calls only libm and the externals that it names. A bool is one byte, 0 or
1.

A body is a sequence of nodes. Every value has a fresh name and is never assigned again. A loop carries
values from one pass to the next under a name (`Carried`), which means the last value after the loop. A
`Bound` is the name of an int64, or a number.

The canonical encoding of a kernel is that of the tuple (LOOPS_VERSION, parameters, body), as
cachegraph/fingerprint/values.py writes it.

Version history
    1  first
    2  a loop may end early (`until`)
    3  functions of user Ops as operations, and on arrays
    4  independent loops, and carried values that passes change in any order
    5  loops that are not interleaved
    6  integers as arguments of a call
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from typing import get_args

from msgspec import Struct

from cachegraph.fingerprint.encoding import encode
from cachegraph.fingerprint.registry import register_record
from engine.scalar.embedded import Embedded

LOOPS_VERSION = 6

Bound = str | int


class Pointer(Struct, frozen=True):
    """A parameter: the address of elements of `dtype`."""

    name: str
    dtype: str


class Integer(Struct, frozen=True):
    """A parameter: an int64."""

    name: str


class Place(Struct, frozen=True):
    """An element: `pointer[sum of the products in terms]`; a factor is an int64's name, no terms mean 0."""

    pointer: str
    terms: tuple[tuple[str, ...], ...] = ()


class Number(Struct, frozen=True):
    """A constant named `target`: a scalar of `dtype`, whose little-endian bytes are `value`."""

    target: str
    dtype: str
    value: bytes


class Compute(Struct, frozen=True):
    """The value `target` of `dtype`: `op` (operations.py, or a user function) of `arguments`.

    If a user function raises, the kernel ends with FUNCTION_RAISED.
    """

    target: str
    op: str | Embedded
    arguments: tuple[str, ...]
    dtype: str


class Elements(Struct, frozen=True):
    """A C-contiguous array: the pointer to its elements, and its lengths (names of int64s)."""

    pointer: str
    lengths: tuple[str, ...]


class Evaluate(Struct, frozen=True):
    """The number `target` that the user function `function` returns for `arrays`."""

    target: str
    function: Embedded
    arrays: tuple[Elements, ...]


class ReadElement(Struct, frozen=True):
    """The value `target`: the element at `place`."""

    target: str
    place: Place


class WriteElement(Struct, frozen=True):
    """The element at `place` becomes `value`, which has the dtype of the pointer."""

    place: Place
    value: str


class Array(Struct, frozen=True):
    """The pointer `name` to `size` uninitialized elements of `dtype` that live as long as the call."""

    name: str
    dtype: str
    size: int


class Carried(Struct, frozen=True):
    """A value that changes: `name` is `initial` in the first pass, then `following` of the pass before.

    If it is `unordered`, `following` is a sum of `name` and something else, and nothing else reads `name`:
    floats may be added in another order than that of the passes, in partial results side by side.
    """

    name: str
    initial: str
    following: str
    unordered: bool = False


class Loop(Struct, frozen=True):
    """`body` for each int64 `index` from `start` while less than `stop`, `step` (positive) apart.

    `until` names a bool of the body: the pass in which it is true is the last. In an `independent` loop no
    pass reads or writes an element that another pass writes: passes may run side by side. A loop that is
    not `interleaved` has as many side by side as fit into one register: less code, in less time.
    """

    index: str
    start: Bound
    stop: Bound
    step: int
    body: tuple[Node, ...]
    carried: tuple[Carried, ...] = ()
    until: str = ""
    independent: bool = False
    interleaved: bool = True


class If(Struct, frozen=True):
    """`then` if the bool named `condition` is true, else `otherwise`; names defined in either end with it."""

    condition: str
    then: tuple[Node, ...]
    otherwise: tuple[Node, ...] = ()


class Fail(Struct, frozen=True):
    """Write `details` (names of int64s) to the int64s at `pointer`, then return `status`."""

    status: int
    pointer: str = ""
    details: tuple[str, ...] = ()


class Address(Struct, frozen=True):
    """An argument of a call: the address of the element at `place`."""

    place: Place


class Reference(Struct, frozen=True):
    """An argument of a call: the address of an int64 that holds `parameter`, an integer of the kernel."""

    parameter: str


class Literal(Struct, frozen=True):
    """An argument of a call: the address of a constant with these bytes."""

    value: bytes


class Word(Struct, frozen=True):
    """An argument of a call: the int64 `name` itself."""

    name: str


Passed = Address | Reference | Literal | Word


class Call(Struct, frozen=True):
    """A call of `external` (runtime/externals.py), a C function of which no result is used.

    It may also be one of ROW_PRODUCTS, which the printer defines.
    """

    external: str
    arguments: tuple[Passed, ...]


ROW_PRODUCTS = {
    f"row_products_{element}_{accumulator}": 4
    for element, accumulator in (("float64", "float64"), ("float32", "float64"), ("float32", "float32"))
}
"""The functions that compute products of ROWS_OF_PRODUCTS rows, by the dtypes of their elements and products.

Each has so many arguments: the address of the first row, the length of a row, how many rows there are, and
the address of the products. If there are fewer rows, the last one is computed again. Columns behind the last
whole COLUMNS_OF_PRODUCTS are left out.
"""
ROWS_OF_PRODUCTS, COLUMNS_OF_PRODUCTS = 12, 4

Parameter = Pointer | Integer
Node = Number | Compute | Evaluate | ReadElement | WriteElement | Array | Loop | If | Fail | Call

Argument = tuple[str, *tuple[object, ...]]
"""The argument that the caller passes for one parameter (kernels/building.py)."""


class Kernel(Struct, frozen=True, cache_hash=True):
    """A computation (`parameters` and `body`), the `arguments` to pass, and a `summary` for readers."""

    parameters: tuple[Parameter, ...]
    body: tuple[Node, ...]
    arguments: tuple[Argument, ...]
    summary: str

    def encoding(self) -> bytes:
        """Return the canonical encoding of the computation (without `arguments` and `summary`)."""
        return encode((LOOPS_VERSION, self.parameters, self.body))


def moving_terms(place: Place, changing: Set[str]) -> list[tuple[str, ...]]:
    """Return the terms of `place` that have one of the names `changing` in them."""
    return [term for term in place.terms if not changing.isdisjoint(term)]


for _record in (*get_args(Parameter), *get_args(Node), *get_args(Passed), Place, Elements, Carried):
    register_record(_record, _record.__struct_fields__)


def walk(body: Sequence[Node]) -> Iterator[Node]:
    """Yield every node of `body`, and those inside of its loops and branches."""
    for node in body:
        yield node
        if isinstance(node, Loop):
            yield from walk(node.body)
        elif isinstance(node, If):
            yield from walk((*node.then, *node.otherwise))
