"""Pickles of the contents of a stored graph, which cachegraph.pickling loads.

They refer to external objects by number: see externals.py. They leave out what an Op has cached since it
was made, and the functions that give its gradient: a compiled function uses neither.
"""

from __future__ import annotations

import copyreg
import io
import pickle
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from pytensor.compile.builders import OpFromGraph
from pytensor.compile.inner_function import HasInnerFunction
from pytensor.graph.basic import FrozenApply
from pytensor.graph.fg import FrozenFunctionGraph
from pytensor.graph.op import Op
from pytensor.tensor.elemwise import CAReduce

from cachegraph.pickling.rebuilding import rebuilds_pickled
from cachegraph.pytensor.describe.attributes import is_user_op
from cachegraph.pytensor.describe.graphs import encode_op_alone
from cachegraph.pytensor.errors import Unstorable
from cachegraph.pytensor.stored.externals import LOST, NOT_USER_CLASSES

_FORGOTTEN = ("_rop_op_cache", "_frozen_lop", "_frozen_rop")
_REDUCERS = ("__reduce_ex__", "__reduce__", "__getstate__")
"""The methods of object that pickle an instance, unless its class overrides them."""

_new_object: Any = copyreg.__newobj__  # type: ignore[attr-defined]

_COMPUTED_AGAIN = ("_inner_shape_template", "_inner_shape_frozen")
_OVERRIDES = {"pullback_overrides": "_frozen_lop", "pushforward_overrides": "_frozen_rop"}
"""Attribute of an OpFromGraph -> the attribute by which it is compared."""


def dumps(value: object, external: Sequence[object]) -> bytes:
    """Return `value` pickled, with objects of `external` by number; raises what pickle raises."""
    file = io.BytesIO()
    _Pickler(file, external).dump(value)
    return file.getvalue()


def held_graphs(ops: Sequence[Any], external: Sequence[object]) -> list[Any]:
    """Return the frozen graphs that `ops` hold themselves; raises what pickle raises."""
    finder = _Finder(external)
    finder.dump(ops)
    return finder.graphs


@rebuilds_pickled
def rebuild(cls: Any, state: Any) -> Any:
    """Return an instance of a user's class, as pickle would make it of its state."""
    made = cls.__new__(cls)
    if hasattr(made, "__setstate__"):
        made.__setstate__(state)
    elif state is not None:
        made.__dict__.update(state)
    return made


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, external: Sequence[object]) -> None:
        super().__init__(file, protocol=5)
        self._numbers = {id(item): number for number, item in enumerate(external)}
        self._users = [item for item in external if isinstance(item, Op) and is_user_op(item)]

    def persistent_id(self, obj: Any) -> int | None:
        number = self._numbers.get(id(obj))
        if number is None and self._users and isinstance(obj, Op) and is_user_op(obj):
            return self._described.get(encode_op_alone(obj))
        return number

    @cached_property
    def _described(self) -> dict[bytes, int]:
        """The numbers of user Ops by their encodings; an equal encoding means that Op."""
        return {encode_op_alone(op): self._numbers[id(op)] for op in self._users}

    def reducer_override(self, obj: Any) -> Any:
        cls: Any = type(obj)
        if id(cls) in self._numbers and cls not in NOT_USER_CLASSES:
            return rebuild, (cls, _state_of(obj))
        if isinstance(obj, HasInnerFunction | CAReduce) and all(
            getattr(cls, n) is getattr(object, n) for n in _REDUCERS
        ):
            return _new_object, (cls,), _without_caches(obj, dict(obj.__dict__))
        return NotImplemented


class _Finder(_Pickler):
    """A pickler that writes nothing and collects the frozen graphs that it reaches."""

    def __init__(self, external: Sequence[object]) -> None:
        super().__init__(io.BytesIO(), external)
        self.graphs: list[Any] = []

    def persistent_id(self, obj: object) -> int | None:
        if isinstance(obj, FrozenFunctionGraph):
            self.graphs.append(obj)
            return 0
        # Ops hold variables of their frozen graphs, too.
        if isinstance(getattr(obj, "owner", None), FrozenApply):
            return 0
        return super().persistent_id(obj)


def _state_of(obj: Any) -> Any:
    cls: Any = type(obj)
    if any(getattr(cls, name) is not getattr(object, name) for name in _REDUCERS[:2]):
        raise Unstorable(
            f"an instance of {cls.__module__}.{cls.__qualname__}, which pickles in a way of its own"
        )
    state = obj.__getstate__()
    if not isinstance(state, dict | None) and not hasattr(obj, "__setstate__"):
        raise Unstorable(f"an instance of {cls.__module__}.{cls.__qualname__}, which has slots")
    return _without_caches(obj, dict(state)) if isinstance(obj, HasInnerFunction | CAReduce) else state


def _without_caches(op: Any, state: dict[str, Any]) -> dict[str, Any]:
    if isinstance(op, CAReduce):
        state.pop("_ufunc", None)  # cached for perform
        return state
    state["_fn"] = None
    if not isinstance(op, OpFromGraph):
        return state
    state.update(dict.fromkeys(_FORGOTTEN))
    state["_lop_op_cache"] = {}  # one for each Op: a pickle would make one dict of several that are the same
    for name in _COMPUTED_AGAIN:
        state.pop(name, None)
    for name, compared in _OVERRIDES.items():
        if state.get(name) is not None:
            state[name] = state[compared] = LOST
    return state
