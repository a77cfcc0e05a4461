"""`Embedded`: a function of a user's on numbers that is compiled into kernels, as one more operation.

A scalar Op of a user's says with `numba_function` how numba computes it; here that becomes what statements and kernels
are made of. Its name says all that the function is: its code and what that reads, the options that it was decorated with,
what is registered with numba, and the dtypes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from cachegraph.errors import Unfingerprintable
from cachegraph.fingerprint.encoding import encode
from cachegraph.fingerprint.primitives import strong_digest
from cachegraph.fingerprint.registry import register_encoder
from engine.errors import FunctionRefused
from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.graph.user_ops import is_users, needs_python, without_context
from engine.scalar.op import ScalarOp
from engine.scalar.type import scalar_type

if TYPE_CHECKING:
    from cachegraph.fingerprint.encoder import Encoder

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

    def refused(self, found: str) -> FunctionRefused:
        """Return the error that says why this is not fit for kernels. Of a function on arrays that is nothing to be changed: most are
        not."""
        return FunctionRefused(self.op, (self.arguments, self.ranks), found, self.ranks is not None)


Signature = tuple[tuple[str, ...], tuple[int, ...] | None]
"""The dtypes of the arguments and, of arrays, their ranks."""

_refused: dict[Op, set[Signature]] = {}


def refuse(op: Op, signature: Signature) -> None:
    """Have `op` of such arguments run by Python from now on: its function has turned out not to be fit for kernels."""
    _refused.setdefault(op, set()).add(signature)


def refused_signatures(op: Op) -> list[Signature]:
    """What `refuse` was called with for `op`."""
    return sorted(_refused.get(op, ()))


def has_loops(node: Apply) -> bool:
    """Return True if kernels compute `node`, of an Elemwise, in their loops: of users' Ops it has at most such as they have in them."""
    if not needs_python(node.op):
        return True
    return not is_users(node.op) and _is_embedded(cast(Any, node.op).scalar_op, _dtypes(node))


def _is_embedded(op: Any, dtypes: tuple[str, ...]) -> bool:
    """Return True if kernels have the scalar `op` of `dtypes` in them: a user's gives a number of numbers and says how numba computes
    it."""
    if is_users(op):
        if not hasattr(op, "numba_function") or op.nout != 1:
            return False
        return (op.signature(dtypes)[0], None) not in _refused.get(op, ())
    graph = getattr(op, "fgraph", None)
    return graph is None or all(_is_embedded(node.op, _dtypes(node)) for node in graph.nodes)


def _dtypes(node: Apply) -> tuple[str, ...]:
    return tuple([cast(Any, variable.type).dtype for variable in node.inputs])


def embedded(op: ScalarOp, arguments: tuple[str, ...], result: str) -> Embedded | None:
    """What computes `op` of numbers within kernels; None if it is not an Op that has something for numba.

    Raises FunctionRefused if the Op has nothing for these dtypes, or nothing that can be described.
    """
    if not hasattr(op, "numba_function"):
        return None
    node = op.make_node(*[scalar_type(dtype).make_variable() for dtype in arguments])
    return _embedded(node, arguments, result, None)


def embedded_node(node: Apply, arguments: tuple[str, ...], result: str, ranks: tuple[int, ...]) -> Embedded:
    """What computes `node`, of arrays of `ranks`, in a kernel; raises FunctionRefused as `embedded` does."""
    return _embedded(node, arguments, result, ranks)


def _embedded(
    node: Apply, arguments: tuple[str, ...], result: str, ranks: tuple[int, ...] | None
) -> Embedded:
    from cachegraph.fingerprint.extensions import encode_extensions  # 3 ms, for Ops that few have

    function = numba_function_of(node.op, node)
    found = Embedded("", arguments, result, ranks, node.op, function)
    if function is None:
        raise FunctionRefused(node.op, (arguments, ranks), "it has none for these types", is_expected=True)
    try:
        described = encode(
            (encode(function, DESCRIBED), encode_extensions(DESCRIBED), arguments, result, ranks)
        )
    except Unfingerprintable as error:
        raise found.refused(str(error)) from error
    return replace(found, name=f"u{strong_digest(described).hex()}")


def numba_function_of(op: Any, node: Any) -> Any:
    """What `numba_function` of `op` gives for `node`, of which it is shown the types; None if there is no such method.

    Raises TypeError if it is neither a Python function nor a dispatcher of numba's.
    """
    make = getattr(op, "numba_function", None)
    function = None if make is None else make(without_context(node))
    if function is not None and not hasattr(getattr(function, "py_func", function), "__code__"):
        raise TypeError(
            f"Compiling {op}: its numba_function() gave a {type(function).__name__}; return a Python function, or one "
            "decorated with numba.njit, or None"
        )
    return function


def _write(encoder: Encoder, value: Embedded) -> None:
    encoder.value((value.name, value.arguments, value.result, value.ranks))


register_encoder(Embedded, _write)
