"""The compiled code of single Ops, which functions share, in the store instead of PyTensor's directory.

PyTensor has numba keep the code of each Op under a key made of the Op's class name and its properties. It
contains neither a version nor the code of the class or of its numba function, so another definition of the
same name gets the code of the first. Code that is linked into a stored function must be sound: while
PyTensor links and numba compiles, its keys are completed by the encoding of the Op. An Op without an
encoding is compiled every time, and so is a user Op that changed between its linking and its compiling.
"""

# mypy: disable-error-code="no-untyped-call,attr-defined"
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, update_wrapper
from typing import Any

from numba.core import dispatcher as numba_dispatcher
from numba.core.caching import NullCache
from numba.core.compiler_lock import global_compiler_lock
from pytensor.configdefaults import config
from pytensor.graph.basic import Constant
from pytensor.graph.op import Op

from cachegraph.errors import SourceError, Unfingerprintable
from cachegraph.fingerprint.encoding import encode
from cachegraph.fingerprint.primitives import strong_digest
from cachegraph.logger import logger
from cachegraph.numba_cache.entries import OverloadEntries
from cachegraph.numba_cache.overloads import StoredOverloads
from cachegraph.pytensor.describe.basis import Basis
from cachegraph.pytensor.describe.flags import flags_in_key
from cachegraph.pytensor.describe.graphs import encoding_context
from cachegraph.pytensor.describe.host_packages import HOST_PACKAGES, encode_host_code
from cachegraph.pytensor.describe.registries import PYTENSOR, encode_registrations, is_of
from cachegraph.pytensor.describe.tags import encode_notes
from cachegraph.pytensor.describe.values import encode_constant, encode_op, encode_type

VERSION = 2
_COMPLETE = "cachegraph:"
_BASES = "_cachegraph_bases"

_depth = 0
_fresh: list[tuple[StoredOverloads, Any, Any]] | None = None


@contextmanager
def storing_op_code() -> Iterator[None]:
    """Keep in the store the code of Ops that PyTensor links and numba compiles meanwhile, in any thread."""
    from pytensor.link.numba.dispatch import basic

    global _depth
    with global_compiler_lock:
        before = basic.numba_funcify_and_cache_key, numba_dispatcher.FunctionCache
        if not _depth:
            basic.numba_funcify_and_cache_key = _completing(before[0])
            numba_dispatcher.FunctionCache = _caching(before[1])
        _depth += 1
        try:
            yield
        finally:
            _depth -= 1
            if not _depth:
                basic.numba_funcify_and_cache_key, numba_dispatcher.FunctionCache = before


@contextmanager
def fresh_op_code() -> Iterator[list[tuple[StoredOverloads, Any, Any]]]:
    """Have no code of Ops read from or written to the store meanwhile.

    Yields a list of what is compiled instead: the cache of the overloads, the signature, and numba's
    CompileResult.
    """
    global _fresh
    with global_compiler_lock:
        before, _fresh = _fresh, []
        try:
            yield _fresh
        finally:
            _fresh = before


def _completing(funcify: Any) -> Any:
    """Return PyTensor's `funcify`, which gives the function of an Op and its key, with the keys completed."""
    described = cache(_surroundings)  # once per linking

    def completed(op: Any, *args: Any, node: Any = None, **kwargs: Any) -> Any:
        function, key = funcify(op, *args, node=node, **kwargs)
        if key is None or not isinstance(op, Op) or node is None:
            return function, key
        return function, _completed(function, key, op, node, described)

    return update_wrapper(completed, funcify)


def _surroundings(by_others: bool) -> bytes | None:
    """Return the encoding of what Ops are compiled by: PyTensor, its flags, registrations of others; None if
    there is none.

    `by_others` says that the Op contains code by others than PyTensor and PyMC, which reaches all that is
    registered.
    """
    context = encoding_context()
    context.foreign += by_others
    try:
        registrations = encode_registrations(context)
        return encode((VERSION, registrations, flags_in_key(config), encode_host_code()))
    except (Unfingerprintable, SourceError) as error:
        logger("cachegraph").info("no code of single Ops is kept: %s", error)
        return None


