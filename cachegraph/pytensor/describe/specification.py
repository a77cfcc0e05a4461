"""The specification of a function, as PyTensor's maker is given it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pytensor.compile.maker import FunctionMaker
from pytensor.graph.basic import Constant

from cachegraph.named_tuples import NamedTuple


class Specification(NamedTuple):
    """The inputs (`In`) and outputs (`Out`) of one function, and how PyTensor hands back its results."""

    inputs: Sequence[Any]
    outputs: Sequence[Any]
    unpack_single: bool
    return_none: bool

    @classmethod
    def of(cls, inputs: Any, outputs: Any) -> Specification:
        """Return what PyTensor's maker makes of these arguments; raises TypeError for what is no variable."""
        unpack_single = outputs is not None and not isinstance(outputs, list | tuple)
        listed = [] if outputs is None else [outputs] if unpack_single else outputs
        if not isinstance(inputs, list | tuple):
            inputs = [inputs]
        ins = [FunctionMaker.wrap_in(item) for item in inputs]
        outs = [FunctionMaker.wrap_out(item) for item in listed]
        return cls(ins, outs, unpack_single, outputs is None)

    @property
    def results(self) -> list[Any]:
        """The computed variables: the outputs, then the new values of the updated inputs."""
        updates = [spec.update for spec in self.inputs if spec.update is not None]
        return [*(spec.variable for spec in self.outputs), *updates]

    @property
    def update_mapping(self) -> dict[int, int]:
        """The position of each update among the results -> that of the input it replaces."""
        updated = [position for position, spec in enumerate(self.inputs) if spec.update is not None]
        return {len(self.outputs) + number: position for number, position in enumerate(updated)}

    def graph_inputs(self) -> list[Any]:
        """Return the inputs of the function's graph: as in PyTensor, clones if one of them is computed."""
        variables = [spec.variable for spec in self.inputs]
        if any(variable.owner is not None for variable in variables):
            return [variable.clone() for variable in variables]
        return variables

    def names(self) -> dict[int, str]:
        """Return the names of the variables by number; the structure of the graph decides the numbers."""
        return {number: v.name for number, v in enumerate(self._variables()) if v.name is not None}

    def _variables(self) -> Iterator[Any]:
        """Yield all variables but the constants: equal constants may be one object or several."""
        seen: set[Any] = set()
        waiting = [*reversed(self.results), *(spec.variable for spec in reversed(self.inputs))]
        while waiting:
            variable = waiting.pop()
            if variable in seen or isinstance(variable, Constant):
                continue
            seen.add(variable)
            yield variable
            if variable.owner is not None:
                waiting += reversed(variable.owner.inputs)
