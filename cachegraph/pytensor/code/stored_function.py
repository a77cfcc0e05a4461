"""A PyTensor function's compiled code, one overload per signature, in the store.

A thunk calls a numba dispatcher whose overloads come from the store, linked without numba's compiler
(numba_cache/linking.py). On a miss, PyTensor's own dispatcher is made and compiles the overload; if
several processes want it, one compiles. If numba cannot cache a function, the reason is stored, and each
process compiles it.
"""

# mypy: disable-error-code="no-untyped-call,misc,attr-defined"
from __future__ import annotations

import re
import sys
from collections.abc import Callable
from contextlib import nullcontext
from functools import cache, partial
from importlib import import_module
from time import perf_counter
from typing import Any

from numba.core import entrypoints, sigutils, types
from numba.core.caching import NullCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher
from numba.core.registry import CPUDispatcher

from cachegraph.cache import Artifact, Correction, Found
from cachegraph.errors import CythonFunctionError
from cachegraph.fingerprint import Encoder, register_encoder
from cachegraph.key import CacheKey
from cachegraph.logger import logger
from cachegraph.numba_cache.compiled import CythonFunction, NotStorable, Stored, pack_refusal
from cachegraph.numba_cache.entries import OverloadEntries
from cachegraph.numba_cache.frame_chunk import in_one_frame_chunk
from cachegraph.numba_cache.fresh_compilation import fresh_compilation
from cachegraph.numba_cache.linking import LinkedOverload, LinkError, forget_overload, link_overload
from cachegraph.pytensor.code.compilations import Compilations
from cachegraph.pytensor.code.op_code import fresh_op_code, storing_op_code
from cachegraph.pytensor.describe.basis import CHANGED, Basis
from cachegraph.pytensor.describe.host_packages import HOST_PACKAGES
from cachegraph.pytensor.errors import Changed

NAME = "numba_funcified_fgraph"
"""The name that PyTensor gives the function of a graph."""

_ADDRESS = re.compile(r"_ptr_cache_(?P<function>.+?)(\.\d+)*", re.DOTALL)
_LIBRARIES = {"scipy.blas": "scipy.linalg.cython_blas", "scipy.lapack": "scipy.linalg.cython_lapack"}


def stored_function(
    description: bytes, link: Callable[[], Any], basis: Basis, name: str = NAME
) -> StoredFunction:
    """Return a dispatcher whose overloads are kept in the store; on a miss, the dispatcher of `link`
    compiles.

    `description` is the canonical encoding of all that the function computes, and of what PyTensor's linking
    depends on. `link` returns PyTensor's own dispatcher of the whole function; it is called at most once.
    Once `basis` has changed, nothing in the store is used, and nothing is stored.
    """
    return StoredFunction(description, link, basis, name)


def pytensor_address(variable: str) -> CythonFunction | None:
    """Return the C function whose address a global variable holds by PyTensor's naming, or None."""
    found = _ADDRESS.fullmatch(variable)
    if found is None:
        return None
    module, _, name = found["function"].rpartition(".")
    return _LIBRARIES.get(module, module), name


_SPARSE = "pytensor.link.numba.dispatch.sparse.variable"


@cache
def _describe_sparse_types() -> None:
    """Give the types that PyTensor adds to numba's an encoding."""
    module = import_module(_SPARSE)
    for cls in (module.CSCMatrixType, module.CSRMatrixType):
        register_encoder(cls, _encode_sparse)


def _encode_sparse(encoder: Encoder, matrix: Any) -> None:
    encoder.value((matrix.data, matrix.indices, matrix.indptr))


class _Unkept(Exception):
    """Compiled code cannot be packed; the cause says why."""


class _NotCompiled(Exception):
    """NUMBA_DISABLE_JIT is set: what PyTensor links is a Python function."""


