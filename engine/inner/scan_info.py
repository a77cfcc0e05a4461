"""`ScanInfo`: the order and meaning of the inputs and outputs of a Scan.

A *state* is computed from its own rows at earlier steps. Its *taps* say which, relative to the
current step: -1 is the previous row. As many initial rows are given as the smallest tap reaches
back. A *mapped* output is computed at each step and not used by later ones.

    outer inputs     n_steps, sequences, initial rows of each state, non-sequences
    inner inputs     a row of each sequence, a row for each tap of each state, non-sequences
    inner outputs    the new row of each state, a row of each mapped output, the condition to stop
    outer outputs    the initial and computed rows of each state, or the last of these; mapped outputs
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Generic, Protocol, TypeVar

from cachegraph.named_tuples import NamedTuple
from engine.graph.fgraph import FrozenFunctionGraph
from engine.graph.frozen_nodes import NominalVariable

T = TypeVar("T")


class OuterInputs(NamedTuple, Generic[T]):
    """The inputs of a Scan; `initials` has one item per state."""

    n_steps: T
    sequences: list[T]
    initials: list[T]
    non_sequences: list[T]


class InnerInputs(NamedTuple, Generic[T]):
    """The inputs of one step; `taps` has, for each state, a row per tap."""

    rows: list[T]
    taps: list[list[T]]
    non_sequences: list[T]


class InnerOutputs(NamedTuple, Generic[T]):
    """The results of one step; `stop` is None unless the loop may end early."""

    states: list[T]
    mapped: list[T]
    stop: T | None


class OuterOutputs(NamedTuple, Generic[T]):
    """The outputs of a Scan."""

    buffers: list[T]
    mapped: list[T]


@dataclass(frozen=True, slots=True)
class ScanInfo:
    """The interface of a Scan.

    `taps` has the taps of each state, ascending and negative. `keeps` has None for each state whose
    output has all initial and computed rows, or k for one that has only the last k, from 1 to the
    number of initial rows. With `is_while` the last inner output, a 0-d bool, ends the loop after the
    step that makes it true. Raises ValueError for anything else.
    """

    n_seqs: int
    taps: tuple[tuple[int, ...], ...]
    keeps: tuple[int | None, ...]
    n_mapped: int
    n_non_seqs: int
    is_while: bool = False

    def __post_init__(self) -> None:
        for state, taps in enumerate(self.taps):
            if not taps or list(taps) != sorted(set(taps)) or taps[-1] >= 0:
                raise ValueError(
                    f"Describing a Scan: the taps of state {state} are {taps}; they must be negative, "
                    "ascending and differ, and there must be one"
                )
        if len(self.keeps) != len(self.taps):
            raise ValueError(
                f"Describing a Scan: it has {len(self.taps)} states, but keeps has {len(self.keeps)} items"
            )
        for state, keep in enumerate(self.keeps):
            if keep is not None and not 1 <= keep <= self.n_initial(state):
                raise ValueError(
                    f"Describing a Scan: state {state} keeps its last {keep} rows; from 1 to "
                    f"{self.n_initial(state)}, as many as are given first, can be kept"
                )

    @property
    def n_states(self) -> int:
        """The number of states."""
        return len(self.taps)

    def n_initial(self, state: int) -> int:
        """Return the number of initial rows of a state."""
        return -self.taps[state][0]

    @property
    def kinds(self) -> tuple[str, ...]:
        """PyTensor's name for each state: "sit_sot" for one that reads its previous row, "untraced_sit_sot"
        if only the last row is returned, and "mit_sot" for one that reads earlier rows."""
        return tuple(
            "mit_sot" if taps != (-1,) else "sit_sot" if keep is None else "untraced_sit_sot"
            for taps, keep in zip(self.taps, self.keeps, strict=True)
        )

    @property
    def n_sit_sot(self) -> int:
        """The number of states that read their previous row, and of which all rows are returned."""
        return self.kinds.count("sit_sot")

    @property
    def n_untraced_sit_sot(self) -> int:
        """The number of states that read their previous row, and of which the last row is returned."""
        return self.kinds.count("untraced_sit_sot")

    @property
    def n_mit_sot(self) -> int:
        """The number of states that read earlier rows than the previous one."""
        return self.kinds.count("mit_sot")

    @property
    def n_nit_sot(self) -> int:
        """The number of mapped outputs, under PyTensor's name."""
        return self.n_mapped

    @property
    def as_while(self) -> bool:
        """True if a condition may end the loop, under PyTensor's name."""
        return self.is_while

    @property
    def n_outer_outputs(self) -> int:
        """The number of outputs of the Scan."""
        return self.n_states + self.n_mapped

    @property
    def n_outer_inputs(self) -> int:
        """The number of inputs of the Scan."""
        return 1 + self.n_seqs + self.n_states + self.n_non_seqs

    @property
    def n_inner_inputs(self) -> int:
        """The number of inputs of the inner graph."""
        return self.n_seqs + sum(map(len, self.taps)) + self.n_non_seqs

    @property
    def n_inner_outputs(self) -> int:
        """The number of outputs of the inner graph."""
        return self.n_states + self.n_mapped + self.is_while

    @property
    def destroyable(self) -> tuple[int, ...]:
        """The positions of the inner inputs that a step may overwrite.

        These are the taps of states that read only the previous row, and of which only the last row is
        returned.
        """
        found, position = [], self.n_seqs
        for taps, keep in zip(self.taps, self.keeps, strict=True):
            if taps == (-1,) and keep == 1:
                found.append(position)
            position += len(taps)
        return tuple(found)

    def outer_inputs(self, items: Sequence[T]) -> OuterInputs[T]:
        """Return `items`, one per outer input, grouped by kind."""
        _check_number("outer inputs", items, self.n_outer_inputs)
        rest = iter(items)
        n_steps = next(rest)
        return OuterInputs(n_steps, _take(rest, self.n_seqs), _take(rest, self.n_states), list(rest))

    def inner_inputs(self, items: Sequence[T]) -> InnerInputs[T]:
        """Return `items`, one per inner input, grouped by kind."""
        _check_number("inner inputs", items, self.n_inner_inputs)
        rest = iter(items)
        rows = _take(rest, self.n_seqs)
        return InnerInputs(rows, [_take(rest, len(taps)) for taps in self.taps], list(rest))

    def inner_outputs(self, items: Sequence[T]) -> InnerOutputs[T]:
        """Return `items`, one per inner output, grouped by kind."""
        _check_number("inner outputs", items, self.n_inner_outputs)
        rest = iter(items)
        states, mapped = _take(rest, self.n_states), _take(rest, self.n_mapped)
        return InnerOutputs(states, mapped, next(rest, None))

    def outer_outputs(self, items: Sequence[T]) -> OuterOutputs[T]:
        """Return `items`, one per outer output, grouped by kind."""
        _check_number("outer outputs", items, self.n_outer_outputs)
        return OuterOutputs(list(items[: self.n_states]), list(items[self.n_states :]))


class ScanLike(Protocol):
    """The interface of a Scan for the functions that differentiate it, which `Scan` imports."""

    fgraph: FrozenFunctionGraph
    info: ScanInfo
    truncate_gradient: int

    @property
    def inner_inputs(self) -> tuple[NominalVariable, ...]:
        """The inputs of the inner graph."""


def _take(items: Iterator[T], count: int) -> list[T]:
    return list(islice(items, count))


def _check_number(what: str, items: Sequence[object], due: int) -> None:
    if len(items) != due:
        raise ValueError(f"Taking apart the {what} of a Scan: it has {due}, {len(items)} were given")
