"""A scalar Op, Composite or not, as a flat list of statements: what a backend puts into a loop.

Conversions are explicit: every argument of a statement has the dtype that its operation takes. Composites within
Composites are opened, `identity` and `second` are resolved away, and equal statements are one. A ScalarLoop is a
`Repeat`, whose body is a list of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np

from engine.graph.variables import Constant, Variable
from engine.inner.composite import Composite, dtype_of
from engine.inner.scalar_loop import ScalarLoop
from engine.scalar import Cast, ScalarOp
from engine.scalar.embedded import Embedded, embedded

Argument = (
    tuple[Literal["input"], int]
    | tuple[Literal["value"], int]
    | tuple[Literal["result"], int, int]
    | tuple[Literal["constant"], str, bytes]
)
"""Input number i, the result of statement number i, result number k of statement number i, which is a `Repeat`, or a
constant: its dtype and its bytes, little-endian."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One value of `dtype`: the operation `op` (a scalar Op's name, "cast", or a user's function) of `args`."""

    op: str | Embedded
    args: tuple[Argument, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class Repeat:
    """A ScalarLoop: `body` done again and again. `args` are how often (an int64), then the inputs of the body at first.

    Its outputs are the states, which are its first inputs in the next pass, and, if it `is_while`, whether to stop.
    """

    args: tuple[Argument, ...]
    dtypes: tuple[str, ...]
    body: ScalarBody
    is_while: bool

    @property
    def op(self) -> str:
        """What it is to a reader."""
        return "scalar_loop"


@dataclass(frozen=True, slots=True)
class ScalarBody:
    """`statements`, each using only inputs and values before it; `outputs` are what is computed, of `dtypes`."""

    statements: tuple[Statement | Repeat, ...]
    outputs: tuple[Argument, ...]
    dtypes: tuple[str, ...]


def scalar_statements(scalar_op: ScalarOp, input_dtypes: Sequence[str]) -> ScalarBody:
    """The statements of `scalar_op` applied to inputs of `input_dtypes`.

    Refuses (TypeError) dtypes that it does not take.
    """
    flat = _Flattener(tuple(input_dtypes))
    arguments: list[Argument] = [("input", index) for index in range(len(input_dtypes))]
    outputs = flat.apply(scalar_op, arguments)
    return ScalarBody(
        tuple(flat.statements), tuple(outputs), tuple(flat.dtype_of(output) for output in outputs)
    )


class _Flattener:
    """Collects statements."""

    def __init__(self, input_dtypes: tuple[str, ...]) -> None:
        self.input_dtypes = input_dtypes
        self.statements: list[Statement | Repeat] = []
        self.known: dict[Statement | Repeat, int] = {}

    def apply(self, op: ScalarOp, arguments: Sequence[Argument]) -> list[Argument]:
        """What `op` of `arguments` gives."""
        if isinstance(op, ScalarLoop):
            return self.loop(op, arguments)
        if not isinstance(op, Composite):
            return [self.operation(op, arguments)]
        inputs = zip(op.inner_inputs, arguments, strict=True)
        values: dict[Variable, Argument] = {
            variable: self.cast(argument, dtype_of(variable)) for variable, argument in inputs
        }
        for node in op.fgraph.nodes:
            results = self.apply(
                cast(ScalarOp, node.op), [_argument(variable, values) for variable in node.inputs]
            )
            values.update(zip(node.outputs, results, strict=True))
        return [_argument(variable, values) for variable in op.inner_outputs]

    def operation(self, op: ScalarOp, arguments: Sequence[Argument]) -> Argument:
        """What `op`, which is no Composite, of `arguments` gives."""
        wanted, result = op.signature(tuple(self.dtype_of(argument) for argument in arguments))
        if isinstance(op, Cast):
            return self.cast(arguments[0], result)
        if op.name in ("identity", "second"):
            return self.cast(arguments[-1], result)
        converted = [self.cast(argument, dtype) for argument, dtype in zip(arguments, wanted, strict=True)]
        return self.value(embedded(op, wanted, result) or op.name, converted, result)

    def cast(self, argument: Argument, dtype: str) -> Argument:
        """`argument` as `dtype`."""
        if self.dtype_of(argument) == dtype:
            return argument
        if argument[0] == "constant":
            with np.errstate(all="ignore"):
                return constant_argument(np.frombuffer(argument[2], argument[1])[0].astype(dtype))
        return self.value("cast", [argument], dtype)

    def loop(self, op: ScalarLoop, arguments: Sequence[Argument]) -> list[Argument]:
        """What `op` of `arguments` gives."""
        args = tuple([self.cast(a, dtype) for a, dtype in zip(arguments, op.input_dtypes, strict=True)])
        dtypes = op.input_dtypes[1:]
        position = self.appended(Repeat(args, dtypes, scalar_statements(op.step, dtypes), op.is_while))
        return [("result", position, number) for number in range(op.nout)]

    def value(self, op: str | Embedded, arguments: list[Argument], dtype: str) -> Argument:
        """The value of the statement `op` of `arguments`, which is appended unless there is an equal one."""
        return ("value", self.appended(Statement(op, tuple(arguments), dtype)))

    def appended(self, statement: Statement | Repeat) -> int:
        """Where `statement`, or one equal to it, stands."""
        if statement not in self.known:
            self.known[statement] = len(self.statements)
            self.statements.append(statement)
        return self.known[statement]

    def dtype_of(self, argument: Argument) -> str:
        """The dtype of `argument`."""
        if argument[0] == "input":
            return self.input_dtypes[argument[1]]
        if argument[0] == "constant":
            return argument[1]
        statement = self.statements[argument[1]]
        return statement.body.dtypes[argument[-1]] if isinstance(statement, Repeat) else statement.dtype


def _argument(variable: Variable, values: Mapping[Variable, Argument]) -> Argument:
    return constant_argument(variable.data) if isinstance(variable, Constant) else values[variable]


def constant_argument(value: np.ndarray | np.generic) -> Argument:
    """The argument that is the scalar `value`, by its bits."""
    array = np.asarray(value)
    return ("constant", array.dtype.name, array.astype(array.dtype.newbyteorder("<")).tobytes())
