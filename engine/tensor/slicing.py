"""Basic indexing by integers and slices: the part of a tensor (a view), and the tensor with that
part changed.

`engine.tensor.index_entries` describes the entries of an index. Its numbers are further inputs (0-d int64).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.scalar.comparison import minimum
from engine.scalar.conversion import second
from engine.scalar.promotion import INEXACT, common_dtype, weak_dtype
from engine.tensor.broadcasting import unbroadcast_axes
from engine.tensor.conversion import as_tensor_variable, number, pad
from engine.tensor.elemwise import apply_elemwise, cast
from engine.tensor.index_entries import FULL, INTEGER, Entry, count_of, entries_of, idx_list_of, parts_of
from engine.tensor.known_lengths import known_length
from engine.tensor.type import TensorType, tensor_type


def as_position(number: Any) -> Any:
    """Return an integer as an int64; the largest int64, beyond every axis, for a uint64 above it."""
    variable = as_tensor_variable(number)
    if variable.type.dtype == "uint64":
        variable = apply_elemwise(minimum, variable, 2**63 - 1)
    return cast(variable, "int64")


class _BasicIndexing(Op):
    """Base class of the Ops with `entries`. Trailing full slices are dropped."""

    entries: tuple[Entry, ...]

    def _set_entries(self, idx_list: Sequence[Entry | int | slice]) -> None:
        kept = list(entries_of(idx_list))
        while kept and kept[-1] == FULL:
            kept.pop()
        self.entries = tuple(kept)

    @property
    def idx_list(self) -> tuple[int | slice, ...]:
        """The entries as PyTensor writes them: positions among the numbers."""
        return idx_list_of(self.entries)

    def _numbers(self, x: Any, numbers: Sequence[Any]) -> list[Any]:
        due = count_of(self.entries)
        if len(numbers) != due:
            raise ValueError(f"Applying {self} to {x}: {due} numbers are needed, {len(numbers)} were given")
        if x.type.ndim < len(self.entries):
            raise IndexError(
                f"Indexing {x} of type {x.type}: too many indices for tensor: tensor is "
                f"{x.type.ndim}-dimensional, but {len(self.entries)} were indexed"
            )
        return [as_position(n) for n in numbers]

    def _selected(self, x: TensorType, numbers: Sequence[Any]) -> TensorType:
        """Return the type of the indexed part of an `x`."""
        shape = []
        for length, entry, parts in zip(x.shape, self.entries, parts_of(self.entries, numbers), strict=False):
            if entry != INTEGER:
                shape.append(length if entry == FULL else static_length(length, parts[1:]))
        return tensor_type(x.dtype, (*shape, *x.shape[len(self.entries) :]))

    def _index(self, x: np.ndarray, numbers: Sequence[Any]) -> tuple[Any, ...]:
        """Return numpy's index for `x`. Raises IndexError for an integer out of range."""
        result: list[Any] = []
        for axis, (index, *parts) in enumerate(parts_of(self.entries, [int(n) for n in numbers])):
            if index is None:
                result.append(slice(*parts))
                continue
            if not -x.shape[axis] <= index < x.shape[axis]:
                raise IndexError(
                    f"Indexing axis {axis} of size {x.shape[axis]}: index {index} is out of bounds"
                )
            result.append(index)
        return (*result, Ellipsis)

    def __str__(self) -> str:
        return f"{type(self).__name__}{{{', '.join(self.entries) or '...'}}}"

    __repr__ = __str__


def static_length(length: int | None, parts: Sequence[Any]) -> int | None:
    """Return the length of a slice (start, stop, step), or None. Refuse (ValueError) a step of 0."""
    known = [None if part is None else known_length(part) for part in parts]
    if known[2] == 0 and parts[2] is not None:
        raise ValueError("Indexing by a slice: its step cannot be zero")
    if None not in known[:2] and known[0] == known[1]:
        return 0
    if length is None or any(p is not None and k is None for p, k in zip(parts, known, strict=True)):
        return None
    return len(range(*slice(*known).indices(length)))


