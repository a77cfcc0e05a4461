"""Entries: the form of an index without its numbers and arrays.

Each indexed axis has an *entry*: "i" for an index (a number, or in advanced indexing an array), or a slice
with a letter for each bound that is given: ":", "a:", ":b", "a:b:c". The numbers and arrays are inputs of
the Op, in that order. PyTensor writes the same as an `idx_list`: the position of each of these inputs, alone
or in a slice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from engine.graph.variables import Variable
from engine.tensor.none_type import NoneTypeT

INTEGER = "i"
FULL = ":"
Part = TypeVar("Part")
Entry = str


def slice_entry(start: object, stop: object, step: object) -> Entry:
    """Return the entry of a slice; a bound that is None is left out."""
    return f"{'' if start is None else 'a'}:{'' if stop is None else 'b'}{'' if step is None else ':c'}"


def parts_of(
    entries: Iterable[Entry], numbers: Iterable[Part]
) -> Iterator[tuple[Part | None, Part | None, Part | None, Part | None]]:
    """Yield (index, start, stop, step) for each entry, with None for what is not given."""
    rest = iter(numbers)
    for entry in entries:
        index, start, stop, step = [next(rest) if letter in entry else None for letter in "iabc"]
        yield index, start, stop, step


def count_of(entries: Iterable[Entry]) -> int:
    """Return how many numbers and arrays belong to `entries`."""
    return sum(letter in entry for entry in entries for letter in "iabc")


def entries_of(idx_list: Iterable[Entry | int | slice]) -> tuple[Entry, ...]:
    """Return the entries of an `idx_list` of PyTensor's, or entries as they are.

    Raises ValueError for positions that are not 0, 1, 2... in their order, and for other items.
    """
    items = list(idx_list)
    positions = [place for item in items for place in _positions(item)]
    if positions != list(range(len(positions))):
        raise ValueError(f"Making an index: idx_list entries should have consecutive integers, got {items}")
    return tuple([_entry(item) for item in items])


def _positions(item: Any) -> list[Any]:
    if isinstance(item, str):
        return []
    parts = [item.start, item.stop, item.step] if isinstance(item, slice) else [item]
    given = [part for part in parts if part is not None or not isinstance(item, slice)]
    if not all(isinstance(part, int) for part in given):
        raise ValueError(
            f"Making an index: {item!r} of idx_list must be an integer, or a slice of integers and None"
        )
    return given


def _entry(item: Entry | int | slice) -> Entry:
    if isinstance(item, slice):
        return slice_entry(item.start, item.stop, item.step)
    return item if isinstance(item, str) else INTEGER


def idx_list_of(entries: Sequence[Entry]) -> tuple[int | slice, ...]:
    """Return `entries` as PyTensor's `idx_list`."""
    return flatten_index_variables(index_of(entries, [0] * count_of(entries)))[0]


def index_of(entries: Iterable[Entry], values: Iterable[Part]) -> tuple[Part | slice, ...]:
    """Return the index, of slices and what is in `values`, that `entries` and `values` describe."""
    found: list[Any] = []
    for entry, (index, *bounds) in zip(entries, parts_of(entries, values), strict=True):
        found.append(index if entry == INTEGER else slice(*bounds))
    return tuple(found)


def flatten_index_variables(idx_vars: Sequence[Any]) -> tuple[tuple[int | slice, ...], list[Any]]:
    """Return the `idx_list` of an index, and the numbers and arrays in it, in order."""
    flat: list[Any] = []
    positions: list[Any] = []
    for item in idx_vars:
        parts = [item.start, item.stop, item.step] if isinstance(item, slice) else [item]
        parts = [None if is_none(part) else part for part in parts]
        places = iter(range(len(flat), len(flat) + 3))
        found = [None if part is None else next(places) for part in parts]
        flat += [part for part in parts if part is not None]
        positions.append(slice(*found) if isinstance(item, slice) else found[0])
    return tuple(positions), flat


def is_none(part: Any) -> bool:
    """Return True for the variable that stands for None, `NoneConst`."""
    return isinstance(part, Variable) and isinstance(part.type, NoneTypeT)


def unflatten_index_variables(
    flat_indices: Sequence[Any], idx_list: Sequence[Entry | int | slice]
) -> tuple[Any, ...]:
    """Return the index that an `idx_list`, or entries, and the numbers and arrays in it describe.

    Raises ValueError for another `idx_list`.
    """
    return index_of(entries_of(idx_list), flat_indices)


def indices_from_subtensor(
    op_indices: Sequence[Any], idx_list: Sequence[Entry | int | slice]
) -> tuple[Any, ...]:
    """Return the index of an Op with this `idx_list`, whose further inputs are `op_indices`."""
    return unflatten_index_variables(op_indices, idx_list)


def get_idx_list(inputs: Sequence[Any], idx_list: Sequence[Entry | int | slice]) -> tuple[Any, ...]:
    """Return the index of an Op with this `idx_list`, whose inputs are `inputs`, the tensor first."""
    return unflatten_index_variables(inputs[1:], idx_list)
