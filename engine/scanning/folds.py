"""Loops with a name of their own: `map`, `reduce`, `foldl` and `foldr`, each a `scan`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.scanning.construction import scan


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
    """`fn` of each row of `sequences`; arguments, results and refusals are those of `scan`."""
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
    """The last rows that `scan` gives; arguments and refusals are those of `scan`.

    No rows at all (a sequence of length 0) are an IndexError when it runs.
    """
    outputs, updates = scan(
        fn, sequences, outputs_info, non_sequences, go_backwards=go_backwards, mode=mode, name=name
    )
    last = [output[-1] for output in outputs] if isinstance(outputs, list) else outputs[-1]
    if return_updates:
        return last, updates
    if updates:
        raise ValueError(
            f"Reducing: a step updates {', '.join(str(v) for v in updates)}, but return_updates=False; take the updates"
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
    """`reduce` from the first row to the last."""
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
    """`reduce` from the last row to the first."""
    return reduce(fn, sequences, outputs_info, non_sequences, True, mode, name, return_updates)
