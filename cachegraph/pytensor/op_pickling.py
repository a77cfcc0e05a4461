"""Pickles of what a stored graph holds, written so that cachegraph.pickling loads them.

They name external objects by number: see externals.py. What an Op has computed for itself since it was made, and the
functions that give its gradient, are left out: they are no part of what a compiled function computes.
"""

from __future__ import annotations

import copyreg
import io
import pickle
from collections.abc import Sequence
from typing import Any

from pytensor.compile.builders import OpFromGraph
from pytensor.compile.inner_function import HasInnerFunction
from pytensor.graph.basic import FrozenApply
from pytensor.graph.fg import FrozenFunctionGraph

from cachegraph.pytensor.externals import LOST

_FORGOTTEN: dict[str, Any] = {
    "_lop_op_cache": {},
    "_rop_op_cache": None,
    "_frozen_lop": None,
    "_frozen_rop": None,
}
_REDUCERS = ("__reduce_ex__", "__reduce__", "__getstate__")
"""The methods of object that pickle an instance, unless its class has its own."""

_new_object: Any = copyreg.__newobj__  # type: ignore[attr-defined]

_COMPUTED_AGAIN = ("_inner_shape_template", "_inner_shape_frozen")
_OVERRIDES = {"pullback_overrides": "_frozen_lop", "pushforward_overrides": "_frozen_rop"}
"""Attribute of an OpFromGraph -> where it keeps what it compares the attribute by."""


def dumps(value: object, external: Sequence[object]) -> bytes:
    """`value` pickled, the objects of `external` named by their number; raises what pickle raises."""
    file = io.BytesIO()
    _Pickler(file, external).dump(value)
    return file.getvalue()


def held_graphs(ops: Sequence[Any], external: Sequence[object]) -> list[Any]:
    """The frozen graphs that `ops` hold themselves; raises what pickle raises for an Op that cannot be pickled."""
    finder = _Finder(external)
    finder.dump(ops)
    return finder.graphs


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, external: Sequence[object]) -> None:
        super().__init__(file, protocol=5)
        self._numbers = {id(item): number for number, item in enumerate(external)}

    def persistent_id(self, obj: object) -> int | None:
        return self._numbers.get(id(obj))

    def reducer_override(self, obj: Any) -> Any:
        cls: Any = type(obj)
        if isinstance(obj, HasInnerFunction) and all(
            getattr(cls, n) is getattr(object, n) for n in _REDUCERS
        ):
            return _new_object, (cls,), _without_caches(obj, dict(obj.__dict__))
        return NotImplemented


class _Finder(_Pickler):
    """Pickles into nothing, and keeps the frozen graphs that it meets."""

    def __init__(self, external: Sequence[object]) -> None:
        super().__init__(io.BytesIO(), external)
        self.graphs: list[Any] = []

    def persistent_id(self, obj: object) -> int | None:
        if isinstance(obj, FrozenFunctionGraph):
            self.graphs.append(obj)
            return 0
        # Ops hold variables of their graphs, too.
        if isinstance(getattr(obj, "owner", None), FrozenApply):
            return 0
        return super().persistent_id(obj)


def _without_caches(op: Any, state: dict[str, Any]) -> dict[str, Any]:
    state["_fn"] = None
    if not isinstance(op, OpFromGraph):
        return state
    state.update(_FORGOTTEN)
    for name in _COMPUTED_AGAIN:
        state.pop(name, None)
    for name, compared in _OVERRIDES.items():
        if state.get(name) is not None:
            state[name] = state[compared] = LOST
    return state
