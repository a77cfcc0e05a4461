"""`Scan`: a loop over a graph, whose step reads rows of sequences and its own earlier results.

`engine.scan` makes it from a Python function; `scan_info` describes its inputs and outputs. A name
and a truncated gradient distinguish Scans, but do not change what is computed. `for_compilation`
returns the Scan without them, and `key_props` leaves them out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.errors import MissingInputError
from engine.graph.apply import Apply
from engine.graph.connections import io_connection_pattern as connections
from engine.graph.fgraph import FrozenFunctionGraph
from engine.graph.op import Op
from engine.graph.traversal import graph_inputs
from engine.graph.variables import Constant, Variable
from engine.inner.base import HasInnerGraph, computed_outputs
from engine.inner.scan_info import InnerOutputs, OuterInputs, ScanInfo
from engine.inner.scan_parts import ScanParts
from engine.scalar.promotion import INTEGERS
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.elemwise import cast
from engine.tensor.known_lengths import known_length
from engine.tensor.type import TensorType, tensor_type


class Scan(Op, HasInnerGraph, ScanParts):
    """Computes `outputs` from `inputs` in each step; `info` says which is which (see `scan_info`).

    The number of steps is an input. `truncate_gradient` limits the number of steps that gradients go
    back (-1: no limit). Two are equal if their graphs and these properties are.

    Raises ValueError if the number of inputs or outputs is not that of `info`; TypeError for a state
    whose rows differ in type, for a condition that is not a 0-d bool, and for variables that are not
    tensors; MissingInputError for a graph that uses more than `inputs`.
    """

    __props__ = ("fgraph", "info", "truncate_gradient", "name")

    def __init__(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        info: ScanInfo,
        truncate_gradient: int = -1,
        name: str | None = None,
    ) -> None:
        _check_roots(inputs, outputs)
        self._hold(FrozenFunctionGraph.from_io(inputs, outputs), info, truncate_gradient, name)

    @classmethod
    def from_fgraph(
        cls, fgraph: FrozenFunctionGraph, info: ScanInfo, truncate_gradient: int = -1, name: str | None = None
    ) -> Scan:
        """Return the Scan of a frozen graph."""
        new = cls.__new__(cls)
        new._hold(fgraph, info, truncate_gradient, name)
        return new

    def _hold(
        self, fgraph: FrozenFunctionGraph, info: ScanInfo, truncate_gradient: int, name: str | None
    ) -> None:
        if truncate_gradient != -1 and truncate_gradient < 1:
            raise ValueError(
                f"Making a Scan: truncate_gradient is {truncate_gradient}; it must be a number of steps, "
                "or -1 for all"
            )
        _check_graph(fgraph, info)
        self.fgraph = fgraph
        self.info = info
        self.truncate_gradient = int(truncate_gradient)
        self.name = name

    def with_inner_graph(self, fgraph: FrozenFunctionGraph) -> Scan:
        """Return a copy of this Scan that holds `fgraph` instead. Raises as the constructor does."""
        return type(self).from_fgraph(fgraph, self.info, self.truncate_gradient, self.name)

    def for_compilation(self) -> Scan:
        """Return the Scan without its name and without what only gradients use."""
        if self.name is None and self.truncate_gradient == -1:
            return self
        return type(self).from_fgraph(self.fgraph, self.info)

    @property
    def destroyable(self) -> tuple[int, ...]:
        """The positions of the taps of states of which only the last row is kept."""
        return self.info.destroyable

    def key_props(self) -> dict[str, Any]:
        """Return the graph and `info`."""
        return {"fgraph": self.fgraph, "info": self.info}

    def make_node(self, *inputs: Any) -> Apply:
        """Return the node on `inputs`.

        Raises ValueError for a wrong number of inputs, a number of steps known to be negative, and static
        lengths that do not fit; TypeError for wrong types.
        """
        outer = self.info.outer_inputs([as_tensor_variable(value) for value in inputs])
        inner = self.info.inner_inputs(self.inner_inputs)
        n_steps = self._as_steps(outer.n_steps)
        steps = known_length(n_steps)
        if steps is not None and steps < 0:
            raise ValueError(f"Applying {self}: n_steps is {steps}; it must be 0 or more")
        for number, (sequence, row) in enumerate(zip(outer.sequences, inner.rows, strict=True)):
            self._check_rows(f"sequence {number}", sequence.type, row.type)
            known = sequence.type.shape[0]
            if steps is not None and known is not None and known < steps:
                raise ValueError(
                    f"Applying {self}: sequence {number} has {known} rows, {steps} steps are to be done"
                )
        for number, (initial, taps) in enumerate(zip(outer.initials, inner.taps, strict=True)):
            self._check_rows(f"state {number}", initial.type, taps[0].type)
            if initial.type.shape[0] not in (None, self.info.n_initial(number)):
                raise ValueError(
                    f"Applying {self}: state {number} has taps {self.info.taps[number]}, so "
                    f"{self.info.n_initial(number)} initial rows are needed, {initial.type.shape[0]} were "
                    "given"
                )
        for number, (given, due) in enumerate(zip(outer.non_sequences, inner.non_sequences, strict=True)):
            if not due.type.is_super(given.type):
                raise TypeError(
                    f"Applying {self}: non-sequence {number} is {given} of type {given.type}, {due.type} "
                    "is needed"
                )
        variables = [n_steps, *outer.sequences, *outer.initials, *outer.non_sequences]
        return Apply(self, variables, [type.make_variable() for type in self._output_types(steps)])

    def _as_steps(self, n_steps: Any) -> Any:
        if n_steps.type.ndim != 0 or n_steps.type.dtype not in INTEGERS:
            raise TypeError(
                f"Applying {self}: n_steps is {n_steps} of type {n_steps.type}; it must be an integer of "
                "0 dimensions"
            )
        return cast(n_steps, "int64")

    def _check_rows(self, what: str, given: TensorType, row: TensorType) -> None:
        if given.ndim == 0 or not row.is_super(given.clone(shape=given.shape[1:])):
            due = row.clone(shape=(None, *row.shape))
            raise TypeError(f"Applying {self}: {what} has type {given}, {due} is needed; cast or reshape it")

    def _output_types(self, steps: int | None) -> list[TensorType]:
        info = self.info
        done = None if info.is_while else steps
        types = []
        for number, taps in enumerate(info.inner_inputs(self.inner_inputs).taps):
            whole = None if done is None else done + info.n_initial(number)
            types.append(
                _trace_type(taps[0].type, whole if info.keeps[number] is None else info.keeps[number])
            )
        mapped = info.inner_outputs(self.inner_outputs).mapped
        return [*types, *(_trace_type(output.type, done) for output in mapped)]

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        for cell, result in zip(output_storage, run_scan(self, inputs), strict=True):
            cell[0] = result

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Return what depends on what over any number of steps; nothing depends on the number itself."""
        found = self.fgraph.computed("scan_connections", lambda _: {})
        if self.info not in found:
            found[self.info] = _connections(self)
        return [list(row) for row in found[self.info]]

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        return self.pullback_wanted(inputs, outputs, cotangents, None)

    def pullback_wanted(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        cotangents: Sequence[Any],
        wanted: Sequence[bool] | None,
    ) -> list[Any]:
        """Return the outputs of a Scan that runs the steps in reverse: see `scan_gradient`."""
        from engine.inner.scan_gradient import pull_back_scan  # compiling a Scan takes no derivatives

        return pull_back_scan(self, inputs, outputs, cotangents, wanted)

    def pushforward(self, inputs: Sequence[Any], outputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        """Return the outputs of a Scan over the same steps: see `scan_tangents`."""
        from engine.inner.scan_tangents import push_forward_scan

        return push_forward_scan(self, inputs, outputs, tangents)

    def __str__(self) -> str:
        return f"Scan{{{self.name}}}" if self.name else "Scan"

    __repr__ = __str__


def _trace_type(row: TensorType, length: int | None) -> TensorType:
    return tensor_type(row.dtype, (length, *row.shape))


def _connections(op: Scan) -> list[list[bool]]:
    """Return a row per outer input that says which outer outputs depend on the input's values."""
    info = op.info
    inner = info.inner_inputs(connections(op.inner_inputs, op.inner_outputs))
    rows = [row[: info.n_states + info.n_mapped] for row in inner.rows]
    constants = [row[: info.n_states + info.n_mapped] for row in inner.non_sequences]
    states = []
    for number, taps in enumerate(inner.taps):
        of_taps = [any(column) for column in zip(*taps, strict=True)][: info.n_states + info.n_mapped]
        of_taps[number] = True  # the initial rows are part of the output
        states.append(of_taps)
    for _ in range(info.n_states):  # a path visits each state at most once
        states = [_through(row, states) for row in states]
    found = [[False] * (info.n_states + info.n_mapped), *(_through(row, states) for row in rows), *states]
    return [*found, *(_through(row, states) for row in constants)]


def _through(row: Sequence[bool], states: Sequence[Sequence[bool]]) -> list[bool]:
    """Return `row`, extended by what depends on the states in it."""
    reached = [states[number] for number in range(len(states)) if row[number]]
    return [any(column) for column in zip(row, *reached, strict=True)]


def _check_roots(inputs: Sequence[Variable], outputs: Sequence[Variable]) -> None:
    for variable in graph_inputs(outputs, inputs):
        if not isinstance(variable, Constant) and variable not in inputs:
            raise MissingInputError(
                f"Making a Scan: its graph uses {variable} of type {variable.type}, which is not among its "
                "inputs; make it a non-sequence",
                variable,
            )


def _check_graph(fgraph: FrozenFunctionGraph, info: ScanInfo) -> None:
    for kind, variables, due in (
        ("inputs", fgraph.inputs, info.n_inner_inputs),
        ("outputs", fgraph.outputs, info.n_inner_outputs),
    ):
        if len(variables) != due:
            raise ValueError(
                f"Making a Scan: its graph has {len(variables)} {kind}, {due} are needed for {info}"
            )
    for variable in (*fgraph.inputs, *fgraph.outputs):
        if not isinstance(variable.type, TensorType):
            raise TypeError(f"Making a Scan: {variable} of type {variable.type} is no tensor")
    inputs, outputs = info.inner_inputs(fgraph.inputs), info.inner_outputs(fgraph.outputs)
    for number, (taps, new) in enumerate(zip(inputs.taps, outputs.states, strict=True)):
        if any(tap.type != taps[0].type for tap in taps) or not taps[0].type.is_super(new.type):
            found = ", ".join(str(tap.type) for tap in taps)
            raise TypeError(
                f"Making a Scan: state {number} is read as {found} and computed as {new.type}; give both "
                "one type"
            )
    if outputs.stop is not None and (outputs.stop.type.ndim, outputs.stop.type.dtype) != (0, "bool"):
        raise TypeError(
            f"Making a Scan: the condition has type {outputs.stop.type}; it must be a bool of 0 dimensions"
        )


def run_scan(op: Scan, inputs: Sequence[Any]) -> list[Any]:
    """Return the outer outputs of `op` for the arrays `inputs`, computed step by step by the Ops' references.

    Raises ValueError for a negative number of steps, for a sequence that is too short, for a wrong
    number of initial rows, and for rows whose shape changes between steps.
    """
    info = op.info
    outer = info.outer_inputs(inputs)
    steps = checked_steps(op, outer)
    # Copies: a step may overwrite the previous row.
    traces = [list(initial.copy()) for initial in outer.initials]
    mapped: list[list[Any]] = [[] for _ in range(info.n_mapped)]
    for step in range(steps):
        done = _one_step(op, outer, traces, step)
        for number, (trace, row) in enumerate(
            zip([*traces, *mapped], [*done.states, *done.mapped], strict=True)
        ):
            _append(op, trace, row, number, step)
        if done.stop is not None and done.stop:
            break
    kept = [trace if keep is None else trace[-keep:] for trace, keep in zip(traces, info.keeps, strict=True)]
    if mapped and not mapped[0]:
        return [*map(np.stack, kept), *_no_rows(op, outer)]
    return [np.stack(rows) for rows in (*kept, *mapped)]


def checked_steps(op: Scan, outer: OuterInputs[Any]) -> int:
    """Return the number of steps. Raises ValueError if the inputs do not allow it."""
    steps = int(outer.n_steps)
    if steps < 0:
        raise ValueError(f"Running {op}: n_steps is {steps}; it must be 0 or more")
    for number, sequence in enumerate(outer.sequences):
        if len(sequence) < steps:
            raise ValueError(
                f"Running {op}: sequence {number} has {len(sequence)} rows, {steps} steps are to be done; "
                "give a longer sequence, or fewer steps"
            )
    for number, initial in enumerate(outer.initials):
        if len(initial) != op.info.n_initial(number):
            raise ValueError(
                f"Running {op}: state {number} has taps {op.info.taps[number]}, so "
                f"{op.info.n_initial(number)} initial rows are needed; {len(initial)} were given"
            )
    return steps


def _one_step(op: Scan, outer: OuterInputs[Any], traces: Sequence[list[Any]], step: int) -> InnerOutputs[Any]:
    """Return the results of one step; each trace ends with the previous row."""
    rows = [sequence[step, ...] for sequence in outer.sequences]
    taps = [trace[tap] for trace, taps in zip(traces, op.info.taps, strict=True) for tap in taps]
    arguments = [*rows, *map(np.asarray, taps), *outer.non_sequences]
    return op.info.inner_outputs(computed_outputs(op.fgraph, arguments))


def _append(op: Scan, trace: list[Any], row: Any, number: int, step: int) -> None:
    if trace and np.shape(trace[-1]) != row.shape:
        kind = "state" if number < op.info.n_states else "mapped output"
        place = number if number < op.info.n_states else number - op.info.n_states
        raise ValueError(
            f"Running {op}: step {step} gives {kind} {place} a row of shape {row.shape}, the rows before "
            f"it have shape {np.shape(trace[-1])}; all rows must have one shape"
        )
    trace.append(np.array(row, order="C"))


def _no_rows(op: Scan, outer: OuterInputs[Any]) -> list[Any]:
    """Return empty mapped outputs for a loop without steps.

    The shape of their rows is found by a step on zeros, or, if that fails, taken from the types.
    """
    rows = [np.zeros(sequence.shape[1:], sequence.dtype) for sequence in outer.sequences]
    taps = [
        initial[tap, ...].copy()
        for initial, taps in zip(outer.initials, op.info.taps, strict=True)
        for tap in taps
    ]
    outputs = op.info.inner_outputs(op.inner_outputs).mapped
    shapes = [tuple([length or 0 for length in output.type.shape]) for output in outputs]
    try:
        with np.errstate(all="ignore"):
            done = computed_outputs(op.fgraph, [*rows, *taps, *outer.non_sequences])
        shapes = [row.shape for row in op.info.inner_outputs(done).mapped]
    except (
        ValueError,
        IndexError,
    ):  # a step may fail on zeros, for example as an index or as a matrix to invert
        pass
    return [np.zeros((0, *s), output.type.dtype) for s, output in zip(shapes, outputs, strict=True)]
