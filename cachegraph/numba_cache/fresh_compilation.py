"""Compilation by numba that ignores its own cache files and what it compiled before.

numba loads a function decorated with `cache=True` from a file that depends on the time of the
function's own source file, but on nothing that it calls in other files (numba #8851). An overload
compiled earlier contains the globals and free variables of that time. Either would put old code
into an entry whose key describes the new code.
"""

# mypy: disable-error-code="no-untyped-call,method-assign"
from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import caching
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher

from cachegraph.errors import Unfingerprintable
from cachegraph.fingerprint.encoding import encode
from cachegraph.fingerprint.origin import origin_of
from cachegraph.fingerprint.primitives import strong_digest
from cachegraph.fingerprint.registrations import registered_templates
from cachegraph.numba_cache.entries import configuration

Overloads = OrderedDict[Any, Any]
"""The overloads that a dispatcher has compiled, by the types of the arguments."""

_GIVEN = frozenset(("_impl_cache", "_overload_cache"))
"""The attributes in which numba's templates cache the results of registered functions."""


@contextmanager
def fresh_compilation(described: Collection[str] = ()) -> Iterator[None]:
    """Compile within the context, in any thread, what is needed as it is now.

    numba loads nothing from its own cache files, and reuses an overload only if it was compiled in such a
    context from the same code and values. Functions of the `described` packages do not change, as those of
    releases.
    """
    global _current
    with global_compiler_lock:
        if _current is not None:
            yield
            return
        _current = current = _Current(described)
        before = caching.Cache.load_overload, Dispatcher.get_call_template, Dispatcher.get_compile_result
        add = Dispatcher.add_overload
        caching.Cache.load_overload = _nothing
        Dispatcher.get_call_template = _looking(before[1], current)
        Dispatcher.get_compile_result = _looking(before[2], current)
        Dispatcher.add_overload = _adding(add, current)
        current.hide_implementations()
        try:
            yield
        finally:
            caching.Cache.load_overload, Dispatcher.get_call_template, Dispatcher.get_compile_result = before
            Dispatcher.add_overload = add
            _current = None
            current.put_back()


def _nothing(cache: Any, sig: Any, target_context: Any) -> None:
    """Return None, as a cache without a file for `sig` does."""


def _looking(find: Callable[..., Any], current: _Current) -> Callable[..., Any]:
    """Return `find`, by which compiled code finds overloads of a dispatcher, after an update of that
    dispatcher."""

    def looked(dispatcher: Any, *args: Any) -> Any:
        current.look_at(dispatcher)
        return find(dispatcher, *args)

    return looked


def _adding(add: Callable[..., None], current: _Current) -> Callable[..., None]:
    """Return `add`, by which numba adds an overload to a dispatcher, as `current` does it."""
    return lambda dispatcher, compiled: current.add(dispatcher, compiled, add)


class _Current:
    """The dispatchers that compiled code calls, with current overloads only; older ones are hidden
    meanwhile."""

    def __init__(self, described: Collection[str]) -> None:
        self._described = described
        self._names: dict[Any, bytes | None] = {}
        self._hidden: dict[Any, Overloads] = {}
        self._replaced: list[tuple[Any, str, dict[Any, Any]]] = []

    def hide_implementations(self) -> None:
        """Hide the implementations that numba cached for others' registrations, until `put_back`.

        Implementations made in such a context from the same code stay.
        """
        for template, function in registered_templates():
            if self._is_followed(function):
                kept = template.__dict__.get("_cachegraph_given_fresh") or {}
                template._cachegraph_given_fresh = kept
                given = kept.setdefault(self._name(function) or object(), {})
                for attribute in _GIVEN & vars(template).keys():
                    self._replaced.append((template, attribute, vars(template)[attribute]))
                    setattr(template, attribute, given.setdefault(attribute, {}))

    def look_at(self, dispatcher: Any) -> None:
        """Hide the outdated overloads of `dispatcher` until `put_back`, and compile its declared signatures
        again."""
        if dispatcher in self._names or not self._is_followed(dispatcher):
            return
        name = self._names[dispatcher] = self._name(dispatcher)
        known: Overloads = OrderedDict(_compiled_here(dispatcher).get(name, ()))
        before: Overloads = dispatcher.overloads
        if all(known.get(arguments) is compiled for arguments, compiled in before.items()):
            return
        self._hidden[dispatcher] = before
        dispatcher.overloads = known
        if not dispatcher._can_compile:
            self._compile_declared(dispatcher, before)

    def add(self, dispatcher: Any, compiled: Any, add: Callable[[Any, Any], None]) -> None:
        """Add `compiled` to `dispatcher`; Python sees it, too, unless it has an older overload."""
        if dispatcher in self._hidden:
            dispatcher.overloads[tuple(compiled.signature.args)] = compiled
        else:
            add(dispatcher, compiled)
        name = self._names.get(dispatcher)
        if name is not None:
            here = _compiled_here(dispatcher)
            here.setdefault(name, OrderedDict())[tuple(compiled.signature.args)] = compiled

    def put_back(self) -> None:
        """Restore all hidden overloads and implementations."""
        for dispatcher, before in self._hidden.items():
            dispatcher.overloads = before
        for template, attribute, given in self._replaced:
            setattr(template, attribute, given)

    def _is_followed(self, function: Any) -> bool:
        home = getattr(function, "py_func", function).__globals__.get("__name__")
        return not isinstance(home, str) or origin_of(home, self._described) == "followed"

    def _name(self, function: Any) -> bytes | None:
        try:
            return strong_digest(encode((function, configuration()), self._described))
        except Unfingerprintable:
            return None  # an older overload may be of any code then

    def _compile_declared(self, dispatcher: Any, before: Overloads) -> None:
        dispatcher._can_compile = True
        try:
            for arguments, compiled in before.items():
                if arguments not in dispatcher.overloads:
                    dispatcher.compile(compiled.signature)
        finally:
            dispatcher._can_compile = False


def _compiled_here(dispatcher: Any) -> dict[bytes | None, Overloads]:
    """Return the overloads compiled here for `dispatcher`, by the digest of its code and values then."""
    here: dict[bytes | None, Overloads] = vars(dispatcher).setdefault("_cachegraph_compiled_fresh", {})
    return here


_current: _Current | None = None
