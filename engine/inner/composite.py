"""Scalar Ops that hold a graph: `Composite`, the result of fusion, and `ScalarLoop`, for series."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from engine.errors import NullGradientError
from engine.graph.apply import Apply
from engine.graph.fgraph import FrozenFunctionGraph
from engine.graph.variables import Variable
from engine.inner.base import HasInnerGraph, value_of
from engine.inner.retyping import retyped
from engine.scalar import ScalarOp, ScalarType, scalar_type
from engine.scalar.op import as_scalar
from engine.scalar.promotion import INTEGERS, NoRule, Signature

MAX_PRINTED = 8
"""The largest number of operations with which a Composite is printed in full."""


class Composite(ScalarOp, HasInnerGraph):
    """Computes the scalar `outputs` from the scalar `inputs`. Two are equal if their frozen graphs are.

    Raises TypeError for variables that are not scalar and Ops that are not ScalarOps; MissingInputError
    for a graph that uses more than `inputs` and constants.
    """

    __props__ = ("fgraph",)
    name = "composite"
    has_own_dtypes = True

    def __init__(self, inputs: Sequence[Variable], outputs: Sequence[Variable]) -> None:
        self._hold(FrozenFunctionGraph.from_io(inputs, outputs))

    @classmethod
    def from_fgraph(cls, fgraph: FrozenFunctionGraph) -> Composite:
        """Return the Composite of a frozen graph of scalars."""
        new = cls.__new__(cls)
        new._hold(fgraph)
        return new

    def _hold(self, fgraph: FrozenFunctionGraph) -> None:
        check_scalar_graph("Composite", fgraph)
        self.fgraph = fgraph
        self.nin = len(fgraph.inputs)
        self.nout = len(fgraph.outputs)

    @property
    def input_dtypes(self) -> tuple[str, ...]:
        """The dtypes that arguments are cast to."""
        return tuple([dtype_of(variable) for variable in self.inner_inputs])

    def _signature(self, dtypes: tuple[str, ...]) -> Signature:
        return self.input_dtypes, self.result_dtypes(dtypes)[0]

    def result_dtypes(self, dtypes: tuple[str, ...]) -> tuple[str, ...]:
        """Return the dtype of each output, which does not depend on the arguments' dtypes."""
        return tuple([dtype_of(variable) for variable in self.inner_outputs])

    def make_node(self, *inputs: Any) -> Apply:
        """Return the node on scalar variables; of other dtypes than `input_dtypes`, that of a Composite which
        computes the same from them (`retyped`)."""
        variables = [as_scalar(value) for value in inputs]
        found = tuple([dtype_of(variable) for variable in variables])
        if found != self.input_dtypes:
            self.signature(found)
            types = [variable.type for variable in variables]
            return Composite(*retyped(self.fgraph, types)).make_node(*variables)
        return Apply(
            self, variables, [scalar_type(dtype).make_variable() for dtype in self.result_dtypes(found)]
        )

    def _impl(self, *arrays: Any) -> Any:
        """Return one array, or a tuple for several outputs, in the common shape of the arguments."""
        values: dict[Variable, Any] = dict(zip(self.inner_inputs, arrays, strict=True))
        for node in self.fgraph.nodes:
            values.update(zip(node.outputs, _evaluate(node, values), strict=True))
        shape = np.broadcast_shapes(*[np.shape(array) for array in arrays])
        results = [np.broadcast_to(value_of(variable, values), shape)[()] for variable in self.inner_outputs]
        return results[0] if self.nout == 1 else tuple(results)

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        results = self.impl(*inputs)
        results = (results,) if self.nout == 1 else results
        for storage, dtype, result in zip(output_storage, self.result_dtypes(()), results, strict=True):
            storage[0] = np.dtype(dtype).type(result)

    def derivative(
        self, inputs: Any, output: Any, cotangent: Any, apply: Any, wanted: Any = None
    ) -> list[Any]:
        """Raise NotImplementedError: fusion, which makes Composites, runs after gradients are taken."""
        raise NotImplementedError(
            f"Differentiating {self}: take the gradient of the graph before it is fused"
        )

    def __str__(self) -> str:
        return self.fgraph.computed("composite", _printed)

    __repr__ = __str__


