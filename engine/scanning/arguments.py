"""What `scan` is given, made explicit: sequences cut to their taps, and states with their initial rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import engine.tensor as pt
from engine.tensor.conversion import as_tensor_variable


@dataclass
class Recurrence:
    """A state as `scan` is given it: its initial rows, its taps in the order given, and a variable for each of these."""

    initial: Any
    taps: tuple[int, ...]
    rows: list[Any]

    def sorted_rows(self) -> list[Any]:
        """The variables in ascending order of the taps."""
        return [row for _, row in sorted(zip(self.taps, self.rows, strict=True), key=lambda pair: pair[0])]


def as_list(value: Any) -> list[Any]:
    """`value` as a list: nothing, one thing, or several."""
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def cut_sequences(sequences: Any, go_backwards: bool) -> list[tuple[Any, Any]]:
    """For each tap of each sequence the part of the sequence whose row number t it is at step t, and that row's
    variable.

    A tap k is row t + k of a sequence; step 0 is the first at which every tap has a row. Refuses (TypeError,
    ValueError) what is no sequence.
    """
    found = []
    for number, given in enumerate(as_list(sequences)):
        what = f"Describing a loop: sequence {number}"
        options = dict(given) if isinstance(given, Mapping) else {"input": given}
        _check_options(what, options, {"input", "taps"})
        if "input" not in options:
            raise ValueError(f"{what} is {given!r}; a dictionary must have an input")
        sequence, taps = as_tensor_variable(options["input"]), _taps(options.get("taps"), (0,))
        if sequence.type.ndim == 0:
            raise TypeError(f"{what}, {sequence}, has no axis to go along; make it a non-sequence")
        first, last = min((*taps, 0)), max((*taps, 0))
        for tap in taps:
            part = _part(sequence, tap - first, last - tap)
            row = part.type.clone(shape=part.type.shape[1:]).make_variable(_name(sequence, tap))
            found.append((part[::-1] if go_backwards else part, row))
    return found


def steps_of(n_steps: Any, sequences: Iterable[tuple[Any, Any]]) -> Any:
    """`n_steps`, or, where it is None, the length of the shortest sequence.

    Refuses (ValueError) no sequences then.
    """
    if n_steps is not None:
        return as_tensor_variable(n_steps)
    lengths = list(dict.fromkeys([pt.shape_i(sequence, 0) for sequence, _ in sequences]))
    if not lengths:
        raise ValueError("Describing a loop: nothing tells how many steps to do; give n_steps, or a sequence")
    return reduce(pt.minimum, lengths)


def recurrences(outputs_info: Any) -> list[Recurrence | None]:
    """For each output what `outputs_info` says of it: a state, or None, which no later step uses.

    Refuses (ValueError) taps that are no rows before, come twice or have no initial rows; (TypeError) initial rows
    without an axis.
    """
    return [_recurrence(number, given) for number, given in enumerate(as_list(outputs_info))]


def _recurrence(number: int, given: Any) -> Recurrence | None:
    what = f"Describing a loop: output {number}"
    options = dict(given) if isinstance(given, Mapping) else {"initial": given}
    _check_options(what, options, {"initial", "taps"})
    taps = _taps(options.get("taps"), (-1,))
    if options.get("initial") is None:
        if options.get("taps") is not None:
            raise ValueError(f"{what} has taps {taps} and no initial value; give its first {-min(taps)} rows")
        return None
    if any(tap >= 0 for tap in taps) or len(set(taps)) != len(taps) or not taps:
        raise ValueError(f"{what} has taps {taps}; they must be negative and differ: -1 is the row before")
    initial = as_tensor_variable(options["initial"])
    name = initial.name
    if taps == (-1,):
        initial = pt.expand_dims(initial, 0)
    elif initial.type.ndim == 0:
        raise TypeError(
            f"{what} has taps {taps}, so {-min(taps)} initial rows are needed; {initial} has none"
        )
    elif initial.type.shape[0] != -min(taps):
        initial = initial[: -min(taps)]
    row = initial.type.clone(shape=initial.type.shape[1:])
    rows = [row.make_variable(None if name is None else f"{name}[t{tap}]") for tap in taps]
    return Recurrence(initial, taps, rows)


def _taps(taps: Any, default: tuple[int, ...]) -> tuple[int, ...]:
    return default if taps is None else tuple([int(tap) for tap in as_list(taps)])


def _check_options(what: str, options: Mapping[str, Any], known: set[str]) -> None:
    unknown = sorted(set(options) - known)
    if unknown:
        raise ValueError(f"{what} has {', '.join(unknown)}; a dictionary may have {', '.join(sorted(known))}")


def _part(sequence: Any, start: int, missing: int) -> Any:
    """`sequence` without its first `start` and its last `missing` rows."""
    if missing:
        return sequence[start:-missing]
    return sequence[start:] if start else sequence


def _name(sequence: Any, tap: int) -> str | None:
    return None if sequence.name is None else f"{sequence.name}[t{f'{tap:+d}' if tap else ''}]"
