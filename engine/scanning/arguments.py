"""The interface of `scan`: its arguments in canonical form, and what the step function returns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any

from cachegraph.named_tuples import NamedTuple
from engine.graph.represented import RepresentedType
from engine.graph.variables import Variable
from engine.tensor.conversion import as_symbolic, as_tensor_variable
from engine.tensor.math import minimum, neq
from engine.tensor.shape import expand_dims, shape_i


class Recurrence(NamedTuple):
    """A state as given to `scan`: its initial rows, its taps as given, and a variable for each tap."""

    initial: Any
    taps: tuple[int, ...]
    rows: list[Any]

    def sorted_rows(self) -> list[Any]:
        """Return the variables in ascending order of the taps."""
        return [row for _, row in sorted(zip(self.taps, self.rows, strict=True), key=lambda pair: pair[0])]


def as_list(value: Any) -> list[Any]:
    """Return `value` as a list: empty for None, else of one item or several."""
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def cut_sequences(sequences: Any, go_backwards: bool) -> list[tuple[Any, Any]]:
    """Return a pair for each tap of each sequence: the sequence shifted by the tap, and the variable of
    its row.

    Tap k of a sequence is row t + k at step t; step 0 is the first at which all taps exist. Raises
    TypeError or ValueError for anything but sequences.
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
    """Return `n_steps`, or the length of the shortest sequence if it is None.

    Raises ValueError if there are no sequences either.
    """
    if n_steps is not None:
        return as_tensor_variable(n_steps)
    lengths = list(
        {sequence.type.shape[0] or sequence: shape_i(sequence, 0) for sequence, _ in sequences}.values()
    )
    if not lengths:
        raise ValueError("Describing a loop: nothing tells how many steps to do; give n_steps, or a sequence")
    return reduce(minimum, lengths)


def recurrences(outputs_info: Any) -> list[Recurrence | None]:
    """Return a state for each item of `outputs_info`, or None for an output that later steps do not use.

    Raises ValueError for taps that are not negative, occur twice or have no initial rows; TypeError for
    initial rows without an axis.
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
    initial = as_symbolic(options["initial"])
    name = initial.name
    if isinstance(initial.type, RepresentedType):
        if taps != (-1,):
            raise ValueError(f"{what} has taps {taps}; {initial} of type {initial.type} has only -1")
        return Recurrence(initial, taps, [initial.type.make_variable(name)])
    if taps == (-1,):
        initial = expand_dims(initial, 0)
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
    """Return `sequence` without its first `start` and last `missing` rows."""
    if missing:
        return sequence[start:-missing]
    return sequence[start:] if start else sequence


def _name(sequence: Any, tap: int) -> str | None:
    return None if sequence.name is None else f"{sequence.name}[t{f'{tap:+d}' if tap else ''}]"


ORDER = ("outputs", "updates", "until")


class until:  # PyTensor's name
    """Ends the loop after the step in which `condition`, a 0-d variable, is true. Returned by a step
    function.

    Raises TypeError for a condition that has dimensions.
    """

    def __init__(self, condition: Any) -> None:
        found = as_tensor_variable(condition)
        if found.type.ndim != 0:
            raise TypeError(
                f"Ending a loop: the condition {found} has type {found.type}; it must have 0 dimensions"
            )
        self.condition = found if found.type.dtype == "bool" else neq(found, 0)


class StepResults:
    """The results of one step: outputs, updates of shared variables, and the condition to stop."""

    def __init__(self) -> None:
        self.outputs: list[Any] = []
        self.updates: dict[Any, Any] = {}
        self.stop: Any = None


def parse_step(returned: Any) -> StepResults:
    """Return the parts of a step function's result: outputs, updates and `until`, each optional, in
    this order.

    Outputs are a variable or several; updates are a dictionary or pairs, () for none. Raises ValueError
    for anything else.
    """
    parts: list[Any] = (
        [returned] if _kind(returned) else list(returned) if isinstance(returned, list | tuple) else [None]
    )
    kinds = [_kind(part) for part in parts]
    if None in kinds or kinds != [kind for kind in ORDER if kind in kinds]:
        raise ValueError(
            f"Describing a step: the function returned {returned!r}; it must return outputs (a variable, "
            "or a list of variables), updates (a dictionary, or pairs) and until(condition), or some of "
            "these, in this order. Numbers become variables by constant(...)"
        )
    step = StepResults()
    for kind, part in zip(kinds, parts, strict=True):
        if kind == "outputs":
            step.outputs = [part] if isinstance(part, Variable) else list(part)
        elif kind == "updates":
            step.updates = {variable: as_symbolic(value) for variable, value in dict(part).items()}
        else:
            step.stop = part.condition
    return step


def _kind(part: Any) -> str | None:
    """Return which item of `ORDER` `part` is, or None."""
    if isinstance(part, until):
        return "until"
    if isinstance(part, dict):
        return "updates"
    if isinstance(part, Variable):
        return "outputs"
    if not isinstance(part, list | tuple):
        return None
    if part == ():
        return "updates"
    if all(isinstance(item, Variable) for item in part):
        return "outputs"
    pairs = all(isinstance(item, list | tuple) and len(item) == 2 for item in part)
    return "updates" if pairs and all(isinstance(item[0], Variable) for item in part) else None