def _printed(fgraph: FrozenFunctionGraph) -> str:
    if len(fgraph.outputs) > 1 or len(fgraph.nodes) > MAX_PRINTED:
        return "Composite{...}"
    return f"Composite{{{_expression(fgraph.outputs[0])}}}"


def check_scalar_graph(what: str, fgraph: FrozenFunctionGraph) -> None:
    """Raise TypeError if the graph contains anything but scalars and scalar Ops; `what` is to be made."""
    found = [
        f"{v} of type {v.type} is no scalar" for v in (*fgraph.inputs, *fgraph.outputs) if not _is_scalar(v)
    ]
    found += [f"{node.op} is no scalar Op" for node in fgraph.nodes if not isinstance(node.op, ScalarOp)]
    if found:
        raise TypeError(
            f"Making a {what}: {found[0]}. The fgraph of {what} must be exclusively composed of scalar "
            "operations"
        )


def _is_scalar(variable: Variable) -> bool:
    return isinstance(variable.type, ScalarType)


def dtype_of(variable: Variable) -> str:
    """Return the dtype of a scalar variable."""
    return cast(ScalarType, variable.type).dtype


def _evaluate(node: Apply, values: dict[Variable, Any]) -> Sequence[Any]:
    """Return the outputs of a node of an inner graph for arrays."""
    op = node.op
    assert isinstance(op, ScalarOp)
    dtypes, _ = op.signature(tuple([dtype_of(variable) for variable in node.inputs]))
    found = [value_of(variable, values) for variable in node.inputs]
    arrays = [value.astype(dtype, copy=False) for value, dtype in zip(found, dtypes, strict=True)]
    results = op.on_arrays(*arrays)
    return results if len(node.outputs) > 1 else [results]


def _expression(variable: Variable) -> str:
    node = variable.owner
    if node is None:
        number = getattr(variable, "id", None)
        return str(variable) if number is None else f"i{number}"
    position = "" if len(node.outputs) == 1 else f"[{variable.index}]"
    return f"{node.op}({', '.join(_expression(item) for item in node.inputs)}){position}"


