"""From an optimized graph to a linked program, and from a stored program to a linked one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cachegraph.key import CacheKey
from cachegraph.store.entry import Hit
from engine.graph.fgraph import FrozenFunctionGraph
from engine.graph.op import Op
from engine.graph.variables import Constant, Variable
from engine.runtime import linking
from engine.runtime.callbacks import Callback
from engine.runtime.execution import Callee, Convert, Execution
from engine.runtime.linking import Entries, KernelTally
from engine.runtime.load import process_loader
from engine.runtime.machine import process_machine
from engine.runtime.program import (
    ArrayInput,
    CallbackUse,
    Program,
    array_input,
    check_interface,
    pack_program,
    unpack_program,
    with_blobs,
)

if TYPE_CHECKING:
    from cachegraph.cache import Cache
    from engine.graph.fgraph import FunctionGraph
    from engine.lowering.table import Table

Callees = Mapping[str, Callee]
"""Functions that callbacks call, by what confirms their keys, in hexadecimal."""


class Compilation(NamedTuple):
    """A program as it is stored, and its blobs, the seconds lowering took, the functions that it calls, and the digests of
    the keys of all kernels and functions that it calls."""

    payload: bytes
    blobs: Mapping[str, bytes]
    seconds: float
    callees: Callees
    needed: tuple[bytes, ...]


def compile_program(
    cache: Cache,
    fgraph: FunctionGraph | FrozenFunctionGraph,
    n_outputs: int,
    updated: Sequence[int],
    data: Sequence[Constant],
    embedded: Sequence[Constant],
    tally: KernelTally,
    functions: Callable[[FrozenFunctionGraph], Callee],
    name_of: Callable[[Op], str],
) -> Compilation:
    """Lower a graph and link its kernels into this process.

    The first `n_outputs` of its outputs are returned, the others replace the values of the inputs at the positions
    `updated`. `data` is bound when the program is loaded, `embedded` becomes a part of it. Ops that hold graphs are
    lowered as these graphs are: equal ones share their kernels; but the graphs of callbacks are `functions` of their
    own. Users' Ops are named by `name_of`. Raises LoweringError for an Op without a kernel, CacheMissError where compiling is not allowed.
    """
    from engine.compiling.kernel_key import kernel_key, machine_key
    from engine.inner.from_graph import inlined
    from engine.lowering.assemble import assemble
    from engine.lowering.lower import Lowering
    from engine.lowering.rules import rule_of

    begin = perf_counter()
    nodes, outputs = inlined(fgraph.toposort(), fgraph.inputs, fgraph.outputs)
    lowering = Lowering(rule_of, fgraph.inputs, nodes, outputs, data, embedded, name_of=name_of)
    results = lowering.run()
    kernels = dict.fromkeys(step.kernel for step in lowering.table.steps if step.kernel is not None)
    keys = {kernel: kernel_key(kernel.encoding()) for kernel in kernels}
    machine = machine_key()
    lowered = perf_counter()
    callees = {graph: functions(graph) for graph in _called(lowering.table)}
    called = perf_counter()
    callbacks = {callback: _use(callback, callees) for callback in _callbacks(lowering.table)}
    program = assemble(lowering, results, n_outputs, updated, machine, keys, callbacks)
    seconds = perf_counter() - called + lowered - begin
    wanted = {machine: None, **{key: kernel for kernel, key in keys.items()}}
    linking.build(cache, process_loader(), wanted, tally)
    called_functions = {callee.key.confirmation.hex(): callee for callee in callees.values()}
    payload = pack_program(program)
    return Compilation(payload, program.blobs, seconds, called_functions, called_entries(program))


def _callbacks(table: Table) -> list[Callback]:
    found = [step.invocation.callback for step in table.steps if step.invocation is not None]
    return list(dict.fromkeys(found))


def _called(table: Table) -> list[FrozenFunctionGraph]:
    return list(dict.fromkeys(graph for callback in _callbacks(table) for graph in callback.graphs))


def _use(callback: Callback, callees: Mapping[FrozenFunctionGraph, Callee]) -> CallbackUse:
    keys = [callees[graph].key for graph in callback.graphs]
    functions = tuple((key.hex, key.confirmation.hex()) for key in keys)
    return CallbackUse(callback.kind, callback.version, callback.options, functions)


def called_entries(program: Program) -> tuple[bytes, ...]:
    """The digests of the keys of the kernels and functions that `program` calls."""
    kernels = [use.digest for use in program.kernels]
    functions = [digest for use in program.callbacks for digest, _ in use.functions]
    return tuple(map(bytes.fromhex, dict.fromkeys([*kernels, *functions])))


def load_program(
    cache: Entries,
    payload: bytes,
    inputs: Sequence[Variable],
    n_outputs: int,
    updated: Sequence[int],
    data: Sequence[Any],
    convert: Convert,
    name: str,
    tally: KernelTally | None,
    callees: Callees,
    ops: Mapping[str, Op],
) -> Execution:
    """Link a stored program. With a `tally` its kernels come from the cache; without, they are linked already. So do the
    functions that its callbacks call, but for those among `callees`. Of `ops` it has the users' Ops that it names.

    Raises ProgramFormatError, also for the program of a function of other inputs, outputs or updates, LookupError for
    a kernel or a function that the cache has not, MissingBlob for a constant that it has not, and what the loader raises.
    """
    program = unpack_program(payload)
    check_interface(program, [array_input(variable) for variable in inputs], n_outputs, updated)
    return _link(cache, program, data, convert, name, tally, callees, ops)


def load_callee(
    cache: Entries,
    key: CacheKey,
    payload: bytes,
    name: str,
    tally: KernelTally | None,
    callees: Callees,
    ops: Mapping[str, Op],
) -> Callee:
    """Link the stored program of a function that a callback calls; as load_program, whose caller's `name` it takes."""
    program = unpack_program(payload)
    execution = _link(cache, program, (), _Arguments(program.inputs, name), name, tally, callees, ops)
    return Callee(key, payload, execution)


