"""`ScalarLoop`: an operation on numbers that is done again and again, for special functions given by series."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.errors import NullGradientError
from engine.graph.apply import Apply
from engine.graph.fgraph import FrozenFunctionGraph
from engine.graph.variables import Variable
from engine.inner.base import HasInnerGraph
from engine.inner.composite import Composite, check_scalar_graph, dtype_of
from engine.scalar import ScalarOp, scalar_type
from engine.scalar.op import as_scalar
from engine.scalar.promotion import INTEGERS, NoRule, Signature


class ScalarLoop(ScalarOp, HasInnerGraph):
    """Applied to (n_steps, *init, *constant) it gives the states after `n_steps` steps; none is done if that is below 1.

    A step computes `update` from the states `init` and from what does not change, `constant`. With `until`, a bool
    computed with them, the step that makes it true is the last, and one more output, `done`, says whether one did (true
    where no step was asked for). Equal if the frozen graphs are.

    Refuses (ValueError) another number of updates than states; (TypeError) an update of another dtype than its state, an
    `until` that is no bool, and what is no graph of scalars. It has no gradient (NullGradientError).
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
                f"Making a ScalarLoop: {len(init)} states have {len(update)} updates; give one for each"
            )
        outputs = [*update, *([] if until is None else [until])]
        self.fgraph = FrozenFunctionGraph.from_io([*init, *(constant or ())], outputs)
        check_scalar_graph("a ScalarLoop", self.fgraph)
        self.n_states, self.is_while = len(init), until is not None
        self.nin, self.nout = 1 + len(self.inner_inputs), len(self.inner_outputs)
        for state, new in zip(init, update, strict=True):
            if state.type != new.type:
                raise TypeError(
                    f"Making a ScalarLoop: state {state} of type {state.type} becomes {new} of type {new.type}; cast it"
                )
        if until is not None and dtype_of(until) != "bool":
            raise TypeError(f"Making a ScalarLoop: until is {until} of type {until.type}, not a bool")

    @property
    def step(self) -> Composite:
        """One step: from the states and what does not change to the new states, and `until`."""
        return self.fgraph.computed("step", Composite.from_fgraph)

    @property
    def input_dtypes(self) -> tuple[str, ...]:
        """The dtypes that the arguments are cast to."""
        return ("int64", *self.step.input_dtypes)

    def _signature(self, dtypes: tuple[str, ...]) -> Signature:
        if dtypes[0] not in INTEGERS:
            raise NoRule(f"takes an integer number of steps, not {dtypes[0]}")
        return self.input_dtypes, dtype_of(self.inner_outputs[0])

    def result_dtypes(self, dtypes: tuple[str, ...]) -> tuple[str, ...]:
        """The dtype of each output, whatever those of the arguments, which are cast."""
        self.signature(dtypes)
        return tuple([dtype_of(variable) for variable in self.inner_outputs])

    def make_node(self, *inputs: Any) -> Apply:
        variables = [as_scalar(value) for value in inputs]
        results = self.result_dtypes(tuple([dtype_of(variable) for variable in variables]))
        return Apply(self, variables, [scalar_type(dtype).make_variable() for dtype in results])

    def _impl(self, *arrays: Any) -> Any:
        """The outputs for arrays: each element is done when its own steps are, or its `until` is true."""
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
