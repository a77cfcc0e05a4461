"""State of `perform`: containers at the top of modules that an Op's `perform` fills and nothing else reaches.

A compiled program calls `perform` and stores none of its results, so it works with any content of a memo
or a counter; a key that held the content would differ in every process. But code that runs while a
function is made (`infer_shape`, `numba_function`, `make_node`, what properties compute) may reach the
same container: then what is stored depends on the content. So all of the Op but `perform` and its
derivatives, which only `grad` calls, is described once on trial. A container counts as state if

- the description does not meet it;
- nothing in the description can run `perform`: no code names it, takes attributes by computed names, or
  reaches more of the engine than what makes graphs;
- `perform` is a plain function that the description meets in its class alone.

In doubt the content stays in the key, and another content is a miss.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from types import FunctionType

from cachegraph.fingerprint.filled import containers_filled_by
from cachegraph.fingerprint.primitives import prefixed
from engine.graph.op import Op
from engine.graph.props import is_of_engine
from engine.graph.user_ops import DESCRIBED

_METHODS = ("perform", "pullback", "pushforward")
_HELD = "fn"
"""The property of an Op made from a function (from_function.py) that holds the function."""
_NAMED = 2  # the names of an Op's properties are in its encoding, and their order
_RUN = ("perform", _HELD)
_COMPUTED_NAMES = (b"getattr", b"__dict__", b"getmembers", b"attrgetter", b"methodcaller", b"eval")
_OF_ENGINE = re.compile(rb"engine[\w.]*")
_MAKES_GRAPHS = re.compile(
    rb"engine(\.from_function|\.(tensor|scalar|graph\.(op|apply|types?|variables))(\.\w+)*)?"
)
_WHOLE_ENGINE = b"M" + prefixed(b"engine")  # a module that is used as a whole: callables.py

Trial = Callable[[Op, frozenset[FunctionType]], "tuple[bytes, Counter[int]]"]
"""Returns the encoding of an Op without those functions, and how often it met each value, by `id`."""


def state_of_perform(op: Op, trial: Trial) -> list[object]:
    """Return the containers that `op.perform` fills and nothing else reaches; raises Unfingerprintable."""
    functions = _left_out(op)
    filled = containers_filled_by([each for name, each in functions if name in _RUN], DESCRIBED)
    if not filled:
        return []
    encoding, met = trial(op, frozenset(function for _, function in functions))
    if _may_run_perform(encoding, functions) or any(met[id(function)] > 1 for _, function in functions):
        return []
    return [container for container in filled if not met[id(container)]]


def _left_out(op: Op) -> list[tuple[str, FunctionType]]:
    """Return `perform` and the derivatives of each class of a user that `op` is an instance of, or the
    function that `op` was made from."""
    if is_of_engine(op):
        held = getattr(op, _HELD, None)
        return [(_HELD, held)] if isinstance(held, FunctionType) else []
    return [
        (name, method)
        for cls in type(op).__mro__
        for name in _METHODS
        if cls.__module__.partition(".")[0] not in DESCRIBED
        and isinstance(method := vars(cls).get(name), FunctionType)
    ]


def _may_run_perform(encoding: bytes, functions: list[tuple[str, FunctionType]]) -> bool:
    """Return True if what is described names one of `functions` other than by defining it, or could run it
    otherwise.

    Names in code, texts and modules are part of an encoding as they are.
    """
    defined = Counter(name for name, _ in functions)
    if any(encoding.count(name.encode()) != defined[name] for name in _METHODS):
        return True
    if _HELD in defined and encoding.count(prefixed(_HELD.encode())) > _NAMED:
        return True
    if _WHOLE_ENGINE in encoding or any(name in encoding for name in _COMPUTED_NAMES):
        return True
    return not all(_MAKES_GRAPHS.fullmatch(found) for found in _OF_ENGINE.findall(encoding))