class Subtensor(_BasicIndexing):
    """The part of a tensor that `entries` and the integers select, as a view.

    Raises IndexError for an integer out of range and ValueError for a step of 0.
    """

    __props__ = ("entries",)
    differentiates_complex = True
    view_map: ClassVar[dict[int, list[int]]] = {0: [0]}

    def __init__(self, idx_list: Sequence[Entry | int | slice]) -> None:
        self._set_entries(idx_list)

    def make_node(self, x: Any, *numbers: Any) -> Apply:
        x = as_tensor_variable(x)
        inputs = self._numbers(x, numbers)
        return Apply(self, [x, *inputs], [self._selected(x.type, inputs).make_variable()])

    def known_number(self, node: Apply, steps: int) -> int | None:
        """Return the integer that is taken of a vector, if that tells it by its `element_at`."""
        maker = node.inputs[0].owner
        find = None if maker is None else getattr(maker.op, "element_at", None)
        if maker is None or find is None or self.entries != (INTEGER,):
            return None
        position = known_length(node.inputs[1], steps)
        element = None if position is None else find(maker, position)
        return None if element is None else known_length(element, steps)

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        x, *numbers = inputs
        output_storage[0][0] = x[self._index(x, numbers)]

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        x, *numbers = inputs
        nothing = [None] * len(numbers)
        if cotangents[0] is None or x.type.dtype not in INEXACT:
            return [None, *nothing]
        zeros = apply_elemwise(second, x, number(0, x.type.dtype))
        return [set_part(self.entries, zeros, cotangents[0], numbers), *nothing]  # no place is read twice

    def vectorized(self, node: Apply, inputs: Sequence[Any]) -> Sequence[Any] | None:
        x, *numbers = inputs
        if any(number.type.ndim for number in numbers):
            return None
        count = x.type.ndim - node.inputs[0].type.ndim
        return Subtensor([FULL] * count + list(self.entries)).make_node(x, *numbers).outputs

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Return that the output depends on the tensor, not on the integers."""
        return [[True], *([False] for _ in node.inputs[1:])]


class IncSubtensor(_BasicIndexing):
    """A tensor with `y` added to the part that `entries` and the integers select, or with that part set
    to `y`.

    Axes of `y` of static length 1 broadcast. With `inplace` the tensor itself is changed; a rewrite
    sets this where nothing reads the old value afterwards. Raises as Subtensor does, and ValueError if
    `y` does not fit.
    """

    __props__ = ("entries", "set_instead_of_inc", "inplace")
    differentiates_complex = True

    def __init__(
        self,
        idx_list: Sequence[Entry | int | slice],
        inplace: bool = False,
        set_instead_of_inc: bool = False,
    ) -> None:
        self._set_entries(idx_list)
        self.set_instead_of_inc = bool(set_instead_of_inc)
        self.inplace = bool(inplace)
        if self.inplace:
            self.destroy_map = {0: [0]}

    def make_node(self, x: Any, y: Any, *numbers: Any) -> Apply:
        x = as_tensor_variable(x)
        inputs = self._numbers(x, numbers)
        selected = self._selected(x.type, inputs)
        y = as_part(y, x.type)
        if y.type.ndim > selected.ndim:
            raise ValueError(
                f"Indexing {x.type}: {y.type} has more dimensions than what is indexed, {selected}"
            )
        y = pad(y, selected.ndim)
        for found, due in zip(y.type.shape, selected.shape, strict=True):
            if found not in (1, None, due) and due is not None:
                raise ValueError(f"Indexing {x.type}: {y.type} does not fit what is indexed, {selected}")
        return Apply(self, [x, y, *inputs], [x.type.make_variable()])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        x, y, *numbers = inputs
        result = x if self.inplace else np.array(x, order="C")
        part = result[self._index(x, numbers)]
        static = node.inputs[1].type.shape
        if any(known != 1 and a != b for known, a, b in zip(static, y.shape, part.shape, strict=True)):
            raise ValueError(
                f"Indexing an array of shape {x.shape}: what is indexed has shape {part.shape}, {y.shape} "
                "was given"
            )
        with np.errstate(all="ignore"):
            part[...] = y if self.set_instead_of_inc else np.add(part, y)
        output_storage[0][0] = result

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        x, y, *numbers = inputs
        gradient = cotangents[0]
        nothing = [None] * len(numbers)
        if gradient is None or x.type.dtype not in INEXACT:
            return [None, None, *nothing]
        of_x = gradient
        if self.set_instead_of_inc:
            of_x = set_part(self.entries, gradient, 0, numbers)
        of_y: Any = Subtensor(self.entries).make_node(gradient, *numbers).outputs[0]
        axes = unbroadcast_axes(y.type, of_y.type)
        return [of_x, of_y.sum(axes, keepdims=True) if axes else of_y, *nothing]

    def vectorized(self, node: Apply, inputs: Sequence[Any]) -> Sequence[Any] | None:
        """Return the outputs if the tensor has the whole batch."""
        x, y, *numbers = inputs
        counts = [v.type.ndim - old.type.ndim for v, old in zip((x, y), node.inputs, strict=False)]
        if any(number.type.ndim for number in numbers) or counts[0] < counts[1]:
            return None
        first, last = x.type.broadcastable[counts[0] - counts[1] : counts[0]], y.type.broadcastable
        if any(of_x and not of_y for of_x, of_y in zip(first, last, strict=False)):
            return None
        entries = [FULL] * counts[0] + list(self.entries)
        op = IncSubtensor(entries, set_instead_of_inc=self.set_instead_of_inc)
        return op.make_node(x, y, *numbers).outputs

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Return that the output depends on both tensors, not on the integers."""
        return [[True], [True], *([False] for _ in node.inputs[2:])]

    def __str__(self) -> str:
        name = "SetSubtensor" if self.set_instead_of_inc else "IncSubtensor"
        return f"{name}{{{', '.join(self.entries) or '...'}}}"

    __repr__ = __str__


def as_part(y: Any, x: TensorType) -> Any:
    """Return `y` in the dtype of `x`, part of which it replaces. Raises TypeError for a wider dtype."""
    if type(y) in (bool, int, float):
        y = number(y, weak_dtype(y, (x.dtype,)))
    y = as_tensor_variable(y)
    if common_dtype(x.dtype, y.type.dtype) != x.dtype:
        raise TypeError(f"Changing elements of {x} by {y.type}: dtype {x.dtype} is expected; cast it first")
    return cast(y, x.dtype)


def set_part(entries: Sequence[Entry], x: Any, y: Any, numbers: Sequence[Any]) -> Any:
    """Return `x` with the part that `entries` and `numbers` select set to `y`."""
    return IncSubtensor(entries, set_instead_of_inc=True).make_node(x, y, *numbers).outputs[0]
