"""numba's compiler for nutpie's functions of C, which finds them in the store (level "numba").

numba.cfunc takes the class of its compiler as an argument. This one asks the store first, and links what
it has without numba's contexts (numba_cache/linking.py). On a miss numba compiles, with all that it
inlines as it is now; the process runs what it packed, linked as any other process links it. Other
functions, and these where anything fails, are compiled as if there were no cache.
"""

# mypy: disable-error-code="no-untyped-call,attr-defined"
from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from time import perf_counter
from typing import Any

import numba
import numpy as np
from numba.core import entrypoints, types
from numba.core.compiler import Compiler
from numba.core.compiler_lock import global_compiler_lock
from numba.core.errors import NumbaWarning
from numba.core.registry import cpu_target

from cachegraph.cache import Artifact, Correction, Found
from cachegraph.errors import CacheMissError, CythonFunctionError, Unfingerprintable
from cachegraph.fingerprint.encoding import encode
from cachegraph.fingerprint.numba_types import options_in_force
from cachegraph.key import CacheKey
from cachegraph.logger import logger
from cachegraph.named_tuples import NamedTuple
from cachegraph.numba_cache.compiled import NotStorable, pack_refusal
from cachegraph.numba_cache.emission import emit, optimize
from cachegraph.numba_cache.entries import OverloadEntries
from cachegraph.numba_cache.frame_chunk import in_one_frame_chunk
from cachegraph.numba_cache.fresh_compilation import fresh_compilation
from cachegraph.numba_cache.linking import LinkError, forget_overload, link_callback
from cachegraph.pytensor.code.op_code import fresh_op_code, storing_op_code
from cachegraph.pytensor.code.stored_function import pytensor_address
from cachegraph.pytensor.describe.basis import CHANGED
from cachegraph.pytensor.describe.host_packages import HOST_PACKAGES
from cachegraph.pytensor.errors import Changed, note_failure
from cachegraph.pytensor.nutpie.callbacks import PACKAGE, CFunctionSource, callback_of

DESCRIBED = (*HOST_PACKAGES, PACKAGE)
_OWN = "cachegraph"
"""The package of the functions that this pipeline has compiled, which describe themselves."""


def storing_pipeline(options: Mapping[str, Any]) -> Any:
    """Return what numba.cfunc takes as `pipeline_class`; `options` are its other options."""
    return lambda *given: _Pipeline(options, given)


def c_function(make: Callable[..., Any], *arguments: Any) -> Any:
    """Return numba's function of C of what `make`, one of nutpie's functions, makes of these arguments."""
    made, signature = make(*arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumbaWarning)  # that numba's own cache does not keep it
        return numba.cfunc(signature, pipeline_class=storing_pipeline({}))(made)


class _Pipeline:
    """numba's compiler of one function; `given` are the arguments of numba's own."""

    def __init__(self, options: Mapping[str, Any], given: tuple[Any, ...]) -> None:
        self._options = options
        self._given = given

    def compile_extra(self, function: Any) -> Any:
        """Return the compiled function as numba.cfunc wants it."""
        callback = callback_of(function)
        if callback is None:
            return self._compiled(function)
        lookup = _Lookup(callback, function.__name__, self._options, lambda: self._compiled(function))
        _, _, _, arguments, result, *_ = self._given
        try:
            return lookup.found_or_compiled(result(*arguments))
        except CacheMissError:
            raise
        except Exception as error:
            if error is lookup.refusal:
                raise
            note_failure("looking nutpie's function up", function.__name__, error)
            return self._compiled(function)

    def _compiled(self, function: Any) -> Any:
        return Compiler(*self._given).compile_extra(function)


class _Found(NamedTuple):
    """The part of a CompileResult that numba.cfunc reads."""

    library: Any
    fndesc: Any
    typing_error: None = None


class _Library:
    """A linked function of C, as the library that numba.cfunc asks for its address; `compile` compiles it."""

    def __init__(self, address: int, compile: Callable[[], Any]) -> None:
        self._address = address
        self._compile = compile

    def get_pointer_to_function(self, name: str) -> int:
        """Return the address of the one function."""
        return self._address

    def get_llvm_str(self) -> str:
        """Return what numba shows of the function, which is compiled for it."""
        with global_compiler_lock:
            shown: str = self._compile().library.get_llvm_str()
            return shown


class _Name(NamedTuple):
    llvm_cfunc_wrapper_name: str


