"""Building a function: its graph is rewritten, its program built, and both are packed to be stored."""

from __future__ import annotations

from time import perf_counter

from cachegraph.cache import Artifact, Cache
from cachegraph.errors import CacheMissError
from cachegraph.logger import logger
from cachegraph.waiting_line import shown_if_long
from engine.compiling.callback_functions import callback_function
from engine.compiling.compiled import CacheInfo, Compiled, Interpreted, PickledGraph
from engine.compiling.graph_encoding import UserOps
from engine.compiling.inner_graphs import OPTIMIZED, InnerGraphStore, dump_graph
from engine.compiling.load import CompilationTally
from engine.compiling.programs import BuildContext, BuiltProgram, build_program
from engine.compiling.request import FunctionRequest, data_constants, inner_constants
from engine.errors import FunctionRefused
from engine.graph.fgraph import FrozenFunctionGraph, FunctionGraph
from engine.rewriting.pipeline import run_pipeline
from engine.rewriting.rewriters import RewriteReport
from engine.runtime.execution import Execution
from engine.scalar.embedded import refuse


class Build:
    """One build of the function that `request` asks for.

    After `run`, `optimized` is its rewritten graph, `seconds` has the time of each step, `rewrites`
    their number and `tally` the counts.
    """

    optimized: FrozenFunctionGraph
    rewrites: int
    seconds: dict[str, float]

    def __init__(self, request: FunctionRequest, cache: Cache, user_ops: UserOps) -> None:
        self._request = request
        self._context = BuildContext(cache, request.name, user_ops, CompilationTally(), request.mode)
        self._built: BuiltProgram | None = None

    @property
    def tally(self) -> CompilationTally:
        """The counts of what the build looked up and compiled."""
        return self._context.tally

    def run(self) -> Artifact:
        """Build the function and return it to be stored.

        Starts again when a user function cannot become part of a kernel; and, with every inner graph
        rewritten from scratch, when the build fails with stored ones.
        """
        with shown_if_long(f"building {self._request.name}"):
            return self._run_until_built()

    def _run_until_built(self) -> Artifact:
        trusts_graphs = True
        while True:
            try:
                return self._run(trusts_graphs)
            except FunctionRefused as reason:
                log = logger("engine")
                (log.info if reason.is_expected else log.warning)("%s", reason)
                refuse(reason.op, reason.signature)
            except CacheMissError:
                raise
            except Exception:  # a stored graph may make anything fail that uses it
                if not trusts_graphs or not self.tally.found.get("op", [0])[0]:
                    raise
                logger("engine").warning(
                    "building %s with stored inner graphs failed; they are rewritten from scratch",
                    self._request.name,
                    exc_info=True,
                )
                trusts_graphs = False

    def link(self) -> Execution:
        """Return the program that was built, bound to the data of the request."""
        assert self._built is not None
        request = self._request
        return self._built.link(self._context, request.data, request.interface.convert)

    def _run(self, trusts_graphs: bool) -> Artifact:
        begin = perf_counter()
        request = self._request
        context = self._context = BuildContext(
            self._context.cache, request.name, self._context.user_ops, CompilationTally(), request.mode
        )
        graphs = InnerGraphStore(context, trusts_graphs)
        fgraph, report = rewritten(request, graphs)
        seconds = perf_counter() - begin
        built = self._built = build_program(
            context,
            fgraph,
            (request.interface.n_outputs, request.interface.updated),
            data_constants(request.graph),
            tuple(inner_constants(request.graph)),
            lambda graph: callback_function(context, graph),
        )
        self.optimized = fgraph.freeze()
        self.rewrites = report.total
        own = {"rewrite": seconds, "lower": built.seconds}
        self.seconds = {**own, "compile": context.tally.compile_seconds}
        nodes = f"{len(request.graph.nodes)} nodes, {len(fgraph.apply_nodes)} after rewriting"
        blobs = {**optimized_blobs(request, self.optimized, context.user_ops), **built.program.blobs}
        references = (*built.references, *graphs.used)
        return Artifact(built.payload, blobs, own, f"{request.name}: {nodes}", references)


def rewritten(
    request: FunctionRequest, graphs: InnerGraphStore | None = None
) -> tuple[FunctionGraph, RewriteReport]:
    """Return the graph of `request` after rewriting, and what was rewritten."""
    fgraph = request.graph.unfreeze()
    return fgraph, run_pipeline(fgraph, request.mode.optimizer, graphs)


def optimized_blobs(
    request: FunctionRequest, optimized: FrozenFunctionGraph, user_ops: UserOps
) -> dict[str, bytes]:
    """Return the blobs that store an optimized graph without its data; none if it cannot be pickled."""
    blobs: dict[str, bytes] = {}
    try:
        return {OPTIMIZED: dump_graph(optimized, request.data, user_ops, blobs), **blobs}
    except Exception as error:  # whoever asks for the graph after a hit gets it by rewriting
        logger("engine").info("the optimized graph of %s is not stored: %s", request.name, error)
        return {}


def interpret(request: FunctionRequest) -> Compiled:
    """Return the function that `request` asks for, run by the reference implementations of its Ops."""
    fgraph, report = rewritten(request)
    reason = "the numpy backend compiles nothing"
    info = CacheInfo(outcome="bypass", reason=reason, rewrites=report.total)
    runner = Interpreted(fgraph, request.interface)
    return Compiled(
        runner, info, fgraph.clone, lambda: PickledGraph(fgraph.freeze(), request.interface, reason)
    )
