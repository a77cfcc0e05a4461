"""`scan_checkpoints`: a loop whose gradient computes most of its steps again, instead of keeping them.

The steps are done in blocks, each a loop within a loop, which keeps the states at the ends of blocks only.
A gradient reads what a loop computed (decision 0013): of the outer loop these ends. Chen, Xu, Zhang and
Guestrin, "Training deep nets with sublinear memory cost" (2016).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from engine.scanning.arguments import as_list, cut_sequences, steps_of
from engine.scanning.construction import scan
from engine.tensor.conversion import as_symbolic, as_tensor_variable
from engine.tensor.creation import arange, zeros
from engine.tensor.joining import concatenate
from engine.tensor.math import floor_div, minimum
from engine.tensor.shape import reshape, shape_i


def scan_checkpoints(
    fn: Callable[..., Any],
    sequences: Any = None,
    outputs_info: Any = None,
    non_sequences: Any = None,
    name: str = "checkpointscan_fn",
    n_steps: Any = None,
    save_every_N: int = 10,
    padding: bool = True,
    return_updates: bool = True,
) -> Any:
    """Return what `scan` does, of each output only the rows after every `save_every_N` steps and the last.

    A gradient needs memory for these rows and for the steps between two of them, which it computes again.
    The arguments are those of `scan`; each sequence has one row for each step. With `padding` sequences are
    copied to a length that `save_every_N` divides; without, it must divide it. Raises RuntimeError for
    outputs with taps, and what `scan` raises.
    """
    if any(isinstance(given, Mapping) and "taps" in given for given in as_list(outputs_info)):
        raise RuntimeError("scan_checkpoints doesn't work with taps: give each output one initial value")
    given = [as_tensor_variable(value) for value in as_list(sequences)]
    constants = [as_symbolic(value) for value in as_list(non_sequences)]
    steps = steps_of(n_steps, cut_sequences(given, False))
    n_blocks = floor_div(steps + save_every_N - 1, save_every_N)
    blocks = [_in_blocks(value, n_blocks, save_every_N, padding) for value in given]
    lengths = minimum(save_every_N, steps - save_every_N * arange(n_blocks))
    infos = as_list(outputs_info)

    def block(*arguments: Any) -> Any:
        rows, old = list(arguments[1 : len(blocks) + 1]), iter(arguments[len(blocks) + 1 :])
        states = [None if _is_mapped(info) else next(old) for info in infos]
        outputs, updates = scan(
            fn, rows, states, list(old), arguments[0], return_list=True, name=f"{name}_inner"
        )
        return [output[-1] for output in outputs or []], updates

    return scan(
        block,
        [lengths, *blocks],
        infos,
        constants,
        n_blocks,
        name=f"{name}_outer",
        return_updates=return_updates,
    )


def _is_mapped(info: Any) -> bool:
    """Return True if later steps do not use the output."""
    return (info.get("initial") if isinstance(info, Mapping) else info) is None


def _in_blocks(sequence: Any, n_blocks: Any, size: int, is_padded: bool) -> Any:
    """Return `sequence` with an axis for blocks of `size` rows, filled up with zeros if `is_padded`."""
    rest: Sequence[Any] = [shape_i(sequence, axis) for axis in range(1, sequence.type.ndim)]
    if is_padded:
        n_missing = n_blocks * size - shape_i(sequence, 0)
        sequence = concatenate([sequence, zeros([n_missing, *rest], sequence.type.dtype)])
    return reshape(sequence, [n_blocks, size, *rest])