class _Lookup:
    """One function of C, found or compiled by `compile`; `refusal` is the error that `compile` raised."""

    def __init__(
        self, callback: CFunctionSource, name: str, options: Mapping[str, Any], compile: Callable[[], Any]
    ) -> None:
        self.refusal: BaseException | None = None
        self._callback = callback
        self._name = name
        self._options = options
        self._compile = compile
        self._compiled: Any = None
        self._signature: Any = None

    def found_or_compiled(self, signature: Any) -> Any:
        """Return the function for numba.cfunc; raises what numba raises, and CacheMissError if
        CACHEGRAPH_ON_MISS is "error"."""
        self._signature = signature
        try:
            described = encode(options_in_force(dict(self._options)), DESCRIBED)
        except Unfingerprintable as error:
            self._entries = OverloadEntries(self._callback.description)
            self._entries.bypass(str(error), "unfingerprintable")
            return self._by_numba()
        self._entries = OverloadEntries(
            self._callback.description,
            described,
            trusted=HOST_PACKAGES,
            described=DESCRIBED,
            address_of=pytensor_address,
        )
        key = self._key()
        if key is None:
            return self._by_numba()
        if changed := self._callback.function.basis.changed():
            self._entries.bypass(str(Changed(changed)), CHANGED)
            return self._by_numba()
        return self._looked_up(key)

    def _looked_up(self, key: CacheKey) -> Any:
        try:
            found = self._entries.cache.get_or_build(
                key,
                lambda: self._built(key),
                lambda payload: self._loaded(key, payload),
                lambda found: self._verified(key, found),
            )
        except Changed as error:
            self._entries.bypass(str(error), CHANGED)
            return self._emitted()
        except Exception:
            if self._compiled is None:
                raise
            logger("cachegraph").warning(
                "what was stored of nutpie's %s cannot be linked", self._name, exc_info=True
            )
            return self._emitted()
        self._callback.function.count(found)
        if not isinstance(found.value, NotStorable):
            return found.value
        self._entries.bypass(str(found.value), found.value.kind)
        return self._emitted() if self._compiled is not None else self._by_numba()

    def _key(self) -> CacheKey | None:
        return self._entries.key(self._signature, cpu_target.target_context.codegen())

    def _by_numba(self) -> Any:
        """Return what numba compiles, of what is there now."""
        implementations = self._callback.function.basis.implementations
        try:
            entrypoints.init_all()
            with implementations.in_force(), storing_op_code(), fresh_compilation((*DESCRIBED, _OWN)):
                return in_one_frame_chunk(self._compile)
        except BaseException as error:
            self.refusal = error
            raise

    def _built(self, key: CacheKey) -> Artifact:
        begin = perf_counter()
        with fresh_op_code() if self._entries.cache.samples_hit() else nullcontext():
            self._compiled = self._optimized()
        self._callback.function.basis.refuse_changed(self._key() == key)
        return self._packed(key, self._compiled, perf_counter() - begin)

    def _optimized(self) -> Any:
        compiled = self._by_numba()
        optimize(compiled.library)
        return compiled

    def _emitted(self) -> Any:
        """Return what was compiled, loaded by numba."""
        emit(self._compiled.library)
        return self._compiled

    def _packed(self, key: CacheKey, compiled: Any, seconds: float) -> Artifact:
        """Return the artifact of `compiled`, or of the reason why it cannot be stored, or not be linked."""
        try:
            artifact = self._entries.artifact(key, compiled, seconds, f"nutpie's {self._name}")
            self._linked(key, artifact.payload)
        except (LinkError, CythonFunctionError) as error:
            return Artifact(pack_refusal(NotStorable("unlinkable", str(error))))
        except NotStorable as refusal:
            return Artifact(pack_refusal(refusal))
        return artifact._replace(blobs={})  # the bitcode: compiled code does not call this function

    def _loaded(self, key: CacheKey, payload: bytes) -> Any:
        """Return the stored function for numba.cfunc, or the reason stored instead."""
        address = self._linked(key, payload)
        if isinstance(address, NotStorable):
            return address
        return _Found(_Library(address, self._optimized), _Name(f"{self._name}.{key.hex}"))

    def _linked(self, key: CacheKey, payload: bytes) -> int | NotStorable:
        stored = self._entries.read(payload, self._signature.args)
        if isinstance(stored, NotStorable):
            return stored
        if stored.described.result != types.int64:
            raise LinkError(f"it returns {stored.described.result}")
        return link_callback(stored, key.confirmation.hex())

    def _verified(self, key: CacheKey, found: Found[Any]) -> Correction[Any] | None:
        """Compile again what was found, and compare what both do at some points."""
        if isinstance(found.value, NotStorable):
            return None
        from cachegraph.pytensor.code.code_verification import difference  # only the mode verify needs it

        begin = perf_counter()
        with fresh_op_code() as of_ops:
            compiled = self._optimized()
        seconds = perf_counter() - begin
        emit(compiled.library)
        stored, fresh = (self._callback.called_at(_address(one)) for one in (found.value, compiled))
        for point in trial_points(self._callback.lengths[0]):
            differs = difference(stored, fresh, (point, *self._callback.results()))
            if differs is not None:
                break
        else:
            return None
        forget_overload(key.confirmation.hex())
        self._callback.function.basis.refuse_changed(self._key() == key)
        for overloads, signature, data in of_ops:
            overloads.replace_suspect(signature, data, differs)
        return Correction(differs, self._packed(key, compiled, seconds), compiled)


def _address(found: Any) -> int:
    address: int = found.library.get_pointer_to_function(found.fndesc.llvm_cfunc_wrapper_name)
    return address


def trial_points(dim: int) -> list[Any]:
    """Return the points at which code is compared: the origin, and points around it."""
    spread = np.sin(1.0 + np.arange(dim))
    return [scale * spread for scale in (0.0, 0.1, 1.0)]
