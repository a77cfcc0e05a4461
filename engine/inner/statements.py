"""A scalar Op, Composite or not, as a flat list of statements: what a backend puts into a loop.

Conversions are explicit: every argument of a statement has the dtype that its operation takes. Composites within
Composites are opened, `identity` and `second` are resolved away, and equal statements are one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np

from engine.graph.variables import Constant, Variable
from engine.inner.composite import Composite, dtype_of
from engine.scalar import Cast, ScalarOp

Argument = (
    tuple[Literal["input"], int] | tuple[Literal["value"], int] | tuple[Literal["constant"], str, bytes]
)
"""Input number i, the result of statement number i, or a constant: its dtype and its bytes, little-endian."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One value of `dtype`: the operation `op` (a scalar Op's name, or "cast") of `args`."""

    op: str
    args: tuple[Argument, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class ScalarBody:
    """`statements`, each using only inputs and values before it; `outputs` are what is computed, of `dtypes`."""

    statements: tuple[Statement, ...]
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
        self.statements: list[Statement] = []
        self.known: dict[Statement, Argument] = {}

    def apply(self, op: ScalarOp, arguments: Sequence[Argument]) -> list[Argument]:
        """What `op` of `arguments` gives."""
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
        return self.value(op.name, converted, result)

    def cast(self, argument: Argument, dtype: str) -> Argument:
        """`argument` as `dtype`."""
        if self.dtype_of(argument) == dtype:
            return argument
        if argument[0] == "constant":
            with np.errstate(all="ignore"):
                return constant_argument(np.frombuffer(argument[2], argument[1])[0].astype(dtype))
        return self.value("cast", [argument], dtype)

    def value(self, op: str, arguments: list[Argument], dtype: str) -> Argument:
        """The value of the statement `op` of `arguments`, which is appended unless there is an equal one."""
        statement = Statement(op, tuple(arguments), dtype)
        if statement not in self.known:
            self.known[statement] = ("value", len(self.statements))
            self.statements.append(statement)
        return self.known[statement]

    def dtype_of(self, argument: Argument) -> str:
        """The dtype of `argument`."""
        if argument[0] == "input":
            return self.input_dtypes[argument[1]]
        return self.statements[argument[1]].dtype if argument[0] == "value" else argument[1]


def _argument(variable: Variable, values: Mapping[Variable, Argument]) -> Argument:
    return constant_argument(variable.data) if isinstance(variable, Constant) else values[variable]


def constant_argument(value: np.ndarray | np.generic) -> Argument:
    """The argument that is the scalar `value`, by its bits."""
    array = np.asarray(value)
    return ("constant", array.dtype.name, array.astype(array.dtype.newbyteorder("<")).tobytes())
