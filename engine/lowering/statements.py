"""The statements of a scalar computation: the work of a kernel for each element.

`scalar_statements` flattens a scalar Op into a list of them. Conversions are explicit: every argument
of a statement has the dtype that its operation takes. Composites within Composites are opened,
`identity` and `second` disappear, and equal statements become one. A ScalarLoop becomes a `ScalarRepeat`,
whose body is a list of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, cast

import numpy as np
from msgspec import Struct

from engine.graph.variables import Constant, Variable
from engine.inner.composite import Composite, ScalarLoop
from engine.inner.composite import dtype_of as dtype_of_scalar
from engine.lowering.operations import SIGNED
from engine.runtime.errors import InvalidKernel
from engine.runtime.kernel_interface import ITEM_SIZES
from engine.scalar import Cast, ScalarOp
from engine.scalar.embedded import Embedded, embedded

Ref = (
    tuple[Literal["input", "value"], int]
    | tuple[Literal["result"], int, int]
    | tuple[Literal["constant"], str, bytes]
)
"""A number that a statement reads: ("input", i) | ("value", j), the value of statement j | ("result",
j, k), result k of statement j, a `ScalarRepeat` | ("constant", dtype, little-endian bytes).
"""


class Statement(Struct, frozen=True):
    """One value of `dtype`: the operation `op` (operations.py, or a function of a user Op) of `arguments`.

    The operation `take` is an element: of an input that is a vector, at an index, and what is added to a
    negative index.
    """

    op: str | Embedded
    arguments: tuple[Ref, ...]
    dtype: str

    @property
    def may_fail(self) -> bool:
        """Return True if it may end the kernel with a status."""
        return isinstance(self.op, Embedded) or (self.op == "pow" and self.dtype in SIGNED)


class ScalarRepeat(Struct, frozen=True):
    """A loop of scalars: `arguments` are the number of passes (an int64), then the inputs of `body` at first.

    The inputs have `dtypes`. The first of them are states: `following` names their values in the next
    pass. The results are the states after the last pass. With `until`, a bool of the body, the pass
    that makes it true is the last, and one more result says if a pass did, or no pass was asked for.
    """

    arguments: tuple[Ref, ...]
    dtypes: tuple[str, ...]
    body: tuple[Statement | ScalarRepeat, ...]
    following: tuple[Ref, ...]
    until: Ref | None = None

    @property
    def op(self) -> str:
        """Return the operations, for summaries."""
        return f"loop({', '.join(str(statement.op) for statement in self.body)})"

    @property
    def results(self) -> tuple[str, ...]:
        """Return the dtypes of the results."""
        return (*self.dtypes[: len(self.following)], *(["bool"] if self.until else []))

    @property
    def may_fail(self) -> bool:
        """Return True if a statement of the body may end the kernel with a status."""
        return any(statement.may_fail for statement in self.body)


class ScalarBody(Struct, frozen=True):
    """`statements`, each of which reads only inputs and earlier values, and the `outputs` they compute.

    `read` has the positions of the inputs that they read.
    """

    statements: tuple[Statement | ScalarRepeat, ...]
    outputs: tuple[Ref, ...]
    read: frozenset[int]


def dtype_of(ref: Ref, inputs: Sequence[str], statements: Sequence[Statement | ScalarRepeat]) -> str:
    """Return the dtype of what `ref` names among `inputs` (dtypes) and `statements`.

    Raises InvalidKernel if there is no such thing.
    """
    if ref[0] == "constant" and ref[1] in ITEM_SIZES:
        return ref[1]
    if ref[0] == "input" and 0 <= ref[1] < len(inputs):
        return inputs[ref[1]]
    if ref[0] in ("value", "result") and 0 <= ref[1] < len(statements):
        statement = statements[ref[1]]
        if isinstance(statement, Statement) and ref[0] == "value":
            return statement.dtype
        if isinstance(statement, ScalarRepeat) and ref[0] == "result" and ref[2] < len(statement.results):
            return statement.results[ref[2]]
    raise InvalidKernel("resolving", repr(ref), "there is no such input, value or constant")


def constant_ref(value: np.ndarray | np.generic) -> Ref:
    """Return the reference to the scalar `value`, by its bits."""
    array = np.asarray(value)
    return ("constant", array.dtype.name, array.astype(array.dtype.newbyteorder("<")).tobytes())


def scalar_statements(scalar_op: ScalarOp, input_dtypes: Sequence[str]) -> ScalarBody:
    """Return the statements of `scalar_op` applied to inputs of `input_dtypes`.

    Raises TypeError if it does not take these dtypes.
    """
    flattener = _Flattener(tuple(input_dtypes))
    outputs = flattener.apply(scalar_op, [("input", index) for index in range(len(input_dtypes))])
    arguments = [ref for statement in flattener.statements for ref in statement.arguments]
    read = frozenset([int(ref[1]) for ref in (*arguments, *outputs) if ref[0] == "input"])
    return ScalarBody(tuple(flattener.statements), tuple(outputs), read)


class _Flattener:
    """The statements of a scalar Op, collected; `known` has the position of each."""

    def __init__(self, input_dtypes: tuple[str, ...]) -> None:
        self.input_dtypes = input_dtypes
        self.statements: list[Statement | ScalarRepeat] = []
        self.known: dict[Statement | ScalarRepeat, int] = {}

    def apply(self, op: ScalarOp, arguments: Sequence[Ref]) -> list[Ref]:
        """Append the statements of `op` of `arguments`; return its outputs."""
        if isinstance(op, ScalarLoop):
            return self.apply_loop(op, arguments)
        if not isinstance(op, Composite):
            return [self.apply_operation(op, arguments)]
        inputs = zip(op.inner_inputs, arguments, strict=True)
        values: dict[Variable, Ref] = {
            variable: self.cast(argument, dtype_of_scalar(variable)) for variable, argument in inputs
        }
        for node in op.fgraph.nodes:
            results = self.apply(
                cast(ScalarOp, node.op), [_ref(variable, values) for variable in node.inputs]
            )
            values.update(zip(node.outputs, results, strict=True))
        return [_ref(variable, values) for variable in op.inner_outputs]

    def apply_operation(self, op: ScalarOp, arguments: Sequence[Ref]) -> Ref:
        """Append the statements of `op`, which holds no graph; return its output."""
        wanted, result = op.signature(tuple(self.dtype_of(argument) for argument in arguments))
        if isinstance(op, Cast):
            return self.cast(arguments[0], result)
        if op.name in ("identity", "second"):
            return self.cast(arguments[-1], result)
        converted = [self.cast(argument, dtype) for argument, dtype in zip(arguments, wanted, strict=True)]
        return self.append_statement(embedded(op, wanted, result) or op.name, converted, result)

    def apply_loop(self, op: ScalarLoop, arguments: Sequence[Ref]) -> list[Ref]:
        """Append the ScalarRepeat of `op`; return its outputs."""
        converted = [self.cast(a, dtype) for a, dtype in zip(arguments, op.input_dtypes, strict=True)]
        dtypes = op.input_dtypes[1:]
        body = scalar_statements(op.step, dtypes)
        following, until = body.outputs[: op.n_states], body.outputs[-1] if op.is_while else None
        position = self.append(ScalarRepeat(tuple(converted), dtypes, body.statements, following, until))
        return [("result", position, number) for number in range(op.nout)]

    def cast(self, argument: Ref, dtype: str) -> Ref:
        """Return `argument` as `dtype`: itself, a converted constant, or the value of a cast."""
        if self.dtype_of(argument) == dtype:
            return argument
        if argument[0] == "constant":
            with np.errstate(all="ignore"):
                return constant_ref(np.frombuffer(argument[2], argument[1])[0].astype(dtype))
        return self.append_statement("cast", [argument], dtype)

    def append_statement(self, op: str | Embedded, arguments: list[Ref], dtype: str) -> Ref:
        return ("value", self.append(Statement(op, tuple(arguments), dtype)))

    def append(self, statement: Statement | ScalarRepeat) -> int:
        """Return the position of `statement`, which is appended unless an equal one is there."""
        if statement not in self.known:
            self.known[statement] = len(self.statements)
            self.statements.append(statement)
        return self.known[statement]

    def dtype_of(self, argument: Ref) -> str:
        return dtype_of(argument, self.input_dtypes, self.statements)


def _ref(variable: Variable, values: Mapping[Variable, Ref]) -> Ref:
    return constant_ref(variable.data) if isinstance(variable, Constant) else values[variable]