def _link(
    cache: Entries,
    program: Program,
    data: Sequence[Any],
    convert: Convert,
    name: str,
    tally: KernelTally | None,
    callees: Callees,
    ops: Mapping[str, Op],
) -> Execution:
    called = [
        [
            callees.get(confirmation)
            or _found(cache, _key("function", digest, confirmation), name, tally, ops)
            for digest, confirmation in use.functions
        ]
        for use in program.callbacks
    ]
    program = with_blobs(program, cache.read_blob)
    loader = process_loader()
    keys = [_key("kernel", use.digest, use.confirmation) for use in program.kernels]
    if tally is None:
        kernels = [loader.linked(linking.symbol_of(key)) for key in keys]
    else:
        kernels = linking.link(cache, loader, keys, tally)
    return Execution(program, process_machine(kernels[0]), kernels[1:], data, convert, name, called, ops)


def linked_entries(execution: Execution) -> Iterator[tuple[CacheKey, bytes, Mapping[str, bytes]]]:
    """The key, the stored form and the blobs of each kernel and of each function that a linked program calls, and that these
    call."""
    kernels = (execution.machine.kernel, *execution.kernels)
    for use, kernel in zip(execution.program.kernels, kernels, strict=True):
        yield _key("kernel", use.digest, use.confirmation), kernel.content, {}
    for callee in execution.callees:
        yield callee.key, callee.payload, callee.execution.program.blobs
        yield from linked_entries(callee.execution)


def _found(
    cache: Entries, key: CacheKey, name: str, tally: KernelTally | None, ops: Mapping[str, Op]
) -> Callee:
    entry = cache.lookup(key)
    if tally is not None:
        seconds = sum(entry.seconds.values()) if isinstance(entry, Hit) else 0.0
        tally.count_function(isinstance(entry, Hit), seconds)
    if not isinstance(entry, Hit):
        raise LookupError(f"the program calls function {key.hex}, which is not in the cache ({entry.reason})")
    return load_callee(cache, key, entry.payload, name, tally, {}, ops)


def _key(level: str, digest: str, confirmation: str) -> CacheKey:
    """The key by which a program names a kernel or a function: enough to find the entry and to confirm it."""
    return CacheKey(level, (), bytes.fromhex(digest), bytes.fromhex(confirmation))


class _Arguments:
    """What converts the arguments of a function that a callback calls: they have dtype and rank, and may lie otherwise."""

    def __init__(self, inputs: Sequence[ArrayInput], name: str) -> None:
        self._inputs = inputs
        self._name = name

    def __call__(self, position: int, value: Any) -> np.ndarray[Any, Any]:
        dtype, shape = self._inputs[position]
        fits = value.dtype == dtype and value.ndim == len(shape)
        if not fits or any(due not in (None, n) for due, n in zip(shape, value.shape, strict=True)):
            raise ValueError(
                f"Calling {self._name}: argument {position} of a function within it must be {dtype} of shape {shape}; "
                f"found {value.dtype} of shape {value.shape}"
            )
        return np.array(value, order="C", subok=False, copy=None)
