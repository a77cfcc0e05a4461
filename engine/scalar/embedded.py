"""`Embedded`: a user function on numbers, compiled into kernels as one more scalar operation.

A user's scalar Op says by `numba_function` how numba computes it. `Embedded` is what scalar
statements and kernels hold of it. Its name is a digest of all that determines the function: its
code and what that reads, the options of its decorator, what is registered with numba, and the
dtypes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from cachegraph.errors import Unfingerprintable
from cachegraph.fingerprint.encoding import encode
from cachegraph.fingerprint.primitives import strong_digest
from cachegraph.fingerprint.registry import register_encoder
from engine.errors import FunctionRefused
from engine.graph.apply import Apply
from engine.graph.fgraph import FrozenFunctionGraph
from engine.graph.op import Op
from engine.graph.user_ops import DESCRIBED, is_user_op, needs_python, without_context
from engine.scalar.op import ScalarOp
from engine.scalar.promotion import COMPILED
from engine.scalar.type import scalar_type

if TYPE_CHECKING:
    from cachegraph.fingerprint.encoder import Encoder


class Embedded:
    """`function`, a Python function or a numba dispatcher, from `arguments` (dtypes) to the number `result`.

    With `ranks` the arguments are C-contiguous arrays, which it must not overwrite. Two are equal if
    their names are. `op` is the user Op.
    """

    def __init__(
        self,
        name: str,
        arguments: tuple[str, ...],
        result: str,
        ranks: tuple[int, ...] | None,
        op: Op,
        function: Any,
    ) -> None:
        self.name = name
        self.arguments = arguments
        self.result = result
        self.ranks = ranks
        self.op = op
        self.function = function

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Embedded) and self.identity == other.identity

    def __hash__(self) -> int:
        return hash(self.identity)

    @property
    def identity(self) -> tuple[Any, ...]:
        """The name, which says what the function computes, and the types of its arguments and result."""
        return self.name, self.arguments, self.result, self.ranks

    def __str__(self) -> str:
        return str(self.op)

    def refused(self, found: str) -> FunctionRefused:
        """Return the error that says why kernels cannot contain this function.

        For functions on arrays this is expected: most of them do not qualify.
        """
        return FunctionRefused(self.op, (self.arguments, self.ranks), found, self.ranks is not None)


Signature = tuple[tuple[str, ...], tuple[int, ...] | None]
"""The dtypes of the arguments and, for arrays, their ranks."""

_refused: dict[Op, set[Signature]] = {}


def refuse(op: Op, signature: Signature) -> None:
    """Make `op` run in Python for arguments of `signature` from now on, because kernels cannot contain it."""
    _refused.setdefault(op, set()).add(signature)


def refused_signatures(op: Op) -> list[Signature]:
    """Return the signatures that `refuse` was called with for `op`."""
    return sorted(_refused.get(op, ()))


def has_compiled_dtypes(node: Apply) -> bool:
    """Return True if kernels compute with the dtypes of all inputs and outputs of `node`."""
    variables = (*node.inputs, *node.outputs)
    return all(getattr(variable.type, "dtype", "bool") in COMPILED for variable in variables)


def has_loops(node: Apply) -> bool:
    """Return True if kernels compute the Elemwise `node` in their loops, user Ops in it included."""
    if not has_compiled_dtypes(node) or not _has_kernel(cast(Any, node.op).scalar_op):
        return False
    if not needs_python(node.op):
        return True
    return not is_user_op(node.op) and _is_embedded(cast(Any, node.op).scalar_op, _dtypes(node))


def _has_kernel(op: Any) -> bool:
    """Return True if the scalar `op` has a kernel, and so has all that it is composed of."""
    graph = getattr(op, "fgraph", None)
    return op.has_kernel and (graph is None or graph.computed("has_kernel", _have_kernels))


def _have_kernels(graph: FrozenFunctionGraph) -> bool:
    return all(_has_kernel(node.op) for node in graph.nodes)


def _is_embedded(op: Any, dtypes: tuple[str, ...]) -> bool:
    """Return True if kernels can contain the scalar `op` for `dtypes`.

    A user Op must map numbers to one number and have a `numba_function`.
    """
    if is_user_op(op):
        if not hasattr(op, "numba_function") or op.nout != 1:
            return False
        return (op.signature(dtypes)[0], None) not in _refused.get(op, ())
    graph = getattr(op, "fgraph", None)
    return graph is None or all(_is_embedded(node.op, _dtypes(node)) for node in graph.nodes)


def _dtypes(node: Apply) -> tuple[str, ...]:
    return tuple([cast(Any, variable.type).dtype for variable in node.inputs])


def embedded(op: ScalarOp, arguments: tuple[str, ...], result: str) -> Embedded | None:
    """Return the function that computes `op` within kernels, or None for an Op without `numba_function`.

    Raises FunctionRefused if the Op has no function for these dtypes, or one that has no fingerprint.
    """
    if not hasattr(op, "numba_function"):
        return None
    node = op.make_node(*[scalar_type(dtype).make_variable() for dtype in arguments])
    return _embedded(node, arguments, result, None)


def embedded_node(node: Apply, arguments: tuple[str, ...], result: str, ranks: tuple[int, ...]) -> Embedded:
    """Return the function that computes `node`, on arrays of `ranks`, in a kernel. Raises as `embedded`."""
    return _embedded(node, arguments, result, ranks)


def _embedded(
    node: Apply, arguments: tuple[str, ...], result: str, ranks: tuple[int, ...] | None
) -> Embedded:
    from cachegraph.fingerprint.extensions import encode_extensions  # takes 3 ms, and few models need it

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
    return Embedded(f"u{strong_digest(described).hex()}", arguments, result, ranks, node.op, function)


def numba_function_of(op: Any, node: Any) -> Any:
    """Return what `op.numba_function` gives for a copy of `node` without values, or None without such a
    method.

    Raises TypeError unless it is a Python function or a numba dispatcher.
    """
    make = getattr(op, "numba_function", None)
    function = None if make is None else make(without_context(node))
    if function is not None and not hasattr(getattr(function, "py_func", function), "__code__"):
        raise TypeError(
            f"Compiling {op}: its numba_function() gave a {type(function).__name__}; return a Python "
            "function, or one decorated with numba.njit, or None"
        )
    return function


def _write(encoder: Encoder, value: Embedded) -> None:
    encoder.value(value.identity)


register_encoder(Embedded, _write)
