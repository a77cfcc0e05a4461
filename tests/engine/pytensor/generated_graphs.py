"""Random graphs of PyTensor's: many dtypes, ranks 0 to 3, lengths from 0, ordinary or extreme values."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.graph.basic import Constant
from pytensor.tensor.basic import AllocEmpty
from pytensor.tensor.subtensor import AdvancedIncSubtensor, AdvancedSubtensor, IncSubtensor
from pytensor.tensor.type import TensorType

FLOATS = ("float64", "float32")
DTYPES = (*FLOATS, *FLOATS, "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "bool")
EXTREME = (0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan, 1e308, -1e308, 5e-324, -1e-310, 1e16, 710.0)
SMOOTH = (
    "exp expm1 log log1p sqrt tanh sigmoid softplus sin cos arctan erf erfc gammaln log2 log10 exp2 arcsinh "
    "sinh cosh arcsin psi log1mexp"
).split()
EXACT = "neg abs sqr reciprocal floor ceil trunc round sign isnan isinf".split()
BINARY = "add sub mul true_div maximum minimum int_div mod pow lt le gt ge eq neq and_ or_ xor".split()
MOST_ELEMENTS = 200


def performed(node: Any, values: Sequence[Any]) -> list[np.ndarray]:
    """What PyTensor's own `perform` of a node makes of `values`."""
    if isinstance(node.op, AdvancedIncSubtensor):
        x, y, *indices = node.inputs
        added = _with_all_dims(node, values)
        shape = (*added.shape[: added.ndim - y.type.ndim], *y.type.shape)
        node = node.op.make_node(x, TensorType(y.type.dtype, shape)(), *indices)
        values = [values[0], added, *values[2:]]
    cells = {v: [value] for v, value in zip(node.inputs, values, strict=True)}
    cells |= {v: [None] for v in node.outputs}
    thunk = node.op.make_thunk(node, cells, {v: [True] for v in cells}, [], impl="py")
    thunk()
    # CumOp's gives int64 for a variable that it says is a smaller integer.
    return [np.asarray(cells[v][0]).astype(v.type.dtype) for v in node.outputs]


def _with_all_dims(node: Any, values: Sequence[Any]) -> np.ndarray:
    """Return what is added at an index with as many dims as what it selects.

    numpy's `add.at` (2.4, 2.5) reads what lies behind a vector that it has to broadcast to a matrix.
    """
    x, _, *indices = node.inputs
    read = AdvancedSubtensor(node.op.idx_list).make_node(x, *indices)
    selected = performed(read, [values[0], *values[2:]])[0]
    added = np.asarray(values[1])
    return np.broadcast_to(added, (*selected.shape[: selected.ndim - added.ndim], *added.shape)).copy()


