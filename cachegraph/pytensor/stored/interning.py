"""Interning of frozen nodes that distinguishes the bits of constants and the contents of user Ops.

PyTensor keeps every frozen node of a process in one table, and takes nodes for one if their constants are
equal: -0.0 is 0.0, and a NaN is any other. The same holds for nodes whose Ops are equal by their
__props__, whatever else they hold. The compiled code of a graph with such a node within an Op then depends
on what else its process has made, and a miss would store that for other processes. While the adapter is
installed, this table stands in front of PyTensor's: it holds a node whose twin has other bits, or a user
Op that differs, under a key that tells the two apart.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from pytensor.graph.basic import Constant

from cachegraph.errors import Unfingerprintable
from cachegraph.pytensor.describe.attributes import is_user_op, parts_of
from cachegraph.pytensor.describe.graphs import encode_op_alone

_NUMBERS = (np.ndarray, np.generic, float, complex)


class ExactNodes:
    """The table of frozen nodes (FrozenApply._cache), with PyTensor's own, `shared`, behind it.

    A key is (op, inputs, output types, position); a constant among the inputs is its signature, a pair of
    type and data.
    """

    def __init__(self, shared: WeakValueDictionary[Any, Any]) -> None:
        self.shared = shared
        self._twins: WeakValueDictionary[Any, Any] = WeakValueDictionary()

    def get(self, key: Any) -> Any:
        """Return the node of that key with the same bits in its constants and a like Op, or None."""
        found = self.shared.get(key)
        if found is None or (_has_bits(found, key[1]) and _is_alike(found.op, key[0])):
            return found
        return self._twins.get((key, _constant_bits(key[1]), _held(key[0])))

    def __setitem__(self, key: Any, node: Any) -> None:
        found = self.shared.get(key)
        if found is None or found is node:
            self.shared[key] = node
        else:
            self._twins[key, _constant_bits(key[1]), _held(key[0])] = node


def _has_bits(node: Any, inputs: tuple[Any, ...]) -> bool:
    return all(
        variable.data is wanted[1] or _content(variable.data) == _content(wanted[1])
        for variable, wanted in zip(node.inputs, inputs, strict=True)
        if isinstance(variable, Constant)
    )


def _constant_bits(inputs: tuple[Any, ...]) -> tuple[bytes, ...]:
    return tuple(_content(wanted[1]) for wanted in inputs if isinstance(wanted, tuple))


def _is_alike(op: Any, wanted: Any) -> bool:
    return op is wanted or _held(op) == _held(wanted)


def _held(op: Any) -> bytes:
    """Return the encoding of an Op that is a user's or holds one; empty for others, and without one."""
    if not any(is_user_op(part) for part in (op, *parts_of(op))):
        return b""
    try:
        return encode_op_alone(op)
    except Unfingerprintable:
        return b""


def _content(data: Any) -> bytes:
    """Return the bits of numbers; empty for other data, whose equality is left to PyTensor."""
    if not isinstance(data, _NUMBERS):
        return b""
    array = np.asarray(data)
    return b"" if array.dtype.hasobject else array.tobytes()