class ScalarLoop(ScalarOp, HasInnerGraph):
    """A loop of scalar operations. Inputs: n_steps, the initial states, the constants; outputs: the
    final states.

    Each step computes `update` from the states `init` and from `constant`, which does not change. With
    `until`, a bool computed in the same step, the loop ends after the step that makes it true; the
    additional output `done` says if one did (it is true if n_steps < 1). Two are equal if their frozen
    graphs are.

    Raises ValueError unless there is one update per state; TypeError for an update whose dtype is not
    its state's, for an `until` that is not a bool, and for graphs that are not scalar. It has no
    gradient (NullGradientError).
    """

    __props__ = ("fgraph", "n_states", "is_while")
    name = "scalar_loop"
    has_own_dtypes = True

    def __init__(
        self,
        init: Sequence[Variable],
        update: Sequence[Variable],
        constant: Sequence[Variable] | None = None,
        until: Variable | None = None,
    ) -> None:
        if len(init) != len(update):
            raise ValueError(
                f"Making a ScalarLoop: {len(init)} states have {len(update)} updates. An update must be "
                "given for each init variable"
            )
        outputs = [*update, *([] if until is None else [until])]
        self.fgraph = FrozenFunctionGraph.from_io([*init, *(constant or ())], outputs)
        check_scalar_graph("ScalarLoop", self.fgraph)
        self.n_states, self.is_while = len(init), until is not None
        self.nin, self.nout = 1 + len(self.inner_inputs), len(self.inner_outputs)
        for state, new in zip(init, update, strict=True):
            if state.type != new.type:
                raise TypeError(
                    f"Making a ScalarLoop: state {state} of type {state.type} becomes {new} of type "
                    f"{new.type}. Init and update types must be the same: cast it"
                )
        if until is not None and dtype_of(until) != "bool":
            raise TypeError(f"Making a ScalarLoop: until is {until} of type {until.type}, not a bool")

    @property
    def step(self) -> Composite:
        """One step, from states and constants to new states and `until`."""
        return self.fgraph.computed("step", Composite.from_fgraph)

    @property
    def input_dtypes(self) -> tuple[str, ...]:
        """The dtypes that arguments are cast to."""
        return ("int64", *self.step.input_dtypes)

    def _signature(self, dtypes: tuple[str, ...]) -> Signature:
        if dtypes[0] not in INTEGERS:
            raise NoRule(f"takes steps whose number (n_steps) must be of integer type. Got {dtypes[0]}")
        return self.input_dtypes, dtype_of(self.inner_outputs[0])

    def result_dtypes(self, dtypes: tuple[str, ...]) -> tuple[str, ...]:
        """Return the dtype of each output, which does not depend on the arguments' dtypes."""
        self.signature(dtypes)
        return tuple([dtype_of(variable) for variable in self.inner_outputs])

    def make_node(self, *inputs: Any) -> Apply:
        """Return the node on scalar variables. States and constants of other dtypes than the loop's give that
        of a loop which computes the same with theirs (`retyped`).

        Raises TypeError for a number of steps that is no integer, and if an update has another dtype than
        its state then.
        """
        variables = [as_scalar(value) for value in inputs]
        dtypes = tuple([dtype_of(variable) for variable in variables])
        results = self.result_dtypes(dtypes)
        if dtypes[1:] != self.step.input_dtypes:
            return self._of_types([variable.type for variable in variables[1:]]).make_node(*variables)
        return Apply(self, variables, [scalar_type(dtype).make_variable() for dtype in results])

    def _of_types(self, types: Sequence[ScalarType]) -> ScalarLoop:
        inputs, outputs = retyped(self.fgraph, types)
        states, constants = inputs[: self.n_states], inputs[self.n_states :]
        until = outputs[-1] if self.is_while else None
        return ScalarLoop(states, outputs[: self.n_states], constants, until)

    def _impl(self, *arrays: Any) -> Any:
        """Return the outputs for arrays; each element has its own number of steps and its own `until`."""
        steps, *inputs = np.broadcast_arrays(*arrays)
        states, constants = inputs[: self.n_states], inputs[self.n_states :]
        done = steps <= 0
        going = ~done
        for number in range(max(int(np.max(steps, initial=0)), 0)):
            if not np.any(going):
                break
            found = self.step.impl(*states, *constants)
            found = found if self.nout > 1 else (found,)
            states = [np.where(going, new, old) for new, old in zip(found, states, strict=False)]
            if self.is_while:
                done = np.where(going, found[-1], done)
            going = going & ~done if self.is_while else going
            going = going & (number + 1 < steps)
        results = [np.asarray(value)[()] for value in (*states, *([done] if self.is_while else []))]
        return results[0] if self.nout == 1 else tuple(results)

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        values = [np.dtype(to).type(value) for to, value in zip(self.input_dtypes, inputs, strict=True)]
        results = self.impl(*values)
        for storage, output, value in zip(
            output_storage, node.outputs, results if self.nout > 1 else (results,), strict=True
        ):
            storage[0] = np.dtype(dtype_of(output)).type(value)

    def derivative(
        self, inputs: Any, output: Any, cotangent: Any, apply: Any, wanted: Any = None
    ) -> list[Any]:
        raise NullGradientError(f"Taking a gradient through {self}: a ScalarLoop has none", self)

    def __str__(self) -> str:
        return f"ScalarLoop{{{'while, ' if self.is_while else ''}{self.step}}}"

    __repr__ = __str__
