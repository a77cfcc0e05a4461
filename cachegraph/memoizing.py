"""Memoized functions: a call is an entry, found by the function's code and its arguments.

    level  := namespace "/call"
    key    := scheme function arguments aliases numpy packages python
    scheme := the number of the version below
    function := its canonical encoding (fingerprint/)
    arguments := that of the dict of them by the names of parameters, as code reads it: with the order of
                 dicts, the strides of arrays, the code of classes
    aliases := what of this is one object, or shares memory (fingerprint/aliases.py)
    numpy := how numpy treats floating-point errors and prints, empty before it is imported
    packages := the release of each package that the function trusts
    entry  := the pickled result (pickling/); its large arrays are blobs

The key is made again after the call: a call that changes its arguments, or what its code reads, is not
stored.

Version history
    2  aliases, and the settings of numpy
    1  the first
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from cachegraph.cache import Artifact, Cache, Correction, Found, default_cache
from cachegraph.errors import CachegraphError, Unfingerprintable
from cachegraph.fingerprint import encode, register_encoder
from cachegraph.fingerprint.encoding import encode_call
from cachegraph.fingerprint.external_state import refuse_external_state
from cachegraph.fingerprint.origin import SCRIPTS, origin_of
from cachegraph.fingerprint.releases import package_version
from cachegraph.key import LONGEST_WORD, CacheKey, check_word, is_word
from cachegraph.pickling import Unpicklable, dumps, loads
from cachegraph.toolchain import toolchain

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
S = TypeVar("S")

_SCHEME = 2
_LEVEL = "call"
_PLAIN = ("collections", "datetime", "decimal", "fractions", "uuid")
"""Modules of Python whose classes results may hold: they hold values, and read nothing."""
_ADDRESS = re.compile(rb"<[^<>]{1,200} at 0x[0-9a-f]{4,16}>")
"""The text that Python gives for an object whose class has no text of its own: no other process has it."""


@overload
def memoize(function: Callable[P, R], /) -> MemoizedFunction[P, R]: ...
@overload
def memoize(
    *, namespace: str = "", packages: Sequence[str] = (), cache: Cache | None = None
) -> Callable[[Callable[P, R]], MemoizedFunction[P, R]]: ...
def memoize(
    function: Callable[P, R] | None = None,
    /,
    *,
    namespace: str = "",
    packages: Sequence[str] = (),
    cache: Cache | None = None,
) -> MemoizedFunction[P, R] | Callable[[Callable[P, R]], MemoizedFunction[P, R]]:
    """Return `function`, which then finds the results of earlier calls, of other processes too, in the cache.

    A call is known by the code of the function, with all that it reaches, and by its arguments. A function
    whose code may read a file, a clock, the environment or random state is not cached, and so is one that
    changes its arguments: it runs, and the bypass is counted. `packages` names packages of which that is not
    asked, because they compute from their arguments alone; results may hold objects of their classes, and of
    the function's own package. Results are copies, on the first call, too.

    The entries are in `namespace` (by default the name of the function's package) of `cache` (by default the
    cache that the settings name at each call). Raises ValueError for a namespace that is no word.
    """
    if function is None:
        return lambda given: MemoizedFunction(given, namespace, packages, cache)
    return MemoizedFunction(function, namespace, packages, cache)


class MemoizedFunction(Generic[P, R]):
    """A function whose calls are entries of a cache, at `level`; `__wrapped__` is the function itself."""

    def __init__(
        self, function: Callable[P, R], namespace: str, packages: Sequence[str], cache: Cache | None
    ) -> None:
        functools.update_wrapper(self, function)
        named = _named(function)
        self.name = named.__qualname__
        own = named.__module__.partition(".")[0]
        self.__wrapped__ = function
        default = cache.namespace if cache else ""
        self.level = f"{check_word(namespace or default or _word(_described(own)))}/{_LEVEL}"
        self.packages = tuple(dict.fromkeys((own, *packages)))
        self._cache = cache
        self._signature = inspect.signature(function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        cache = self._cache or default_cache()
        bound = self._bound(args, kwargs)
        call = functools.partial(self.__wrapped__, *args, **kwargs)
        try:
            key = self.key_of(bound)
        except Exception as error:  # objects of users may raise anything when they are looked at
            cache.bypass(self.level, "unfingerprintable", str(error))
            return call()
        return _Call(self, cache, key, bound, call).run()

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> MemoizedFunction[P, R]: ...
    @overload
    def __get__(
        self: MemoizedFunction[Concatenate[S, Q], R], instance: S, owner: type | None = None
    ) -> Callable[Q, R]: ...
    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Return the method of `instance`, which is then the first argument."""
        return self if instance is None else functools.partial(self, instance)

    def key(self, *args: P.args, **kwargs: P.kwargs) -> CacheKey:
        """Return the key of a call; raises Unfingerprintable, and TypeError for arguments that do not fit."""
        return self.key_of(self._bound(args, kwargs))

    def _bound(self, args: Any, kwargs: Any) -> inspect.BoundArguments:
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return bound

    def key_of(self, bound: inspect.BoundArguments) -> CacheKey:
        """Return the key of a call with these arguments; raises Unfingerprintable."""
        call = functools.partial(self.__wrapped__, *bound.args, **bound.kwargs)
        refuse_external_state([call], {}, (*self._trusted_code(), __package__))
        described = (__package__,)  # by the scheme: other memoized functions are known by what they wrap
        function, arguments, aliases = encode_call(self.__wrapped__, bound.arguments, described)
        parts = {
            "scheme": encode(_SCHEME),
            "function": function,
            "arguments": arguments,
            "aliases": encode(aliases),
            "numpy": encode(_numpy_settings()),
            "packages": encode({_described(name): _release(name) for name in self.packages}),
            "python": encode(toolchain()["python"]),
        }
        return CacheKey.build(self.level, parts)

    def _trusted_code(self) -> tuple[str, ...]:
        """Return the packages whose code is not searched; its own is, unless it is an installed release."""
        own, *others = self.packages
        return tuple(others) if origin_of(own, ()) == "followed" else self.packages


