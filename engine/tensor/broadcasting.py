"""Broadcasting: the shape of an elementwise result, and the axes that a gradient is summed over.

The rules are numpy's, with one exception: an axis broadcasts only if its type says that its length
is 1.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.tensor.type import TensorType


def broadcast_lengths(
    what: str, types: Sequence[TensorType], shapes: Sequence[tuple[int, ...]]
) -> tuple[int, ...]:
    """Return the shape of the elementwise result of arrays of `shapes`; `what` names the operation in errors.

    An axis broadcasts only if its length is 1 in the type. Raises ValueError if the other lengths
    differ.
    """
    result = []
    for axis in range(types[0].ndim):
        strict = {
            p: s[axis] for p, (s, t) in enumerate(zip(shapes, types, strict=True)) if t.shape[axis] != 1
        }
        lengths = set(strict.values())
        if len(lengths) > 1:
            raise ValueError(_mismatch(what, axis, strict))
        result.append(lengths.pop() if lengths else 1)
    return tuple(result)


def _mismatch(what: str, axis: int, lengths: dict[int, int]) -> str:
    found = ", ".join(f"input {position} has length {length}" for position, length in lengths.items())
    text = f"Computing {what}: along axis {axis}, {found}."
    if 1 not in lengths.values():
        return f"{text} Input dimension mismatch: these lengths must be equal."
    return (
        f"{text} Runtime broadcasting not allowed: an axis broadcasts only if its length is known to be 1 "
        "when the graph is built. Declare it with shape=(1, ...), or drop it and put it back with "
        "dimshuffle."
    )


def unbroadcast_axes(target: TensorType, type: TensorType) -> tuple[int, ...]:
    """Return the axes that have static length 1 in `target` but not in `type`."""
    if target.shape == type.shape:
        return ()
    return tuple(
        [a for a, (t, s) in enumerate(zip(target.shape, type.shape, strict=True)) if t == 1 and s != 1]
    )
