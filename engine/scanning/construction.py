"""`scan`, a loop described by a Python function of one step; `map`, `reduce`, `foldl`, `foldr`, `filter`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Sequence
from typing import Any

from engine.errors import MissingInputError
from engine.graph.traversal import graph_inputs
from engine.graph.variables import Constant, note_uses
from engine.inner.scan import Scan
from engine.inner.scan_building import ScanBuilder, State
from engine.scanning.arguments import (
    Recurrence,
    StepResults,
    as_list,
    cut_sequences,
    parse_step,
    recurrences,
    steps_of,
)
from engine.scanning.held_values import held_state, hold_non_sequences, is_held, last_value
from engine.shared_variables import SharedVariable, newest_container
from engine.tensor.conversion import as_symbolic, as_tensor_variable
from engine.tensor.shape import expand_dims


def scan(
    fn: Callable[..., Any],
    sequences: Any = None,
    outputs_info: Any = None,
    non_sequences: Any = None,
    n_steps: Any = None,
    truncate_gradient: int = -1,
    go_backwards: bool = False,
    mode: Any = None,
    name: str | None = None,
    profile: bool = False,
    allow_gc: bool | None = None,
    strict: bool = False,
    return_list: bool = False,
    return_updates: bool = True,
) -> Any:
    """Apply `fn` repeatedly; return all rows of its outputs, and the updates of shared variables.

    `fn` is called once, with variables: a row for each tap of each sequence, one for each tap of each state,
    and the `non_sequences`. It returns new rows of the outputs, updates of shared variables and
    `until(condition)`, or some of these, in this order.

    `sequences` are tensors, iterated along their first axis, or dict(input=, taps=), where tap k is row
    t + k at step t. `outputs_info` has an item for each output: None if later steps do not use it, its
    value before the first step, or dict(initial=, taps=) with negative taps, where -1 is the previous
    row. For taps other than [-1], `initial` has as many rows as the smallest tap reaches back.
    `n_steps` is a number or an integer variable; the default is the length of the shortest sequence.
    `go_backwards` iterates over sequences from their ends. `truncate_gradient` limits the number of steps
    that gradients go back (-1: no limit). Variables that `fn` uses without being given become non-sequences;
    `strict` forbids this for shared variables.

    Returns (outputs, updates). The outputs are a list, a single variable (unless `return_list`), or None.
    The updates are for `function(updates=...)`; `return_updates=False` leaves them out. A state may be a
    generator of random numbers; its output is the last one. `allow_gc` has no effect: results are freed.

    Raises ValueError if the number of outputs differs from that of `outputs_info`, for updates that are not
    returned, and for a missing or negative number of steps; TypeError for outputs or updates that differ from
    their initial values in dtype or shape; MissingInputError for a shared variable that `strict` forbids.
    """
    _check_unused(mode, profile)
    rows = cut_sequences(sequences, go_backwards)
    states = recurrences(outputs_info)
    constants = [as_symbolic(value) for value in as_list(non_sequences)]
    note_uses([*constants, *(sequence for sequence, _ in rows)])
    taps = [row for state in states if state is not None for row in state.rows]
    begun = newest_container()
    step = parse_step(fn(*(row for _, row in rows), *taps, *constants))
    states = _checked_states(states, step)
    _add_default_updates(step, begun)
    values: dict[Any, Any] = {}
    updated = _shared_states(step.updates, values)
    _check_strict(strict, step, [*constants, *updated, *(v for v, _ in rows)])
    loop_states = [*_states(states, step, values), *updated.values()]
    mapped = [new for state, new in zip(states, step.outputs, strict=True) if state is None]
    loop = ScanBuilder(steps_of(n_steps, rows), rows, loop_states, mapped, stop=step.stop)
    _close(loop, [v for v in constants if v not in updated], values)
    found = loop.apply(Scan, truncate_gradient, name)
    last = zip(updated, found.buffers[len(found.buffers) - len(updated) :], strict=True)
    updates = {v: last_value(buffer, v) if is_held(v) else buffer[-1] for v, buffer in last}
    return _returned(_ordered(states, found.buffers, found.mapped), updates, return_list, return_updates)


def _close(loop: ScanBuilder, given: Sequence[Any], values: dict[Any, Any]) -> None:
    """Add the non-sequences of `loop`: those `given`, and what a step uses without being given. In a step
    `values` take the place of the variables that are their keys."""
    unique = [v for v in dict.fromkeys(given) if not isinstance(v, Constant)]
    loop.non_sequences = [(variable, variable) for variable in unique]
    loop.substitute(values)
    loop.non_sequences += [(variable, variable) for variable in loop.invariants()]
    hold_non_sequences(loop)


def _check_unused(mode: Any, profile: bool) -> None:
    """Warn of a mode. Raises NotImplementedError for a profile."""
    if profile:
        raise NotImplementedError("Describing a loop: there are no profiles; use a profiler of Python's")
    if mode is not None:
        warnings.warn(
            "scan: mode is not used; the graph of a step is compiled as the function around it",
            FutureWarning,
            stacklevel=3,
        )


def _checked_states(states: list[Recurrence | None], step: StepResults) -> list[Recurrence | None]:
    """Return a state, or None, for each output of `step`."""
    if not states:
        return [None] * len(step.outputs)
    if len(states) != len(step.outputs):
        raise ValueError(
            f"Describing a loop: a step returns {len(step.outputs)} outputs, outputs_info has "
            f"{len(states)} items; give None for each output that later steps do not use"
        )
    return states


def _add_default_updates(step: StepResults, begun: int) -> None:
    """Add the default updates of shared variables that the step made, as those of a RandomStream: nobody
    outside can ask for them."""
    for variable in graph_inputs([*step.outputs, *step.updates.values()]):
        if not isinstance(variable, SharedVariable) or variable.container.number < begun:
            continue
        if variable.default_update is not None and variable not in step.updates:
            step.updates[variable] = variable.default_update
            variable.default_update = None


def _states(states: Sequence[Recurrence | None], step: StepResults, values: dict[Any, Any]) -> list[State]:
    return [
        held_state(state.initial, state.rows[0], new, values)
        if is_held(state.initial)
        else State(state.initial, tuple(sorted(state.taps)), state.sorted_rows(), new)
        for state, new in zip(states, step.outputs, strict=True)
        if state is not None
    ]


def _shared_states(updates: dict[Any, Any], values: dict[Any, Any]) -> dict[Any, State]:
    """Return the shared variables that a step updates as states; inside the loop each is its own row, or, if
    its values are no arrays, what is added to `values`."""
    found = {}
    for shared, value in updates.items():
        if not hasattr(shared, "container"):
            raise ValueError(f"Describing a loop: {shared} is updated; only a shared variable can be")
        if is_held(shared):
            found[shared] = held_state(shared, shared, value, values)
        else:
            found[shared] = State(expand_dims(shared, 0), (-1,), [shared], value)
    return found


def _check_strict(strict: bool, step: StepResults, given: Collection[Any]) -> None:
    every = [*step.outputs, *step.updates.values(), *([] if step.stop is None else [step.stop])]
    for variable in graph_inputs(every, given) if strict else ():
        if hasattr(variable, "container") and variable not in given:
            raise MissingInputError(
                f"Describing a loop: a step uses the shared variable {variable} of type {variable.type}, "
                "which strict=True forbids; add it to non_sequences",
                variable,
            )


def _ordered(states: Sequence[Recurrence | None], buffers: Sequence[Any], mapped: Sequence[Any]) -> list[Any]:
    """Return the rows of all steps for each output."""
    of_states, of_others = iter(buffers), iter(mapped)
    return [next(of_others) if state is None else _computed_rows(state, next(of_states)) for state in states]


def _computed_rows(state: Recurrence, buffer: Any) -> Any:
    """Return the rows that the steps computed, or, if a row is no array, the last of them."""
    return last_value(buffer, state.initial) if is_held(state.initial) else buffer[-min(state.taps) :]


def _returned(outputs: list[Any], updates: dict[Any, Any], return_list: bool, return_updates: bool) -> Any:
    found: Any = outputs if outputs else None
    if len(outputs) == 1 and not return_list:
        found = outputs[0]
    if return_updates:
        return found, updates
    if updates:
        raise ValueError(
            f"Describing a loop: a step updates {', '.join(str(v) for v in updates)}, but "
            "return_updates=False; make them outputs with an initial value, or take the updates"
        )
    return found


def map(
    fn: Callable[..., Any],
    sequences: Any,
    non_sequences: Any = None,
    truncate_gradient: int = -1,
    go_backwards: bool = False,
    mode: Any = None,
    name: str | None = None,
    return_updates: bool = True,
) -> Any:
    """Return `fn` applied to each row of `sequences`. Arguments, results and errors are those of `scan`."""
    return scan(
        fn,
        sequences,
        None,
        non_sequences,
        truncate_gradient=truncate_gradient,
        go_backwards=go_backwards,
        mode=mode,
        name=name,
        return_updates=return_updates,
    )


def reduce(
    fn: Callable[..., Any],
    sequences: Any,
    outputs_info: Any,
    non_sequences: Any = None,
    go_backwards: bool = False,
    mode: Any = None,
    name: str | None = None,
    return_updates: bool = True,
) -> Any:
    """Return the last rows that `scan` gives. Arguments and errors are those of `scan`.

    Reducing a sequence of length 0 raises IndexError at run time.
    """
    outputs, updates = scan(
        fn, sequences, outputs_info, non_sequences, go_backwards=go_backwards, mode=mode, name=name
    )
    last = [output[-1] for output in outputs] if isinstance(outputs, list) else outputs[-1]
    if return_updates:
        return last, updates
    if updates:
        raise ValueError(
            f"Reducing: a step updates {', '.join(str(v) for v in updates)}, but return_updates=False; "
            "take the updates"
        )
    return last


def foldl(
    fn: Callable[..., Any],
    sequences: Any,
    outputs_info: Any,
    non_sequences: Any = None,
    mode: Any = None,
    name: str | None = None,
    return_updates: bool = True,
) -> Any:
    """Return `reduce` from the first row to the last."""
    return reduce(fn, sequences, outputs_info, non_sequences, False, mode, name, return_updates)


def foldr(
    fn: Callable[..., Any],
    sequences: Any,
    outputs_info: Any,
    non_sequences: Any = None,
    mode: Any = None,
    name: str | None = None,
    return_updates: bool = True,
) -> Any:
    """Return `reduce` from the last row to the first."""
    return reduce(fn, sequences, outputs_info, non_sequences, True, mode, name, return_updates)


def filter(
    fn: Callable[..., Any],
    sequences: Any,
    non_sequences: Any = None,
    go_backwards: bool = False,
    mode: Any = None,
    name: str | None = None,
) -> Any:
    """Return the rows of `sequences`, one or a list or tuple, for which `fn` gives True.

    `fn` gives one 0-d bool, or one for each sequence. Arguments and errors are those of `scan`; raises
    ValueError if `fn` gives another number of bools.
    """
    masks = scan(
        fn,
        sequences,
        None,
        non_sequences,
        go_backwards=go_backwards,
        mode=mode,
        name=name,
        return_list=True,
        return_updates=False,
    )
    several = as_list(sequences)
    if len(masks) not in (1, len(several)):
        raise ValueError(
            f"Filtering {len(several)} sequences: the function gave {len(masks)} masks; one, or one for each "
            "sequence, is needed"
        )
    every = masks if len(masks) > 1 else masks * len(several)
    found = [
        as_tensor_variable(v)[mask[::-1] if go_backwards else mask]
        for v, mask in zip(several, every, strict=True)
    ]
    return found if isinstance(sequences, list | tuple) else found[0]
