"""`Loop`: a Scan in the making, from variables outside and what stands for them inside.

Inside, rows and taps are variables that nothing computes; a non-sequence may be the variable itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from engine.graph.replace import rebuild
from engine.graph.traversal import ancestors, io_toposort
from engine.graph.variables import Constant, Variable
from engine.inner.scan_info import OuterOutputs, ScanInfo
from engine.tensor import Alloc, DimShuffle, Elemwise, TensorType, is_data

if TYPE_CHECKING:
    from engine.inner.scan import Scan


@dataclass
class State:
    """A state: its `initial` rows outside; inside its `taps`, ascending, the `rows` at these, and the `new` row."""

    initial: Any
    taps: tuple[int, ...]
    rows: list[Any]
    new: Any


@dataclass
class Loop:
    """What a Scan is made of. Sequences and non-sequences are pairs: what is outside, and what stands for it inside."""

    n_steps: Any
    sequences: list[tuple[Any, Any]] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    mapped: list[Any] = field(default_factory=list)
    non_sequences: list[tuple[Any, Any]] = field(default_factory=list)
    stop: Any = None

    def apply(
        self, scan: type[Scan], truncate_gradient: int = -1, name: str | None = None
    ) -> OuterOutputs[Any]:
        """The outputs of the Scan (class `scan`), which leaves out sequences and non-sequences that no step needs.

        Refuses (TypeError) a state whose taps and new row have not one type, or another shape, as far as is known.
        """
        self._settle_types()
        outputs = self._outputs()
        used = set(ancestors(outputs, self._varying()))
        sequences = [pair for pair in self.sequences if pair[1] in used]
        constants = [pair for pair in self.non_sequences if pair[1] in used]
        info = ScanInfo(
            n_seqs=len(sequences),
            taps=tuple([state.taps for state in self.states]),
            keeps=(None,) * len(self.states),
            n_mapped=len(self.mapped),
            n_non_seqs=len(constants),
            is_while=self.stop is not None,
        )
        taps = [row for state in self.states for row in state.rows]
        inner = [*(row for _, row in sequences), *taps, *(inside for _, inside in constants)]
        op = scan(inner, outputs, info, truncate_gradient, name)
        outer = [*(v for v, _ in sequences), *(s.initial for s in self.states), *(v for v, _ in constants)]
        return info.outer_outputs(op(self.n_steps, *outer, return_list=True))

    def add_non_sequences(self) -> None:
        """Make what the steps need from outside non-sequences: see `invariants`."""
        inside = self._varying()
        found = invariants(inside, [inner for _, inner in self.non_sequences], self._outputs())
        known = {inner for _, inner in self.non_sequences}
        self.non_sequences += [(variable, variable) for variable in found if variable not in known]

    def _outputs(self) -> list[Any]:
        return [*(s.new for s in self.states), *self.mapped, *([] if self.stop is None else [self.stop])]

    def _varying(self) -> list[Any]:
        return [*(row for _, row in self.sequences), *(row for state in self.states for row in state.rows)]

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
            fresh = iter(rebuild(self._outputs(), memo))
            for state in self.states:
                state.rows = [memo.get(row, row) for row in state.rows]
                state.new = next(fresh)
            self.mapped = [next(fresh) for _ in self.mapped]
            self.stop = next(fresh, None)


def _general(number: int, state: State) -> TensorType:
    """The type of the rows of a state that holds the rows at its taps and the new ones; refuses if there is none."""
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