def _completed(
    function: Any, key: str, op: Any, node: Any, surroundings_of: Callable[[bool], bytes | None]
) -> str:
    """Return PyTensor's `key` of `function` completed; unchanged if the Op has no encoding: its code is then
    not kept.

    A function of others also gets the basis that tells whether the key still holds.
    """
    context = encoding_context()
    try:
        types = [encode_type(variable.type, context) for variable in (*node.inputs, *node.outputs)]
        written = encode_op(op, context)
        is_by_types = not context.code and _is_compiled_by_types(op)
        read = () if is_by_types else _constants(node)
        constants = [(position, encode_constant(variable, context)) for position, variable in read]
        notes = b"" if is_by_types else encode_notes(node.inputs, (), [node], context)
        surroundings = surroundings_of(context.by_others)
        if surroundings is None:
            return key
        described = encode((key, written, types, constants, notes, surroundings))
        completed = _COMPLETE + strong_digest(described).hex()
        if not is_by_types:
            vars(function).setdefault(_BASES, {})[completed] = Basis(context)
    except Unfingerprintable as error:
        logger("cachegraph").debug("the code of %s is not kept by itself: %s", op, error)
        return key
    return completed


def _is_compiled_by_types(op: Any) -> bool:
    """Return True if the code for `op`, an Op of a release, depends on types and on no constant.

    This holds for PyTensor's own functions, as a test finds in their source: all else that they read is in
    PyTensor's keys. Otherwise its Ops would be compiled again for each number that they multiply by or index
    with.
    """
    from pytensor.link.numba.dispatch import basic

    names = ("numba_funcify_and_cache_key", "numba_funcify_default_op_cache_key", "numba_funcify")
    return all(is_of(PYTENSOR, getattr(basic, name).dispatch(type(op))) for name in names)


def _constants(node: Any) -> Iterator[tuple[int, Any]]:
    return ((place, variable) for place, variable in enumerate(node.inputs) if isinstance(variable, Constant))


def _caching(file_cache: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return numba's `file_cache` changed: of PyTensor's functions, only completed keys have a cache."""
    from pytensor.link.numba.cache import CACHED_SRC_FUNCTIONS

    recent: dict[Any, Any] = {}

    def kept(function: Any) -> Any:
        key = CACHED_SRC_FUNCTIONS.get(function)
        if key is None:
            return file_cache(function)
        if not key.startswith(_COMPLETE):
            return NullCache()
        return _OpOverloads(function, key, _basis_of(function, key), recent)

    return kept


def _basis_of(function: Any, key: str) -> Basis | None:
    """Return the basis of `key`, for a function by others that PyTensor has wrapped in `function`."""
    bases = getattr(function.__globals__.get("jitable_func"), _BASES, {})
    found: Basis | None = bases.get(key.partition("_")[0])
    return found


class _OpOverloads(StoredOverloads):
    """numba's cache of the function of one Op, whose completed key is `key`.

    Equal Ops of a function have a dispatcher each; `recent` passes on what one of them has compiled or
    loaded. Nothing is loaded or kept once `basis` has changed.
    """

    def __init__(self, function: Any, key: str, basis: Basis | None, recent: dict[Any, Any]) -> None:
        described = encode(("pytensor op", key))
        entries = OverloadEntries(described, trusted=HOST_PACKAGES, described=HOST_PACKAGES, by_python=False)
        super().__init__(function, entries)
        self._key = key
        self._basis = basis
        self._recent = recent

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled overload for `sig`; None if it must be compiled."""
        if self._has_changed():
            return None
        known = self._recent.get((self._key, sig, _fresh is None))
        if known is None and _fresh is not None:
            return None
        if known is None:
            known = super().load_overload(sig, target_context)
            if known is not None:
                self._recent[self._key, sig, True] = known
            return known
        # A dispatcher that is deleted removes its entry point from numba's tables: each needs its own.
        entry_point = target_context.get_executable(known.library, known.fndesc, known.environment)
        return known._replace(entry_point=entry_point, metadata=None)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep `data`, numba's CompileResult for `sig`."""
        if self._has_changed():
            return
        self._recent[self._key, sig, _fresh is None] = data
        if _fresh is None:
            super().save_overload(sig, data)
        else:
            _fresh.append((self, sig, data))

    def _has_changed(self) -> bool:
        return self._basis is not None and self._basis.changed() is not None
