"""`ScanBuilder`: a Scan in the making, from variables outside and what stands for them inside.

Inside, rows and taps are variables that nothing computes; a non-sequence may be the variable itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.graph.replace import rebuild
from engine.graph.traversal import ancestors, io_toposort
from engine.graph.variables import Constant, Variable
from engine.inner.scan_info import OuterOutputs, ScanInfo, ScanLike
from engine.tensor.creation import Alloc
from engine.tensor.elemwise import DimShuffle, Elemwise
from engine.tensor.type import TensorType, is_data


@dataclass(eq=False)
class State:
    """A state: its `initial` rows outside; inside its `taps`, ascending, the `rows` at these, and the `new` row.

    `keep` is how many of its last rows are given; None is all of them.
    """

    initial: Any
    taps: tuple[int, ...]
    rows: list[Any]
    new: Any
    keep: int | None = None


@dataclass
class ScanBuilder:
    """What a Scan is made of. Sequences and non-sequences are pairs: what is outside, and what stands for it inside."""

    n_steps: Any
    sequences: list[tuple[Any, Any]] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    mapped: list[Any] = field(default_factory=list)
    non_sequences: list[tuple[Any, Any]] = field(default_factory=list)
    stop: Any = None

    @classmethod
    def of(cls, op: ScanLike, inputs: Sequence[Any]) -> ScanBuilder:
        """What `op`, applied to `inputs`, is made of; inside, in variables of its own."""
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
        """Return the outputs of the Scan (class `scan`), which leaves out sequences and non-sequences that no step needs.

        Raises TypeError for a state whose taps and new row have not one type, or another shape, as far as is known.
        """
        self._settle_types()
        outputs = self.outputs
        found = ancestors(outputs, [*self.varying, *(inner for _, inner in self.non_sequences)])
        place = {variable: number for number, variable in enumerate(found)}
        sequences = [pair for pair in self.sequences if pair[1] in place]
        constants = [pair for pair in self.non_sequences if pair[1] in place]
        # In the order of use: a loop is the same whether they were given or found.
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
        """What the steps need that does not change and is no non-sequence yet: see `invariants`."""
        known = [inner for _, inner in self.non_sequences]
        found = invariants(self.varying, known, self.outputs)
        return [variable for variable in found if variable not in known]

    @property
    def outputs(self) -> list[Any]:
        """What a step computes."""
        return [*(s.new for s in self.states), *self.mapped, *([] if self.stop is None else [self.stop])]

    @property
    def varying(self) -> list[Any]:
        """What a step is computed from that changes: rows and taps."""
        return [*(row for _, row in self.sequences), *(row for state in self.states for row in state.rows)]

    def substitute(self, memo: Mapping[Variable, Variable]) -> None:
        """Use in the step what `memo` has for variables of it; rows and taps among these are replaced."""
        fresh = iter(rebuild(self.outputs, memo))
        for state in self.states:
            state.rows = [memo.get(row, row) for row in state.rows]
            state.new = next(fresh)
        self.mapped = [next(fresh) for _ in self.mapped]
        self.stop = next(fresh, None)

    def _settle_types(self) -> None:
        """Forget of each state the lengths that are known of its initial rows and not of the rows computed later."""
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
    """Return the type of the rows of a state that holds the rows at its taps and the new ones; refuses if there is none."""
    row, new = state.rows[0].type, state.new.type
    differs = (row.dtype, row.ndim) != (new.dtype, new.ndim)
    if differs or any(None not in (a, b) and a != b for a, b in zip(row.shape, new.shape, strict=True)):
        raise TypeError(
            f"Making a Scan: state {number} ({state.initial}) has rows of type {row} at first, and a step gives "
            f"{new}; all must have one dtype and one shape: cast or broadcast the initial value, or what the step returns"
        )
    if row.is_super(new):
        return row
    return row.clone(shape=[a if a == b else None for a, b in zip(row.shape, new.shape, strict=True)])


def invariants(
    varying: Iterable[Variable], given: Iterable[Variable], outputs: Sequence[Any]
) -> list[Variable]:
    """What a loop needs from outside of it: the variables that `outputs` are computed from, which depend on none of
    `varying` (in the order in which the outputs need them); those `given` are among them where they are used.

    What fills a shape, reorders axes or is known stays in the loop: there it is part of what uses it, and costs nothing.
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


def _is_best_outside(variable: Variable) -> bool:
    node = variable.owner
    if isinstance(variable, Constant):
        return is_data(variable)
    if node is None:
        return True
    if isinstance(node.op, Alloc | DimShuffle) or all(isinstance(v, Constant) for v in node.inputs):
        return False
    return not (isinstance(node.op, Elemwise) and node.op.scalar_op.name == "second")