class GeneratedGraph:
    """A graph that grows: `inputs` and then `made`, in order, with the `values` that performs give.

    `is_exact` says that no variable is rounded, so that rewriting it may not change a number.
    """

    def __init__(self, numbers: random.Random, extreme: bool) -> None:
        self.numbers, self.extreme = numbers, extreme
        self.inputs: list[Any] = []
        self.made: list[Any] = []
        self.values: dict[Any, np.ndarray] = {}
        self.is_exact = True
        for _ in range(numbers.randint(1, 3)):
            self._add_input()

    def grow(self, count: int) -> None:
        """Add `count` results, and the variables between them."""
        kinds = [
            self._unary, self._binary, self._binary, self._cast, self._switch, self._reduced, self._axes,
            self._reshaped, self._sliced, self._changed, self._gathered, self._joined, self._ordered,
            self._product, self._loop, self._second,
        ]  # fmt: skip
        while len(self.made) < count:
            try:
                result = self.numbers.choice(kinds)()
            except (TypeError, ValueError, IndexError, NotImplementedError):
                continue  # PyTensor refuses it when it is written
            if result is not None:
                self._add(result)

    def _add_input(self) -> None:
        numbers = self.numbers
        dtype, rank = numbers.choice(DTYPES), numbers.choice([0, 1, 1, 2, 2, 3])
        shape = tuple(numbers.choice([0, 1, 1, 2, 3, 3, 5]) for _ in range(rank))
        all_free = numbers.random() < 0.3
        static = [None if all_free or (n != 1 and numbers.random() < 0.6) else n for n in shape]
        variable = pt.tensor(f"x{len(self.inputs)}", dtype=dtype, shape=tuple(static))
        self.inputs.append(variable)
        self.values[variable] = self._value(dtype, shape)

    def _value(self, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
        rng = np.random.default_rng(self.numbers.randrange(2**32))
        if dtype == "bool":
            return rng.integers(0, 2, shape).astype(bool)
        if dtype not in FLOATS:
            limits = np.iinfo(dtype)
            if self.extreme:
                few = [limits.min, limits.max, 0, 1, limits.max - 1]
                return np.array(rng.choice(few, shape), dtype)
            return rng.integers(max(limits.min, -5), 6, shape).astype(dtype)
        return np.array(rng.choice(EXTREME, shape) if self.extreme else rng.normal(size=shape), dtype)

    def _add(self, result: Any) -> None:
        """Add a variable and those that it is computed from, unless it is too large or raises."""
        order = [v for v in pytensor.graph.traversal.ancestors([result]) if v.owner is not None]
        new = [v for v in reversed(order) if v not in self.values]
        before = dict(self.values)
        try:
            for variable in sorted(new, key=lambda v: _depth(v)):
                node = variable.owner
                given = [v.data if isinstance(v, Constant) else self.values[v] for v in node.inputs]
                self.values[variable] = performed(node, given)[node.outputs.index(variable)]
        except (ValueError, IndexError, TypeError, ZeroDivisionError, OverflowError, AssertionError):
            self.values = before
            return
        if any(self.values[v].size > MOST_ELEMENTS for v in new):
            self.values = before
            return
        self.made += [v for v in sorted(new, key=_depth) if not _is_open(v)]

    def _pick(self, rank: int = 0, dtypes: Sequence[str] = DTYPES) -> Any:
        """A variable of at least that rank, or None."""
        known = [v for v in [*self.inputs, *self.made] if isinstance(v.type, TensorType)]
        found = [v for v in known if v.type.ndim >= rank and v.type.dtype in dtypes]
        return self.numbers.choice(found) if found else None

    def _unary(self) -> Any:
        x = self._pick()
        name = self.numbers.choice([*SMOOTH, *EXACT])
        if name in SMOOTH:
            self.is_exact = False
        if x is None or x.type.dtype == "bool":
            return None
        return getattr(pt, name)(x)

    def _binary(self) -> Any:
        name = self.numbers.choice(BINARY)
        integers = [d for d in DTYPES if d not in FLOATS]
        bits = name in ("and_", "or_", "xor")
        x, y = (self._pick(dtypes=integers if bits else DTYPES) for _ in range(2))
        if (
            x is None
            or y is None
            or (name in ("sub", "int_div", "mod", "pow") and "bool" in (x.dtype, y.dtype))
        ):
            return None
        if name == "pow":
            self.is_exact = False
        return getattr(pt, name)(x, y)

    def _cast(self) -> Any:
        x, dtype = self._pick(), self.numbers.choice(DTYPES)
        # What C makes of a float that no integer is near depends on the machine.
        unsure = x is not None and x.type.dtype in FLOATS and dtype not in FLOATS and dtype != "bool"
        if unsure:
            x = pt.clip(pt.switch(pt.isnan(x), 0, x), 0, 100)
        return None if x is None else pt.cast(x, dtype)

    def _switch(self) -> Any:
        condition, x, y = self._pick(), self._pick(), self._pick()
        return pt.switch(condition, x, y)

    def _second(self) -> Any:
        return pt.second(self._pick(), self._pick())

    def _axis(self, x: Any) -> Any:
        axes = list(range(x.type.ndim))
        kept = self.numbers.sample(axes, self.numbers.randint(1, len(axes)))
        return self.numbers.choice([None, tuple(kept), kept[0]])

    def _reduced(self) -> Any:
        x = self._pick(1)
        if x is None:
            return None
        name = self.numbers.choice(["sum", "prod", "max", "min", "all", "any", "argmax", "argmin", "mean"])
        if name in ("sum", "prod", "mean"):
            self.is_exact = False
        if name in ("mean", "max", "min", "argmax", "argmin") and x.type.dtype == "bool":
            return None
        axis = self._axis(x)
        if name in ("sum", "mean", "prod") and self.extreme and x.type.dtype in FLOATS:
            return None  # the order of terms decides what overflows
        return getattr(pt, name)(x, axis=axis, keepdims=self.numbers.random() < 0.3)

    def _axes(self) -> Any:
        x = self._pick()
        order: list[Any] = list(range(x.type.ndim))
        self.numbers.shuffle(order)
        order = [axis for axis in order if not x.type.broadcastable[axis] or self.numbers.random() < 0.5]
        for _ in range(self.numbers.choice([0, 0, 1])):
            order.insert(self.numbers.randint(0, len(order)), "x")
        return x.dimshuffle(*order) if len(order) < 5 else None

    def _reshaped(self) -> Any:
        x = self._pick()
        size = self.values[x].size
        shapes = [(-1,), (size,), (1, size), (size, 1), (2, -1), (-1, 3), (1, -1, 1)]
        return pt.reshape(x, self.numbers.choice(shapes))

    def _slice(self, length: int) -> slice:
        places = [None, None, 0, 1, -1, 2, -2, length, length + 2, -length - 1]
        start, stop = self.numbers.choice(places), self.numbers.choice(places)
        if self.numbers.random() < 0.3 and start is not None:
            start = pt.as_tensor(np.int64(start)) * 1
        return slice(start, stop, self.numbers.choice([None, None, 1, 2, -1, -2]))

    def _index(self, x: Any) -> tuple[Any, ...]:
        items: list[Any] = []
        for length in self.values[x].shape[: self.numbers.randint(1, x.type.ndim)]:
            place = self.numbers.randrange(-length, length) if length else 0
            items.append(self.numbers.choice([place, self._slice(length), self._slice(length)]))
        return tuple(items)

    def _sliced(self) -> Any:
        x = self._pick(1)
        return None if x is None else x[self._index(x)]

    def _gather_index(self, x: Any) -> tuple[Any, ...]:
        length = self.values[x].shape[0]
        if self.numbers.random() < 0.3:
            return (x > 0,) if self.numbers.random() < 0.5 else (pt.as_tensor(np.arange(length) % 2 == 0),)
        shape = self.numbers.choice([(0,), (1,), (4,), (2, 2)])
        places = [
            self.numbers.randrange(-length, length) if length else 0 for _ in range(int(np.prod(shape)))
        ]
        index = pt.as_tensor(np.array(places, dtype=self.numbers.choice(["int8", "int64"])).reshape(shape))
        rest = (self._slice(3),) if x.type.ndim > 1 and self.numbers.random() < 0.3 else ()
        return (index, *rest)

    def _gathered(self) -> Any:
        x = self._pick(1)
        return None if x is None else x[self._gather_index(x)]

    def _changed(self) -> Any:
        x = self._pick(1)
        if x is None:
            return None
        part = x[self._index(x) if self.numbers.random() < 0.5 else self._gather_index(x)]
        y = self._pick()
        if y.type.ndim > part.type.ndim or (y.type.dtype != x.type.dtype and self.numbers.random() < 0.7):
            y = pt.as_tensor(self._value(x.type.dtype, ()))
        return pt.set_subtensor(part, y) if self.numbers.random() < 0.5 else pt.inc_subtensor(part, y)

    def _joined(self) -> Any:
        x = self._pick(1)
        if x is None:
            return None
        axis = self.numbers.randrange(x.type.ndim)
        others = [v for v in self.made if isinstance(v.type, TensorType) and v.type.ndim == x.type.ndim]
        return pt.join(axis, x, self.numbers.choice([x, *others]), x)

    def _ordered(self) -> Any:
        x = self._pick(1)
        if x is None or x.type.dtype == "bool":
            return None
        axis = self.numbers.randrange(x.type.ndim)
        name = self.numbers.choice(["sort", "argsort", "cumsum", "cumprod"])
        if name.startswith("cum"):
            self.is_exact = False
        return (
            pt.argsort(x, axis=axis, kind="stable") if name == "argsort" else getattr(pt, name)(x, axis=axis)
        )

    def _product(self) -> Any:
        x, y = self._pick(1, FLOATS), self._pick(1, FLOATS)
        self.is_exact = False
        if x is None or self.extreme or x.type.ndim > 2 or y.type.ndim > 2:
            return None
        return pt.dot(x, y)

    def _loop(self) -> Any:
        x = self._pick(1, ("float64",))
        if x is None or self.extreme:
            return None
        self.is_exact = False
        start = pt.zeros_like(x[0]) if self.values[x].shape[0] else None
        if start is None:
            return None
        kind = self.numbers.randrange(3)
        step = [
            lambda row, state: pt.tanh(state + row),
            lambda row, state: 0.5 * state - row,
            lambda row, state: pt.switch(row > 0, state, row),
        ][kind]
        return pytensor.scan(step, sequences=[x], outputs_info=[start], return_updates=False)


def _is_open(variable: Any) -> bool:
    """True for new memory, also with a part of it filled."""
    node = variable.owner
    while node is not None and isinstance(node.op, IncSubtensor):
        node = node.inputs[0].owner
    return node is not None and isinstance(node.op, AllocEmpty)


def _depth(variable: Any) -> int:
    node = variable.owner
    return 0 if node is None else 1 + max((_depth(v) for v in node.inputs), default=0)
