"""Rules for the places of numbers in a sorted vector, and for convolutions."""

from __future__ import annotations

from typing import Any

from pytensor.tensor.extra_ops import SearchsortedOp
from pytensor.tensor.signal.conv import Convolve1d

import engine.tensor as pt
from engine.pytensor.scope import Rule, Scope
from engine.tensor.signal import conv


def _searchsorted(scope: Scope, node: Any, x: Any, v: Any, sorter: Any = None) -> Any:
    return pt.searchsorted(x, v, node.op.side, sorter)


def _convolved(scope: Scope, node: Any, x: Any, kernel: Any, full_mode: Any) -> Any:
    dtype = node.outputs[0].type.dtype
    return conv.Convolve1d()(pt.cast(x, dtype), pt.cast(kernel, dtype), full_mode)


RULES: dict[type, Rule] = {SearchsortedOp: _searchsorted, Convolve1d: _convolved}
