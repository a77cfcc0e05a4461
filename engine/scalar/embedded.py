"""`Embedded`: a function of a user's on numbers that is compiled into kernels, as one more operation.

A scalar Op of a user's says with `numba_function` how numba computes it; here that becomes what statements and kernels
are made of. Its name says all that the function is: its code and what that reads, the options that it was decorated with,
what is registered with numba, and the dtypes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cachegraph.errors import Unfingerprintable
from cachegraph.fingerprint.extensions import encode_extensions
from cachegraph.fingerprint.hasher import encode, strong_digest
from cachegraph.fingerprint.registry import register_encoder
from engine.errors import FunctionRefused
from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.graph.users import needs_python, users_ops_within
from engine.scalar.op import ScalarOp
from engine.scalar.type import scalar_type

if TYPE_CHECKING:
    from cachegraph.fingerprint.hasher import Encoder

DESCRIBED = ("engine", "cachegraph")
"""The packages whose source is a part of every key."""


@dataclass(frozen=True, slots=True)
class Embedded:
    """`function`, a Python function or a dispatcher of numba's, from `arguments` (dtypes) to the number `result`.

    With `ranks` the arguments are C-contiguous arrays, which it may not overwrite. Two are equal if they have one name; `op` is
    whose it is.
    """

    name: str
    arguments: tuple[str, ...]
    result: str
    ranks: tuple[int, ...] | None
    op: Op = field(compare=False)
    function: Any = field(compare=False, repr=False)

    def __str__(self) -> str:
        return str(self.op)


_refused: set[Op] = set()


def has_loops(op: Op) -> bool:
    """Whether kernels compute `op`, an Elemwise, in their loops: of users' Ops it has at most such as they have in them."""
    return not needs_python(op) or all(map(is_embedded, users_ops_within(op)))


def is_embedded(op: Op) -> bool:
    """Whether kernels have `op`, a user's, in them: it gives a number of numbers and says how numba computes it."""
    if not isinstance(op, ScalarOp) or op.nout != 1:
        return False
    return hasattr(op, "numba_function") and op not in _refused


def refuse(op: Op) -> None:
    """Have `op` run by Python from now on: its function has turned out not to be fit for kernels."""
    _refused.add(op)


def is_refused(op: Op) -> bool:
    """Whether `refuse` was called for `op`."""
    return op in _refused


def embedded(op: ScalarOp, arguments: tuple[str, ...], result: str) -> Embedded | None:
    """What computes `op` of numbers within kernels; None if the Op is not one that kernels have in them.

    Raises FunctionRefused if the Op has nothing for these dtypes, or nothing that can be described.
    """
    if not is_embedded(op):
        return None
    node = op.make_node(*[scalar_type(dtype).make_variable() for dtype in arguments])
    return _embedded(node, arguments, result, None)


def embedded_node(node: Apply, arguments: tuple[str, ...], result: str, ranks: tuple[int, ...]) -> Embedded:
    """What computes `node`, of arrays of `ranks`, in a kernel; raises FunctionRefused as `embedded` does."""
    return _embedded(node, arguments, result, ranks)


def _embedded(
    node: Apply, arguments: tuple[str, ...], result: str, ranks: tuple[int, ...] | None
) -> Embedded:
    function = numba_function_of(node.op, node)
    if function is None:
        raise FunctionRefused(node.op, "it has none for these types", is_expected=True)
    try:
        described = encode(
            (encode(function, DESCRIBED), encode_extensions(DESCRIBED), arguments, result, ranks)
        )
    except Unfingerprintable as error:
        raise FunctionRefused(node.op, str(error)) from error
    return Embedded(f"u{strong_digest(described).hex()}", arguments, result, ranks, node.op, function)


def numba_function_of(op: Any, node: Any) -> Any:
    """What `numba_function` of `op` gives for `node`; None if there is no such method.

    Raises TypeError if it is neither a Python function nor a dispatcher of numba's.
    """
    make = getattr(op, "numba_function", None)
    function = None if make is None else make(node)
    if function is not None and not hasattr(getattr(function, "py_func", function), "__code__"):
        raise TypeError(
            f"Compiling {op}: its numba_function() gave a {type(function).__name__}; return a Python function, or one "
            "decorated with numba.njit, or None"
        )
    return function


def _write(encoder: Encoder, value: Embedded) -> None:
    encoder.value((value.name, value.arguments, value.result, value.ranks))


register_encoder(Embedded, _write)
