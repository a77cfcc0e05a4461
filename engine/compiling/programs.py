"""Building a program: an optimized graph is lowered, assembled, and its kernels are found or compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any

from cachegraph.cache import Artifact, Cache, Correction, Found
from cachegraph.fingerprint.encoding import encode
from cachegraph.key import CacheKey
from cachegraph.named_tuples import NamedTuple
from cachegraph.waiting_line import shown_if_long
from engine.codegen.common_code import COMMON_CODE, CommonCode
from engine.codegen.compile import compile_kernel
from engine.compiling.graph_encoding import UserOps
from engine.compiling.load import (
    CompilationTally,
    LoadContext,
    called_entries,
    kernel_keys,
    link_program,
    symbol_of,
)
from engine.compiling.mode import Mode
from engine.compiling.surroundings import kernel_key
from engine.graph.fgraph import FrozenFunctionGraph, FunctionGraph
from engine.graph.variables import Constant
from engine.inner.from_graph import inlined
from engine.lowering.assemble import assemble
from engine.lowering.constant_arguments import share_kernels
from engine.lowering.joining import join_loops
from engine.lowering.loops import Kernel
from engine.lowering.lower import Lowering
from engine.lowering.merging import merge_kernels
from engine.lowering.parallel import split_kernels
from engine.lowering.rules import rule_of
from engine.lowering.table import Table
from engine.runtime.callbacks import Callback
from engine.runtime.container import pack_kernel
from engine.runtime.execution import CallbackFunction, Convert, Execution
from engine.runtime.instructions import MACHINE_VERSION
from engine.runtime.load import LinkedKernel, Loader, process_loader
from engine.runtime.program import CallbackUse, Program, pack_program
from engine.runtime.target import process_level, process_triple

GetFunction = Callable[[FrozenFunctionGraph], CallbackFunction]


class BuildContext(LoadContext):
    """The things that building a program needs beside its graph, shared with the functions that it calls."""

    cache: Cache

    def __init__(
        self, cache: Cache, name: str, user_ops: UserOps, tally: CompilationTally, mode: Mode
    ) -> None:
        super().__init__(cache, name, user_ops.by_name, tally)
        self.user_ops = user_ops
        self.mode = mode


class BuiltProgram(NamedTuple):
    """A program that this process built, its stored form, the functions that it calls, by the
    confirmation of their keys, and the seconds that lowering took. Its kernels are linked as long as
    the tally of the build holds them."""

    program: Program
    payload: bytes
    functions: Mapping[str, CallbackFunction]
    seconds: float

    @property
    def references(self) -> tuple[bytes, ...]:
        """The digests of the keys of the kernels and functions that the program calls."""
        return called_entries(self.program)

    def link(self, context: BuildContext, data: Sequence[Any], convert: Convert) -> Execution:
        """Return the program, bound to `data`."""
        loader = process_loader()
        kernels = [loader.linked(symbol_of(key)) for key in kernel_keys(self.program)]
        return link_program(context, self.program, kernels, self.functions, data, convert)


def build_program(
    context: BuildContext,
    graph: FunctionGraph | FrozenFunctionGraph,
    results: tuple[int, Sequence[int]],
    data: Sequence[Constant],
    embedded: Sequence[Constant],
    function_of: GetFunction,
) -> BuiltProgram:
    """Lower `graph` and link its kernels into this process.

    `results` are the number of outputs that are returned, and the positions of the inputs whose values
    the others replace. `data` is bound when the program is linked, `embedded` becomes a part of it.
    Graphs that Ops hold are lowered into the same program, except those of callbacks, which
    `function_of` compiles. Raises LoweringError for an Op without a kernel, and CacheMissError where
    compiling is not allowed.
    """
    begin = perf_counter()
    nodes, outputs = inlined(graph.toposort(), graph.inputs, graph.outputs)
    lowering = Lowering(
        rule_of, graph.inputs, nodes, outputs, data, embedded, name_of=context.user_ops.name_of
    )
    values = lowering.run()
    join_loops(lowering.table)
    merge_kernels(lowering.table)
    share_kernels(lowering)
    split_kernels(lowering.table)
    kernels = dict.fromkeys(step.kernel for step in lowering.table.steps if step.kernel is not None)
    level = process_level()
    keys = {kernel: kernel_key(kernel.encoding(), level) for kernel in kernels}
    common = {common_key(code, level): code for code in COMMON_CODE}
    seconds = perf_counter() - begin
    functions = {inner: function_of(inner) for inner in _called_graphs(lowering.table)}
    begin = perf_counter()
    callbacks = {callback: _record(callback, functions) for callback in _callbacks(lowering.table)}
    program = assemble(lowering, values, *results, list(common), keys, callbacks)
    seconds += perf_counter() - begin
    wanted: dict[CacheKey, Kernel | CommonCode] = {**common, **{key: kernel for kernel, key in keys.items()}}
    build_kernels(context.cache, process_loader(), wanted, level, context.tally)
    called = {function.key.confirmation.hex(): function for function in functions.values()}
    return BuiltProgram(program, pack_program(program), called, seconds)


def common_key(code: CommonCode, level: str) -> CacheKey:
    """Return the key of `code` in this process, for a CPU level: its source follows from Python and
    numpy."""
    return kernel_key(encode((code.name, MACHINE_VERSION, code.source())), level)


def build_kernels(
    cache: Cache,
    loader: Loader,
    kernels: Mapping[CacheKey, Kernel | CommonCode],
    level: str,
    tally: CompilationTally,
) -> None:
    """Link `kernels` into this process; those that the cache lacks are compiled for `level` and stored.

    In the mode verify, hits are compiled as well and compared: compiling gives the same bytes every
    time. Raises CacheMissError where compiling is not allowed.
    """

    def compile_missing(missing: Sequence[CacheKey]) -> list[Artifact]:
        begin = perf_counter()
        artifacts = []
        with shown_if_long("compiling kernels") as show:
            for number, key in enumerate(missing, 1):
                show(f"compiling kernel {number} of {len(missing)}")
                artifacts.append(_compiled(key, kernels[key], level))
        tally.compiled += len(missing)
        tally.compile_seconds += perf_counter() - begin
        return artifacts

    def build_missing(missing: Sequence[CacheKey]) -> list[Artifact]:
        artifacts = compile_missing(missing)
        contents = {
            symbol_of(key): artifact.payload for key, artifact in zip(missing, artifacts, strict=True)
        }
        tally.linked += loader.load_many(contents).values()  # together, which is faster
        return artifacts

    def load(key: CacheKey, payload: bytes) -> LinkedKernel:
        return loader.load(payload, symbol_of(key))

    def verify(key: CacheKey, found: Found[LinkedKernel]) -> Correction[LinkedKernel] | None:
        [artifact] = compile_missing([key])
        if artifact.payload == found.value.content:
            return None
        loader.forget(symbol_of(key))
        return Correction("its object code is another", artifact, load(key, artifact.payload))

    for found in cache.get_or_build_many(kernels, build_missing, load, verify).values():
        tally.linked.append(found.value)
        tally.count("kernel", found.outcome == "hit", sum(found.seconds.values()) - found.load_seconds)


def _callbacks(table: Table) -> list[Callback]:
    found = [step.invocation.callback for step in table.steps if step.invocation is not None]
    return list(dict.fromkeys(found))


def _called_graphs(table: Table) -> list[FrozenFunctionGraph]:
    return list(dict.fromkeys(graph for callback in _callbacks(table) for graph in callback.graphs))


def _record(callback: Callback, functions: Mapping[FrozenFunctionGraph, CallbackFunction]) -> CallbackUse:
    keys = [functions[graph].key for graph in callback.graphs]
    named = tuple((key.hex, key.confirmation.hex()) for key in keys)
    return CallbackUse(callback.kind, callback.version, callback.options, named)


def _compiled(key: CacheKey, kernel: Kernel | CommonCode, level: str) -> Artifact:
    begin = perf_counter()
    symbol = symbol_of(key)
    if isinstance(kernel, CommonCode):
        code, summary = kernel.compile(symbol, level), f"the {kernel.name} of all programs"
    else:
        code, summary = compile_kernel(kernel, symbol, level), kernel.summary
    content = pack_kernel(symbol, process_triple(), level, code)
    return Artifact(content, seconds={"compile": perf_counter() - begin}, summary=summary)
