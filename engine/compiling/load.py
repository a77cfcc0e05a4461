"""Loading: a stored program, and the kernels and functions that it calls, linked into this process.

Nothing here compiles: what a program calls is found in the cache, or came with a pickle.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cachegraph.key import CacheKey
from cachegraph.store.entry import Hit, Miss
from engine.compiling.interface import Interface
from engine.runtime.execution import CallbackFunction, Convert, Execution, LinkedCallback
from engine.runtime.load import LinkedKernel, Loader, process_loader
from engine.runtime.machine import process_machine
from engine.runtime.program import (
    N_COMMON,
    ArrayInput,
    Program,
    array_input,
    check_interface,
    unpack_program,
    with_blobs,
)

if TYPE_CHECKING:
    from typing import Protocol

    from engine.graph.apply import Apply
    from engine.graph.op import Op
    from engine.runtime.callbacks import Run

    class Entries(Protocol):
        """Entries that a program is loaded from: a cache, or those carried in a pickle."""

        def lookup(self, key: CacheKey) -> Hit | Miss:
            """Return the entry of `key`, checked, or the reason there is none; never raises."""

        def lookup_many(self, keys: Sequence[CacheKey]) -> Sequence[Hit | Miss]:
            """Return what `lookup` returns for each of `keys`, in order, found together; never raises."""

        def read_blob(self, digest_hex: str) -> bytes | None:
            """Return the content of a blob, checked; None if it cannot be read. Never raises."""


class CompilationTally:
    """Counts of one compilation: the entries it looked up, the kernels it compiled, and the time that
    hits saved.

    `found` has [hits, misses] for each level. `compiled` kernels took `compile_seconds`. `linked` are kernels
    that were built: kept alive until the program that calls them is linked.
    """

    def __init__(self) -> None:
        self.found: dict[str, list[int]] = {"kernel": [0, 0]}
        self.seconds_saved = 0.0
        self.compiled = 0
        self.compile_seconds = 0.0
        self.linked: list[LinkedKernel] = []

    def count(self, level: str, is_hit: bool, seconds_saved: float) -> None:
        """Count one entry that was looked up, and the seconds that it saved if it was a hit."""
        self.found.setdefault(level, [0, 0])[not is_hit] += 1
        self.seconds_saved += seconds_saved if is_hit else 0.0


class LoadContext:
    """The things that loading a program needs beside its bytes, shared with the functions that it calls.

    `name` is that of the function that is being made, `ops` are the user Ops that its programs may name.
    """

    def __init__(self, cache: Entries, name: str, ops: Mapping[str, Op], tally: CompilationTally) -> None:
        self.cache = cache
        self.name = name
        self.ops = ops
        self.tally = tally


def load_program(
    context: LoadContext, payload: bytes, interface: Interface, data: Sequence[Any]
) -> Execution:
    """Return the stored program `payload`, linked and bound to `data`.

    Raises ProgramFormatError, also for a program of another interface, LookupError for a kernel or a
    function that the cache does not have, MissingBlob for a missing constant, and the loader's errors.
    """
    program = unpack_program(payload)
    inputs = [array_input(type) for type in interface.types]
    check_interface(program, inputs, interface.n_outputs, interface.updated)
    return _load(context, program, data, interface.convert)


def load_function(context: LoadContext, key: CacheKey, payload: bytes) -> CallbackFunction:
    """Return the function that a callback calls and `payload` stores, linked; raises as load_program does."""
    program = unpack_program(payload)
    convert = ArrayChecker(program.inputs, context.name)
    return CallbackFunction(key, payload, _load(context, program, (), convert))


def link_program(
    context: LoadContext,
    program: Program,
    kernels: Sequence[LinkedKernel],
    functions: Mapping[str, CallbackFunction],
    data: Sequence[Any],
    convert: Convert,
) -> Execution:
    """Return `program` on its linked kernels, in the order of `kernel_keys`, and its functions, by the
    confirmation of their keys."""
    callbacks = _linked_callbacks(context, program, functions) if program.callbacks else []
    machine = process_machine(*kernels[:N_COMMON])
    called = kernels[N_COMMON:]
    return Execution(program, machine, called, data, convert, context.name, callbacks)


def _linked_callbacks(
    context: LoadContext, program: Program, functions: Mapping[str, CallbackFunction]
) -> list[LinkedCallback]:
    from engine.runtime.callbacks import build_callback  # few programs call Python

    callbacks = []
    for use in program.callbacks:
        called = [functions[confirmation] for _, confirmation in use.functions]
        computes = [function.execution.computing() for function in called]
        run = build_callback(use, computes, context.ops, _compile_call)
        callbacks.append(LinkedCallback(run, called))
    return callbacks


def find_kernels(
    cache: Entries, loader: Loader, keys: Sequence[CacheKey], tally: CompilationTally
) -> list[LinkedKernel]:
    """Return the kernels stored under `keys`, linked together.

    Raises LookupError if the cache lacks one of them, and the loader's errors on one that it refuses.
    """
    distinct = list(dict.fromkeys(keys))
    entries = zip(distinct, cache.lookup_many(distinct), strict=True)
    linked = loader.load_many({symbol_of(key): _found(key, entry, tally).payload for key, entry in entries})
    return [linked[symbol_of(key)] for key in keys]


def symbol_of(key: CacheKey) -> str:
    """Return the symbol of the kernel stored under `key`, made of its confirmation: a process links
    each symbol once."""
    return f"k_{key.confirmation.hex()}"


def kernel_keys(program: Program) -> list[CacheKey]:
    """Return the keys of the kernels of `program`, those of the machine and the fast call first."""
    return [_key("kernel", use.digest, use.confirmation) for use in program.kernels]


def called_entries(program: Program) -> tuple[bytes, ...]:
    """Return the digests of the keys of the kernels and functions that `program` calls."""
    kernels = [use.digest for use in program.kernels]
    functions = [digest for use in program.callbacks for digest, _ in use.functions]
    return tuple(map(bytes.fromhex, dict.fromkeys([*kernels, *functions])))


def linked_entries(execution: Execution) -> Iterator[tuple[CacheKey, bytes, Mapping[str, bytes]]]:
    """Yield the key, the stored form and the blobs of each kernel and function that a linked program
    calls, and of those that these functions call."""
    kernels = (*execution.machine.kernels, *execution.kernels)
    for key, kernel in zip(kernel_keys(execution.program), kernels, strict=True):
        yield key, kernel.content, {}
    for function in execution.functions:
        yield function.key, function.payload, function.execution.program.blobs
        yield from linked_entries(function.execution)


class ArrayChecker:
    """Converts the arguments of a function that a callback calls: they must have its dtypes and shapes
    already, and are copied unless they are C-contiguous."""

    def __init__(self, inputs: Sequence[ArrayInput], name: str) -> None:
        self._inputs = inputs
        self._name = name

    def __call__(self, position: int, value: Any) -> np.ndarray[Any, Any]:
        dtype, shape = self._inputs[position]
        fits = value.dtype == dtype and value.ndim == len(shape)
        if not fits or any(due not in (None, n) for due, n in zip(shape, value.shape, strict=True)):
            raise ValueError(
                f"Calling {self._name}: argument {position} of a function within it must be {dtype} "
                f"of shape {shape}; found {value.dtype} of shape {value.shape}"
            )
        return np.array(value, order="C", subok=False, copy=None)


def _load(context: LoadContext, program: Program, data: Sequence[Any], convert: Convert) -> Execution:
    called = dict.fromkeys(pair for use in program.callbacks for pair in use.functions)
    functions = {
        confirmation: _find_function(context, _key("function", digest, confirmation))
        for digest, confirmation in called
    }
    program = with_blobs(program, context.cache.read_blob)
    kernels = find_kernels(context.cache, process_loader(), kernel_keys(program), context.tally)
    return link_program(context, program, kernels, functions, data, convert)


def _find_function(context: LoadContext, key: CacheKey) -> CallbackFunction:
    return load_function(context, key, _found(key, context.cache.lookup(key), context.tally).payload)


def _found(key: CacheKey, entry: Hit | Miss, tally: CompilationTally) -> Hit:
    """Return `entry`, counted, if it is a hit. Raises LookupError for a miss."""
    if not isinstance(entry, Hit):
        tally.count(key.level, False, 0.0)
        raise LookupError(
            f"the program calls {key.level} {key.hex}, which is not in the cache ({entry.reason})"
        )
    tally.count(key.level, True, sum(entry.seconds.values()))
    return entry


def _key(level: str, digest: str, confirmation: str) -> CacheKey:
    """Return the key by which a program names a kernel or a function: enough to find the entry and to
    confirm it."""
    return CacheKey(level, (), bytes.fromhex(digest), bytes.fromhex(confirmation))


def _compile_call(node: Apply) -> Run:
    from engine.codegen.numba.calls import compiled_call

    return compiled_call(node)
