"""`ScanInfo`: what the inputs and outputs of a Scan are, in which order they come, and how they are taken apart.

A *state* is computed from rows of itself at earlier steps; which ones are its *taps*, counted from the step that is
being done: -1 is the row before. As many rows as its smallest tap reaches back are given (the initial rows). A *mapped*
output is computed at each step and not used by later ones.

    outer inputs     n_steps, sequences, initial rows of each state, non-sequences
    inner inputs     a row of each sequence, for each state a row for each tap, non-sequences
    inner outputs    the new row of each state, a row of each mapped output, whether to stop
    outer outputs    for each state its initial rows and those of all steps, or the last of these; mapped outputs
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Generic, NamedTuple, Protocol, TypeVar

from engine.graph.fgraph import FrozenFunctionGraph
from engine.graph.frozen_nodes import NominalVariable

T = TypeVar("T")


class OuterInputs(NamedTuple, Generic[T]):
    """What a Scan is applied to; `initials` has one for each state."""

    n_steps: T
    sequences: list[T]
    initials: list[T]
    non_sequences: list[T]


class InnerInputs(NamedTuple, Generic[T]):
    """What one step is computed from; `taps` has for each state a row for each of its taps."""

    rows: list[T]
    taps: list[list[T]]
    non_sequences: list[T]


class InnerOutputs(NamedTuple, Generic[T]):
    """What one step computes; `stop` is None unless the loop may end early."""

    states: list[T]
    mapped: list[T]
    stop: T | None


class OuterOutputs(NamedTuple, Generic[T]):
    """What a Scan computes."""

    buffers: list[T]
    mapped: list[T]


@dataclass(frozen=True, slots=True)
class ScanInfo:
    """The interface of a Scan.

    `taps` has for each state its taps, ascending and negative. `keeps` has for each state None, if its buffer holds
    the initial rows and those of all steps, or k, if only the last k of these: from 1 to as many as are given first.
    With `is_while` the last inner output, a bool of 0 dimensions, ends the loop after the step that made it true.
    Raises ValueError for anything else.
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
                    f"Describing a Scan: the taps of state {state} are {taps}; they must be negative, ascending and "
                    "differ, and there must be one"
                )
        if len(self.keeps) != len(self.taps):
            raise ValueError(
                f"Describing a Scan: it has {len(self.taps)} states, but keeps has {len(self.keeps)} items"
            )
        for state, keep in enumerate(self.keeps):
            if keep is not None and not 1 <= keep <= self.n_initial(state):
                raise ValueError(
                    f"Describing a Scan: state {state} keeps its last {keep} rows; from 1 to {self.n_initial(state)}, as "
                    "many as are given first, can be kept"
                )

    @property
    def n_states(self) -> int:
        """The number of states."""
        return len(self.taps)

    def n_initial(self, state: int) -> int:
        """How many initial rows a state has."""
        return -self.taps[state][0]

    @property
    def n_outer_inputs(self) -> int:
        """The number of what the Scan is applied to."""
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
        """The positions of the inner inputs that may be overwritten: the tap of a state of which nothing but the last
        row is read again, neither by later steps nor by whoever uses the Scan."""
        found, position = [], self.n_seqs
        for taps, keep in zip(self.taps, self.keeps, strict=True):
            if taps == (-1,) and keep == 1:
                found.append(position)
            position += len(taps)
        return tuple(found)

    def outer_inputs(self, items: Sequence[T]) -> OuterInputs[T]:
        """Return `items`, one for each outer input, by kind."""
        _check_number("outer inputs", items, self.n_outer_inputs)
        rest = iter(items)
        n_steps = next(rest)
        return OuterInputs(n_steps, _take(rest, self.n_seqs), _take(rest, self.n_states), list(rest))

    def inner_inputs(self, items: Sequence[T]) -> InnerInputs[T]:
        """Return `items`, one for each inner input, by kind."""
        _check_number("inner inputs", items, self.n_inner_inputs)
        rest = iter(items)
        rows = _take(rest, self.n_seqs)
        return InnerInputs(rows, [_take(rest, len(taps)) for taps in self.taps], list(rest))

    def inner_outputs(self, items: Sequence[T]) -> InnerOutputs[T]:
        """Return `items`, one for each inner output, by kind."""
        _check_number("inner outputs", items, self.n_inner_outputs)
        rest = iter(items)
        states, mapped = _take(rest, self.n_states), _take(rest, self.n_mapped)
        return InnerOutputs(states, mapped, next(rest, None))

    def outer_outputs(self, items: Sequence[T]) -> OuterOutputs[T]:
        """Return `items`, one for each outer output, by kind."""
        _check_number("outer outputs", items, self.n_states + self.n_mapped)
        return OuterOutputs(list(items[: self.n_states]), list(items[self.n_states :]))


class ScanLike(Protocol):
    """A Scan as the functions see it that differentiate it; `Scan` itself is defined above them."""

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
