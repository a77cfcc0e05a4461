"""Nodes that PyTensor's own code computes, one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pytensor.graph.basic import Constant
from pytensor.link.utils import raise_with_op
from pytensor.tensor.elemwise import Elemwise

Values = list[Any]
"""The values of a call: one place for each variable that crosses steps."""


class Places:
    """The places of variables among the values of a call: first those that are `given`, then any other.

    `numbers` has them by variable, and by the id of a constant.
    """

    def __init__(self, given: Iterable[Any]) -> None:
        self.numbers: dict[Any, int] = {variable: number for number, variable in enumerate(given)}
        self.n_given = len(self.numbers)
        self._blank: Values = []

    def __call__(self, variable: Any) -> int:
        """Return the place of the value of `variable`; a constant is there already."""
        known = isinstance(variable, Constant)
        # By identity: constants of PyTensor's that are equal may differ in the sign of a zero.
        key = id(variable) if known else variable
        if key not in self.numbers:
            self.numbers[key] = len(self.numbers)
            self._blank.append(variable.data if known else None)
        return self.numbers[key]

    def values(self, given: Sequence[Any]) -> Values:
        """Return the values at the start of a call."""
        return [*given, *self._blank]

    def behind(self) -> Iterator[tuple[int, Any]]:
        """Yield the places after those that are given, and what is there at the start of a call."""
        return enumerate(self._blank, self.n_given)


_MOST_OPERANDS = 32
"""The inputs and outputs of a ufunc of numpy's, by which PyTensor computes an Elemwise in Python."""


def _language(node: Any) -> str | None:
    """Return "py" if Python can compute the node, None if PyTensor has to compile it from C."""
    is_large = isinstance(node.op, Elemwise) and len(node.inputs) + len(node.outputs) > _MOST_OPERANDS
    return None if is_large else "py"


class NodeStage:
    """Nodes that PyTensor computes, in their order, each with the reason."""

    def __init__(self, nodes: list[Any] | None = None, reasons: list[str] | None = None) -> None:
        self.nodes = [] if nodes is None else nodes
        self.reasons = [] if reasons is None else reasons


class NodesStep:
    """Runs nodes by PyTensor's own code, in storage of its own. An error names its node, as PyTensor does."""

    def __init__(self, fgraph: Any, nodes: Iterable[Any], places: Places) -> None:
        self._fgraph = fgraph
        self._calls = [_NodeCall(node, places) for node in nodes]

    def __call__(self, values: Values) -> None:
        for call in self._calls:
            try:
                call(values)
            except Exception:
                raise_with_op(self._fgraph, call.node, call.thunk)


class _NodeCall:
    """One node, its thunk and where its values are."""

    def __init__(self, node: Any, places: Places) -> None:
        # A hit imports this module, and most have no such node.
        from engine.pytensor.draws import drawing_as_numba
        from engine.pytensor.solvers import solving_by_engine

        self.node = node
        run = solving_by_engine(drawing_as_numba(node))
        variables = dict.fromkeys([*run.inputs, *run.outputs])
        storage: dict[Any, list[Any]] = {variable: [None] for variable in variables}
        computed = {variable: [True] for variable in variables}
        self.thunk = run.op.make_thunk(run, storage, computed, [], impl=_language(node))
        self.thunk.inputs = [storage[variable] for variable in run.inputs]
        self.thunk.outputs = [storage[variable] for variable in run.outputs]
        self._reads = [(storage[v], places(v)) for v in dict.fromkeys(node.inputs)]
        self._writes = list(zip(self.thunk.outputs, map(places, node.outputs), strict=True))

    def __call__(self, values: Values) -> None:
        for cell, place in self._reads:
            cell[0] = values[place]
        self.thunk()
        for cell, place in self._writes:
            values[place] = cell[0]
        # A perform may write into what its last call left, which the caller may hold; and memory is freed.
        for cell, _ in (*self._reads, *self._writes):
            cell[0] = None