class _NotStored(Exception):
    """The result of a call that cannot be stored, and why."""

    def __init__(self, value: Any, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.value = value
        self.kind = kind


class _Call(Generic[R]):
    """One call of a memoized function in a cache."""

    def __init__(
        self,
        memoized: MemoizedFunction[Any, R],
        cache: Cache,
        key: CacheKey,
        bound: inspect.BoundArguments,
        call: Callable[[], R],
    ) -> None:
        self._memoized = memoized
        self._cache = cache
        self._key = key
        self._bound = bound
        self._call = call
        self._computed: list[R] = []

    def run(self) -> R:
        """Return the stored result, or compute and store it."""
        try:
            return self._cache.get_or_build(self._key, self._build, self._load, self._verify).value
        except _NotStored as refused:
            self._cache.note_bypass(self._key.level, refused.kind, f"{self._memoized.name}: {refused}")
            value: R = refused.value
            return value

    def _build(self) -> Artifact:
        value = self._call()
        self._computed = [value]
        if self._key_now() != self._key:
            raise _NotStored(value, "changed", "it changed its arguments, or what its code reads")
        blobs: dict[str, bytes] = {}
        try:
            payload = dumps(value, blobs=blobs)
        except Unpicklable as error:
            raise _NotStored(value, "unpicklable", str(error)) from error
        if found := _ADDRESS.search(payload):
            text = found[0].decode("ascii", "replace")
            raise _NotStored(value, "address", f"its result names an object of this process: {text}")
        return Artifact(payload, blobs, summary=self._memoized.name)

    def _key_now(self) -> CacheKey | None:
        try:
            return self._memoized.key_of(self._bound)
        except Exception:  # as in a call
            return None

    def _load(self, payload: bytes) -> R:
        trusted = (*self._memoized.packages, *_PLAIN)
        try:
            value: R = loads(payload, trusted, read_blob=self._cache.read_blob)
        except CachegraphError as error:
            if self._computed:
                raise _NotStored(self._computed[0], "unpicklable", str(error)) from error
            raise
        return value

    def _verify(self, found: Found[R]) -> Correction[R] | None:
        """Call the function again; return a correction if its result has another encoding."""
        artifact = self._build()
        value = self._load(artifact.payload)
        if _encoding(value) == _encoding(found.value):
            return None
        return Correction(f"another result of {self._memoized.name}", artifact, value)


def _described(package: str) -> str:
    """Return the name of a package in keys: of a script that of its main process, in its workers too."""
    return SCRIPTS[0] if package in SCRIPTS else package


def _word(name: str) -> str:
    """Return the name of a package as a namespace: letters that none may have are replaced."""
    return "".join(c if is_word(c) else "_" for c in name)[:LONGEST_WORD]


def _named(function: Callable[..., Any]) -> Any:
    """Return what has the name of a callable: a function or class, the one in a partial, or an object's
    class."""
    while isinstance(function, functools.partial):
        function = function.func
    return function if hasattr(function, "__qualname__") else type(function)


def _encoding(value: object) -> bytes:
    """Return the canonical encoding of a result, or its pickle if it has none."""
    try:
        return encode(value)
    except Unfingerprintable:
        return dumps(value)


def _numpy_settings() -> dict[str, object]:
    """Return what numpy's results may depend on besides arguments."""
    numpy = sys.modules.get("numpy")
    return {} if numpy is None else {**numpy.geterr(), **numpy.get_printoptions()}


def _release(package: str) -> str:
    """Return the installed release of a package; empty for a module that is of none."""
    try:
        return package_version(package)
    except ImportError:
        return ""


register_encoder(MemoizedFunction, lambda encoder, memoized: encoder.value(memoized.__wrapped__))
