"""`ScanBuilder`: the parts of a Scan as pairs of an outer variable and the inner one that stands for it.

Rows and taps are inner variables without an owner; a non-sequence may be its own inner variable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from engine.graph.apply import Apply
from engine.graph.replace import rebuild
from engine.graph.represented import RepresentedType
from engine.graph.traversal import ancestors, io_toposort
from engine.graph.variables import Constant, Variable
from engine.inner.scan_info import OuterOutputs, ScanInfo, ScanLike
from engine.scalar.promotion import INTEGERS
from engine.tensor.creation import Alloc
from engine.tensor.elemwise import DimShuffle, Elemwise
from engine.tensor.known_lengths import known_length
from engine.tensor.matching import tensor_type_of
from engine.tensor.type import TensorType, is_data


class State:
    """A state: its outer `initial` rows, and inside its `taps` (ascending), the `rows` there, and the
    `new` row.

    `keep` is the number of last rows that the loop returns; None means all.
    """

    def __init__(
        self, initial: Any, taps: tuple[int, ...], rows: list[Any], new: Any, keep: int | None = None
    ) -> None:
        self.initial = initial
        self.taps = taps
        self.rows = rows
        self.new = new
        self.keep = keep


class ScanBuilder:
    """The parts of a Scan. Sequences and non-sequences are pairs (outer variable, inner variable)."""

    def __init__(
        self,
        n_steps: Any,
        sequences: list[tuple[Any, Any]] | None = None,
        states: list[State] | None = None,
        mapped: list[Any] | None = None,
        non_sequences: list[tuple[Any, Any]] | None = None,
        stop: Any = None,
    ) -> None:
        self.n_steps = n_steps
        self.sequences = [] if sequences is None else sequences
        self.states = [] if states is None else states
        self.mapped = [] if mapped is None else mapped
        self.non_sequences = [] if non_sequences is None else non_sequences
        self.stop = stop

    @classmethod
    def of(cls, op: ScanLike, inputs: Sequence[Any]) -> ScanBuilder:
        """Return the parts of `op` applied to `inputs`, with new inner variables."""
        info, outer = op.info, op.info.outer_inputs(inputs)
        fresh = [nominal.type.make_variable() for nominal in op.inner_inputs]
        inner, results = info.inner_inputs(fresh), info.inner_outputs(op.fgraph.bind(fresh))
        states = [
            State(initial, taps, rows, new, keep)
            for initial, taps, rows, new, keep in zip(
                outer.initials, info.taps, inner.taps, results.states, info.keeps, strict=True
            )
        ]
        return cls(
            outer.n_steps,
            list(zip(outer.sequences, inner.rows, strict=True)),
            states,
            results.mapped,
            list(zip(outer.non_sequences, inner.non_sequences, strict=True)),
            results.stop,
        )

    def apply(
        self, scan: Callable[..., Any], truncate_gradient: int = -1, name: str | None = None
    ) -> OuterOutputs[Any]:
        """Return the outputs of the Scan (class `scan`), without the sequences and non-sequences that no
        step uses.

        Raises TypeError for a state whose initial and computed rows differ in dtype or known shape.
        """
        self._settle_types()
        outputs = self.outputs
        found = ancestors(outputs, [*self.varying, *(inner for _, inner in self.non_sequences)])
        place = {variable: number for number, variable in enumerate(found)}
        sequences = [pair for pair in self.sequences if pair[1] in place]
        constants = [pair for pair in self.non_sequences if pair[1] in place]
        # Sorted by use: equal loops become equal Scans, in whatever order the variables were given.
        constants.sort(key=lambda pair: place[pair[1]])
        info = ScanInfo(
            n_seqs=len(sequences),
            taps=tuple([state.taps for state in self.states]),
            keeps=tuple([state.keep for state in self.states]),
            n_mapped=len(self.mapped),
            n_non_seqs=len(constants),
            is_while=self.stop is not None,
        )
        taps = [row for state in self.states for row in state.rows]
        inner = [*(row for _, row in sequences), *taps, *(inside for _, inside in constants)]
        op = scan(inner, outputs, info, truncate_gradient, name)
        outer = [*(v for v, _ in sequences), *(s.initial for s in self.states), *(v for v, _ in constants)]
        return info.outer_outputs(op(self.n_steps, *outer, return_list=True))

    def invariants(self) -> list[Any]:
        """Return the variables outside the loop that the steps use and that are no non-sequences yet."""
        known = [inner for _, inner in self.non_sequences]
        found = invariants(self.varying, known, self.outputs)
        return [variable for variable in found if variable not in known]

    @property
    def outputs(self) -> list[Any]:
        """The variables that a step computes."""
        return [*(s.new for s in self.states), *self.mapped, *([] if self.stop is None else [self.stop])]

    @property
    def varying(self) -> list[Any]:
        """The inputs of a step that change between steps: rows and taps."""
        return [*(row for _, row in self.sequences), *(row for state in self.states for row in state.rows)]

    def substitute(self, memo: Mapping[Variable, Variable]) -> None:
        """Replace variables in the step, rows and taps included, as `memo` says."""
        fresh = iter(rebuild(self.outputs, memo, _on_general))
        for state in self.states:
            state.rows = [memo.get(row, row) for row in state.rows]
            state.new = next(fresh)
        self.mapped = [next(fresh) for _ in self.mapped]
        self.stop = next(fresh, None)

    def generalize(self) -> bool:
        """Drop the static lengths of inner variables that their outer ones do not have; return True if there
        were any.
        """
        outer = [
            *((row, given.type.shape[1:]) for given, row in self.sequences),
            *((row, state.initial.type.shape[1:]) for state in self.states for row in state.rows),
            *((inner, given.type.shape) for given, inner in self.non_sequences),
        ]
        memo: dict[Variable, Variable] = {}
        for variable, shape in outer:
            type = _more_general(variable.type, shape)
            if type != variable.type:
                memo[variable] = type.make_variable(variable.name)
        if not memo:
            return False
        self.substitute(memo)
        self.sequences = [(given, memo.get(row, row)) for given, row in self.sequences]
        self.non_sequences = [(given, memo.get(inner, inner)) for given, inner in self.non_sequences]
        return True

    def _settle_types(self) -> None:
        """Generalize the types of states: drop static lengths that the computed rows do not have."""
        while True:
            general = [_general(number, state) for number, state in enumerate(self.states)]
            memo: dict[Variable, Variable] = {}
            for state, type in zip(self.states, general, strict=True):
                if type != state.rows[0].type:
                    memo.update((row, type.make_variable(row.name)) for row in state.rows)
            if not memo:
                return
            self.substitute(memo)


def _general(number: int, state: State) -> TensorType:
    """Return the type of the initial and computed rows of a state. Raises TypeError if they conflict."""
    row, new = state.rows[0].type, state.new.type
    differs = (row.dtype, row.ndim) != (new.dtype, new.ndim)
    if differs or any(None not in (a, b) and a != b for a, b in zip(row.shape, new.shape, strict=True)):
        raise TypeError(
            f"Making a Scan: state {number} ({state.initial}) has rows of type {row} at first, and a step "
            f"gives {new}; all must have one dtype and one shape: cast or broadcast the initial value, or "
            "what the step returns"
        )
    if row.is_super(new):
        return row
    return _more_general(row, new.shape)


def _on_general(node: Apply, inputs: Sequence[Variable]) -> Sequence[Variable]:
    """Return the outputs of `node` on `inputs`, whose types may be more general: those in a loop are, too."""
    op: Any = node.op
    if isinstance(getattr(op, "info", None), ScanInfo):
        loop = ScanBuilder.of(op, inputs)
        if loop.generalize():
            found = loop.apply(type(op), op.truncate_gradient, op.name)
            return [*found.buffers, *found.mapped]
    return node.clone_with_new_inputs(inputs, strict=False).outputs


def _more_general(type: TensorType, given: Sequence[int | None]) -> TensorType:
    """Return `type` without the static lengths that are not `given`."""
    return type.clone(shape=[None if b is None else a for a, b in zip(type.shape, given, strict=True)])


def invariants(
    varying: Iterable[Variable], given: Iterable[Variable], outputs: Sequence[Any]
) -> list[Variable]:
    """Return the variables outside a loop that its `outputs` use: those that depend on none of `varying`.

    They come in the order of use; those `given` are included if they are used. Constants, fills and
    reordered axes stay in the loop: there they fuse with their users and cost nothing.
    """
    varying, given = set(varying), set(given)
    dependent = set(varying)
    for node in io_toposort(varying | given, outputs):
        if any(variable in dependent for variable in node.inputs):
            dependent.update(node.outputs)
    found: list[Variable] = []
    seen: set[Variable] = set()
    waiting = list(outputs)[::-1]
    while waiting:
        variable = waiting.pop()
        if variable in seen or variable in varying:
            continue
        seen.add(variable)
        if variable in given or (variable not in dependent and _is_best_outside(variable)):
            found.append(variable)
        elif variable.owner is not None:
            waiting.extend(variable.owner.inputs[::-1])
    return found


def _is_known(variable: Variable) -> bool:
    type = tensor_type_of(variable)
    return type.ndim == 0 and type.dtype in INTEGERS and known_length(variable) is not None


def _is_best_outside(variable: Variable) -> bool:
    """Return True if computing `variable` before the loop saves time."""
    node = variable.owner
    if isinstance(variable, Constant):
        return is_data(variable)
    if node is None:
        return True
    if isinstance(variable.type, RepresentedType):  # a Scan has tensors alone as inputs
        return False
    if _is_known(variable):
        return False
    if isinstance(node.op, Alloc | DimShuffle) or all(isinstance(v, Constant) for v in node.inputs):
        return False
    return not (isinstance(node.op, Elemwise) and node.op.scalar_op.name == "second")