class StoredFunction(CPUDispatcher):
    """A numba dispatcher whose overloads come from the store.

    Calls from Python run them as stored; functions that numba compiles may call and inline it, too. `tally`
    has [hits, misses] of overloads, `seconds_saved` the compile time of the hits, less the time to load them;
    `compilations` has those of this process.
    """

    def __init__(self, description: bytes, link: Callable[[], Any], basis: Basis, name: str = NAME) -> None:
        super().__init__(_stand_in(name), targetoptions={"nopython": True, "boundscheck": None})
        self._entries = OverloadEntries(
            description, trusted=HOST_PACKAGES, described=HOST_PACKAGES, address_of=pytensor_address
        )
        self.basis = basis
        self.description = description
        self._link = link
        self._linked: Any = None
        self._call_arguments: tuple[Any, ...] | None = None
        self._stored: dict[tuple[Any, ...], tuple[CacheKey, Found[Any]]] = {}
        self.tally = [0, 0]
        self.seconds_saved = 0.0
        self.compilations = Compilations()

    @property
    def pytensor_dispatcher(self) -> Any:
        """PyTensor's own dispatcher of the function, made at the first access."""
        with global_compiler_lock:
            if self._linked is None:
                self._linked = self._freshly_linked()
            return self._linked

    def compile(self, sig: Any) -> Any:
        """Return the entry point for `sig`: of an existing overload, from the store, or compiled now.

        If numba may not compile (NUMBA_DISABLE_JIT), return a Python function.
        """
        with global_compiler_lock:
            arguments, _ = sigutils.normalize_signature(sig)
            found: Any = self.overloads.get(tuple(arguments))
            if found is None:
                if not self._can_compile:
                    raise RuntimeError("compilation disabled")
                try:
                    found = self._find_or_compile(arguments)
                except _NotCompiled:
                    return lambda arguments: self.pytensor_dispatcher(*arguments)
                self.add_overload(found)
            return found.entry_point

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Return numba's type of a call from compiled code, which needs complete overloads."""
        with global_compiler_lock:
            _, arguments = self._compiler.fold_argument_types(args, kws)
            self.compile(tuple(arguments))
            for known in list(self.overloads):  # numba may choose any that the arguments convert to
                self._complete(known)
        return super().get_call_template(args, kws)

    def get_compile_result(self, sig: Any) -> Any:
        """Return numba's CompileResult for `sig`."""
        with global_compiler_lock:
            arguments, _ = sigutils.normalize_signature(sig)
            self.compile(tuple(arguments))
            self._complete(tuple(arguments))
        return super().get_compile_result(sig)

    def inspect_llvm(self, signature: Any = None) -> Any:
        """Return what PyTensor's own dispatcher shows; it compiles what it has not."""
        return self._inspected("inspect_llvm", signature)

    def inspect_asm(self, signature: Any = None) -> Any:
        """Return what PyTensor's own dispatcher shows; it compiles what it has not."""
        return self._inspected("inspect_asm", signature)

    def typeof_pyval(self, val: Any) -> Any:
        """Return numba's type of an argument; PyTensor's own types are loaded when needed."""
        found = super().typeof_pyval(val)
        if found == types.pyobject:
            import_module(_SPARSE)
            found = super().typeof_pyval(val)
        return found

    def __reduce__(self) -> Any:
        return self.pytensor_dispatcher.__reduce__()

    def _compilation_chain_init_hook(self) -> None:
        """Do nothing: numba's extensions are loaded when something is compiled."""

    def _inspected(self, name: str, signature: Any) -> Any:
        for arguments in self.overloads if signature is None else (signature,):
            self._compile_by_pytensor(arguments)
        return getattr(self.pytensor_dispatcher, name)(signature)

    def _find_or_compile(self, arguments: Any) -> Any:
        if _SPARSE in sys.modules:
            _describe_sparse_types()
        key = self._key(arguments)
        if key is None:
            return self._compile_by_pytensor(arguments)
        if changed := self.basis.changed():
            return self._compile_changed(arguments, changed)
        compiled: list[Any] = []

        def build() -> Artifact:
            begin = perf_counter()
            with fresh_op_code() if self._entries.cache.samples_hit() else nullcontext():
                compiled.append(self._compile_by_pytensor(arguments))
            self._refuse_changed(arguments, key)
            return self._packed(key, compiled[0], perf_counter() - begin)

        def load(payload: bytes) -> Any:
            # A miss links its own artifact, too: numba's code in memory calls what the process has compiled
            # before, and is not the same to the last bit.
            found = self._loaded(key, payload, arguments)
            return found if isinstance(found, LinkedOverload) or not compiled else compiled[0]

        try:
            found = self._entries.cache.get_or_build(key, build, load, partial(self._verify, arguments, key))
        except Changed as error:
            self._entries.bypass(str(error), CHANGED)
            return compiled[0]
        except _Unkept as error:
            logger("cachegraph").warning(
                "storing the code of %s failed", self.__name__, exc_info=error.__cause__
            )
            return compiled[0]
        except Exception:
            if not compiled:
                raise
            logger("cachegraph").warning(
                "what was stored of %s cannot be linked", self.__name__, exc_info=True
            )
            return compiled[0]
        self.count(found)
        return self._usable(arguments, key, found)

    def _compile_for_args(self, *args: Any, **kws: Any) -> Any:
        """Compile for Python's arguments (called by numba), and keep them meanwhile: verifying needs them."""
        with global_compiler_lock:
            self._call_arguments = args
            try:
                return super()._compile_for_args(*args, **kws)
            finally:
                self._call_arguments = None

    def _verify(self, arguments: Any, key: CacheKey, found: Found[Any]) -> Correction[Any] | None:
        """Compile again what was found, and compare what both do with the arguments of the call.

        Raises what compiling, and copying the arguments, raise.
        """
        if self._call_arguments is None or isinstance(found.value, NotStorable):
            return None
        is_right = False
        try:
            correction = self._compared(arguments, key, found)
            is_right = correction is None
            return correction
        finally:
            if not is_right:  # another function of this key must not get this overload
                forget_overload(key.confirmation.hex())

    def _compared(self, arguments: Any, key: CacheKey, found: Found[Any]) -> Correction[Any] | None:
        from cachegraph.pytensor.code.code_verification import (
            difference,  # only the mode verify needs it
        )

        is_linked = isinstance(found.value, LinkedOverload)
        stored = found.value if is_linked else self._usable(arguments, key, found)
        begin = perf_counter()
        dispatcher, compiled, of_ops = self._freshly_compiled(arguments)
        seconds = perf_counter() - begin
        differs = difference(stored.entry_point, compiled.entry_point, self._call_arguments or ())
        if differs is None:
            return None
        self._linked = dispatcher
        self._refuse_changed(arguments, key)
        artifact = self._packed(key, compiled, seconds)
        for overloads, sig, data in of_ops:
            overloads.replace_suspect(sig, data, differs)
        return Correction(differs, artifact, compiled)

    def _freshly_compiled(self, arguments: Any) -> tuple[Any, Any, list[Any]]:
        """Compile without the store; return the dispatcher, the overload, and the code of Ops."""
        with fresh_op_code() as of_ops:
            dispatcher = self._freshly_linked()
            return dispatcher, self._compile_with(dispatcher, arguments), of_ops

    def _key(self, arguments: Any) -> CacheKey | None:
        return self._entries.key(arguments, self.targetctx.codegen())

    def _compile_changed(self, arguments: Any, changed: str) -> Any:
        """Compile a function that is no longer what its key describes."""
        self._entries.bypass(str(Changed(changed)), CHANGED)
        return self._compile_by_pytensor(arguments)

    def _refuse_changed(self, arguments: Any, key: CacheKey) -> None:
        self.basis.refuse_changed(self._key(arguments) == key)

    def count(self, found: Found[Any]) -> None:
        """Count the look-up of this function's code, or of code that was compiled from it."""
        is_hit = found.outcome == "hit"
        self.tally[not is_hit] += 1
        if is_hit:
            self.seconds_saved += sum(found.seconds.values()) - found.load_seconds

    def _packed(self, key: CacheKey, compiled: Any, seconds: float) -> Artifact:
        try:
            return self._entries.artifact(key, compiled, seconds, self.__name__)
        except NotStorable as refusal:
            self._entries.bypass(str(refusal), refusal.kind)
            summary = f"{self.__name__}: cannot be stored: {refusal.found}"
            return Artifact(pack_refusal(refusal), seconds={"compile": 0.0}, summary=summary)
        except Exception as error:
            # The compiled code works: a failure to store it is no error for the caller.
            raise _Unkept from error

    def _loaded(self, key: CacheKey, payload: bytes, arguments: Any) -> LinkedOverload | Stored | NotStorable:
        stored = self._entries.read(payload, arguments)
        if isinstance(stored, NotStorable):
            return stored
        try:
            return link_overload(stored, key.confirmation.hex())
        except (LinkError, CythonFunctionError) as error:
            logger("cachegraph").info("%s", error)
        self.targetctx.refresh()  # loads symbols that the code may need
        stored.refuse_unresolved()
        return stored

    def _usable(self, arguments: Any, key: CacheKey, found: Found[Any]) -> Any:
        """Return an overload of what was found: as it is, loaded by numba, or compiled."""
        if isinstance(found.value, NotStorable):
            self._entries.bypass(str(found.value), found.value.kind)
            return self._compile_by_pytensor(arguments)
        if isinstance(found.value, Stored):
            return self._rebuilt(key, found, found.value) or self._compile_by_pytensor(arguments)
        if isinstance(found.value, LinkedOverload):
            self._stored[tuple(arguments)] = key, found
        return found.value

    def _complete(self, arguments: tuple[Any, ...]) -> None:
        """Replace an overload that was linked for Python's calls alone by numba's whole CompileResult."""
        if not isinstance(self.overloads.get(arguments), LinkedOverload):
            return
        key, found = self._stored.pop(arguments)
        if self._linked is not None and arguments in self._linked.overloads:
            self.overloads[arguments] = self._linked.overloads[arguments]
            return
        if self._entries.cache.samples_hit():  # without a call there are no results to compare
            self._linked, self.overloads[arguments], _ = self._freshly_compiled(arguments)
            return
        hit = self._entries.cache.find(key, lambda payload: self._entries.read_for_numba(payload, arguments))
        rebuilt = None
        if isinstance(hit, Found) and isinstance(hit.value, Stored):
            rebuilt = self._rebuilt(key, found, hit.value)
        self.overloads[arguments] = rebuilt or self._compile_by_pytensor(arguments)

    def _rebuilt(self, key: CacheKey, found: Found[Any], stored: Stored) -> Any:
        self.targetctx.refresh()
        rebuilt = self._entries.rebuild(
            key, found, stored, self.targetctx, {"__name__": stored.described.module}
        )
        if rebuilt is not None:
            self.targetctx.insert_user_function(rebuilt.entry_point, rebuilt.fndesc, [rebuilt.library])
        return rebuilt

    def _compile_by_pytensor(self, arguments: Any) -> Any:
        """Return the overload that PyTensor's own dispatcher compiles."""
        with self.compilations.one():
            return self._compile_with(self.pytensor_dispatcher, arguments)

    def _freshly_linked(self) -> Any:
        """Return a new dispatcher of PyTensor's, which has compiled nothing."""
        with self.basis.implementations.in_force(), storing_op_code():
            linked = self._link()
        if isinstance(linked, Dispatcher):
            linked._cache = NullCache()
        return linked

    def _compile_with(self, dispatcher: Any, arguments: Any) -> Any:
        entrypoints.init_all()
        if not isinstance(dispatcher, Dispatcher):
            raise _NotCompiled
        with self.basis.implementations.in_force(), storing_op_code(), fresh_compilation(HOST_PACKAGES):
            in_one_frame_chunk(dispatcher.compile, tuple(arguments))
        return dispatcher.overloads[tuple(arguments)]


def _stand_in(name: str) -> Any:
    """Return a Python function for a dispatcher that is made of none; like PyTensor's, it takes anything."""

    def stand_in(*args: Any) -> Any:
        raise NotImplementedError("the code of this function is in the store")

    stand_in.__name__ = stand_in.__qualname__ = name
    return stand_in
