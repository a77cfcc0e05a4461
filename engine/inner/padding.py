"""`pad`, numpy's, and its Op. The Op's graph replaces it when a function is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from engine.graph.variables import Constant, Variable
from engine.inner.named_op import NamedOp
from engine.scalar.promotion import INTEGERS
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.padding import OPTIONS, Pairs, padded
from engine.tensor.rearranging import broadcast_to

if TYPE_CHECKING:
    from engine.tensor.variable import TensorVariable

Known = tuple[tuple[int | None, int | None], ...]


class Pad(NamedOp):
    """A tensor with elements around it, by the mode `pad_mode`.

    `known_widths` has, for each axis, how many are before and after it; those that are None are inputs
    after the tensor. Then follow a value for each side of each axis, if the mode takes some.
    """

    __props__ = (*(NamedOp.__props__ or ()), "pad_mode", "known_widths")

    def __init__(self, pad_mode: str, known_widths: Known) -> None:
        super().__init__()
        self.pad_mode = pad_mode
        self.known_widths = known_widths

    def build_inner_graph(self, *inputs: Any) -> list[Any]:
        x, *others = inputs
        rest = iter(others)

        def width(known: int | None) -> Any:
            return next(rest) if known is None else known

        widths = [(width(before), width(after)) for before, after in self.known_widths]
        left = list(rest)
        values = zip(left[::2], left[1::2], strict=True) if left else [(None, None)] * x.type.ndim
        return [padded(x, self.pad_mode, widths, list(values))]

    def __str__(self) -> str:
        return f"Pad{{{self.pad_mode}}}"

    __repr__ = __str__


def pad(
    x: Any,
    pad_width: Any,
    mode: str = "constant",
    *,
    constant_values: Any = None,
    end_values: Any = None,
    stat_length: Any = None,
    reflect_type: str | None = None,
) -> TensorVariable:
    """Return `x` with elements before and after along each axis.

    `pad_width` is a number, a pair (before, after) for all axes, or a pair for each axis. The elements are
    `constant_values` (default 0), given like the widths; or, by `mode`, those at the edge ("edge"), of the
    other side ("wrap"), mirrored at the edge with it ("symmetric") or without it ("reflect"), even steps
    from the edge to `end_values` ("linear_ramp"), or the "maximum", "minimum" or "mean" along the axis, of
    the nearest `stat_length` elements if given. Raises ValueError for other modes, for options that the
    mode does not have, and for a negative width that is known; TypeError for widths that are no integers;
    and NotImplementedError for the mode "median" and odd reflections.
    """
    given = {
        "constant_values": constant_values,
        "end_values": end_values,
        "stat_length": stat_length,
        "reflect_type": reflect_type,
    }
    _check_options(mode, {name for name, value in given.items() if value is not None})
    if reflect_type not in (None, "even"):
        raise NotImplementedError(f"Padding: reflect_type {reflect_type!r} is not there; 'even' is")
    x = as_tensor_variable(x)
    known, widths = _widths(pad_width, x.type.ndim)
    values = next((given[name] for name in OPTIONS[mode] if name != "reflect_type"), None)
    if values is None and mode in ("constant", "linear_ramp"):
        values = 0
    pairs = [] if values is None else _pairs(values, x.type.ndim)
    return Pad(mode, known)(x, *widths, *[value for pair in pairs for value in pair])


def _check_options(mode: str, given: set[str]) -> None:
    if mode == "median":
        raise NotImplementedError("Padding: the mode 'median' is not there")
    if mode not in OPTIONS:
        raise ValueError(f"Padding: Invalid mode: {mode}; it must be one of {', '.join(OPTIONS)}")
    if given - OPTIONS[mode]:
        raise ValueError(
            f"Padding: Invalid keyword arguments for mode '{mode}': {sorted(given - OPTIONS[mode])}; it "
            f"takes {sorted(OPTIONS[mode])}"
        )


def _widths(given: Any, ndim: int) -> tuple[Known, list[Any]]:
    """Return the widths that are known now, for each axis, and the others in order."""
    pairs = _pairs(given, ndim)
    widths = [width for pair in pairs for width in pair]
    if any(width.type.dtype not in INTEGERS for width in widths):
        raise TypeError(f"Padding {ndim} axes by {given!r}: a width must be of integral type")
    known = tuple([(_known(before), _known(after)) for before, after in pairs])
    if any(width is not None and width < 0 for pair in known for width in pair):
        raise ValueError(f"Padding {ndim} axes by {given!r}: a width is negative")
    return known, [width for width in widths if not isinstance(width, Constant)]


def _known(width: Any) -> int | None:
    return int(width.data) if isinstance(width, Constant) else None


def _pairs(given: Any, ndim: int) -> Pairs:
    """Return a pair of 0-d variables for each axis: what `given` has, broadcast to shape (ndim, 2)."""
    if isinstance(given, Variable) and not isinstance(given, Constant):
        rows = broadcast_to(given, (ndim, 2))
        return [(rows[axis, 0], rows[axis, 1]) for axis in range(ndim)]
    items = np.asarray(given.data) if isinstance(given, Constant) else np.array(given, dtype=object)
    try:
        spread = np.broadcast_to(items, (ndim, 2))
    except ValueError as error:
        raise ValueError(
            f"Padding {ndim} axes by {given!r}: give a number, a pair, or a pair for each axis"
        ) from error
    return [(as_tensor_variable(before), as_tensor_variable(after)) for before, after in spread]
