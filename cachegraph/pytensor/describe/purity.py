"""A check that code of others which runs before a function is stored depends on nothing outside its key.

Such code must not read files, clocks or random state. Rewriting and linking run it: methods of user Ops
that rewrites call, `perform` of Ops that are folded, rewrites and rules that others registered, and
functions that give an Op's code for numba. It is analysed (fingerprint/external_state.py) before something
is stored. A hit needs no analysis: its code is in the key, and was analysed when the entry was stored. Nor
does code of installed releases: name and version describe it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import FunctionType
from typing import Any

from pytensor.graph.op import Op

from cachegraph.fingerprint.external_state import refuse_external_state
from cachegraph.fingerprint.origin import origin_of
from cachegraph.pytensor.describe.attributes import is_of_host, is_user_op, state_of, with_parts
from cachegraph.pytensor.describe.host_packages import HOST_PACKAGES
from cachegraph.pytensor.describe.registries import registered_by_others
from cachegraph.pytensor.describe.rewrites import parts_of_rewriter

_RUNNING = frozenset(
    ("perform", "impl", "make_thunk", "make_py_thunk", "nfunc_spec", "rng_fn", "prepare_node")
)
"""Methods of an Op that run when it is folded; otherwise when the function is called."""
_GRADIENTS = frozenset(
    (
        *("grad", "L_op", "R_op", "pullback", "pushforward"),
        *("connection_pattern", "grad_overrides", "rop_overrides"),
    )
)
"""Methods that have run before a graph is compiled."""
_ASKED = frozenset(("infer_shape", "inplace_on_inputs"))
"""Methods that PyTensor calls if an Op has them."""
_SHOWN = frozenset(("__init__", "__repr__", "__str__", "__hash__", "__eq__", "__getstate__", "__setstate__"))


def refuse_external_reads(ops: Iterable[Any], folded: Iterable[Any], rewriters: Iterable[Any]) -> None:
    """Raise Unfingerprintable if code of users that was run may read what lies outside of code and values.

    `ops` were rewritten and are to be linked, `folded` was run on the way, and `rewriters` of others took
    part.
    """
    ops = with_parts(ops)
    for op in filter(is_user_op, ops):
        _look_through(op, lambda name: name not in _RUNNING)
    for op in filter(is_user_op, with_parts(folded)):
        _look_through(op, lambda name: True)
    for rewriter in rewriters:
        for part in parts_of_rewriter(rewriter):
            _look_through(part, lambda name: True)
    classes = {type(op) for op in ops}
    for subject, function in registered_by_others():
        of_op = isinstance(subject, type) and issubclass(subject, Op)
        is_met = not of_op or any(subject in cls.__mro__ for cls in classes)
        if is_met and _is_followed(function):
            refuse_external_state([function], {}, HOST_PACKAGES)


def _look_through(item: Any, counts: Callable[[str], bool]) -> None:
    """Refuse a function, or the methods of `item` that count, if they may read outside state."""
    if isinstance(item, FunctionType):
        refuse_external_state([item], {}, HOST_PACKAGES)
        return
    held = state_of(item)
    methods = [
        part for name in _methods(type(item)) if counts(name) for part in _wrapped(getattr(item, name))
    ]
    functions = [value for value in held.values() if callable(value) and _is_followed(value)]
    refuse_external_state([*methods, *(functions if counts("perform") else ())], held, HOST_PACKAGES)


def _wrapped(method: Any) -> Iterator[Any]:
    """Yield `method`, and the function within it if PyTensor wrapped one written for an older release."""
    yield method
    for given in getattr(method, "__defaults__", None) or ():
        if isinstance(given, FunctionType):
            yield given


def _methods(cls: type) -> set[str]:
    """Return the names of user-written methods of `cls` that PyTensor calls while compiling.

    For a class that derives from nothing of PyTensor's these are all methods.
    """
    asked = {name for base in cls.__mro__ if is_of_host(base) for name in vars(base)}
    found = {
        name
        for base in cls.__mro__
        if _is_followed(base)
        for name, item in vars(base).items()
        if isinstance(item, FunctionType | classmethod | staticmethod)
    }
    return (found & (asked | _ASKED) if asked else found) - _GRADIENTS - _SHOWN


def _is_followed(item: Any) -> bool:
    """Return True if a class or function belongs to no release, and to neither PyTensor nor PyMC."""
    home = item.__globals__.get("__name__") if isinstance(item, FunctionType) else None
    module = home or getattr(item, "__module__", None) or type(item).__module__
    return not isinstance(module, str) or origin_of(module, HOST_PACKAGES) == "followed"
