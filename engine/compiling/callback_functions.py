"""Functions that callbacks call: found in the cache under keys of their own, shared by all callers, or built.

Their graphs are held by Ops, and were rewritten with these Ops: here they are compiled as they are.
"""

from __future__ import annotations

from cachegraph.cache import Artifact, Correction, Found
from cachegraph.errors import SourceError, Unfingerprintable
from cachegraph.key import CacheKey
from engine.compiling.graph_encoding import UserOps
from engine.compiling.key import callback_function_key
from engine.compiling.load import ArrayChecker, load_function
from engine.compiling.programs import BuildContext, BuiltProgram, build_program
from engine.compiling.request import all_constants
from engine.errors import UndescribedOpError
from engine.graph.fgraph import FrozenFunctionGraph
from engine.runtime.execution import CallbackFunction


def callback_function(context: BuildContext, graph: FrozenFunctionGraph) -> CallbackFunction:
    """Return the function that computes `graph`, for a program that is being built.

    Raises as compile_function does, and UndescribedOpError for a graph with a user Op that is not among
    those of `context`.
    """
    user_ops = UserOps()
    try:
        key = callback_function_key(graph, (context.mode.linker,), user_ops)
        # The entry is shared by all callers, so it names user Ops as its own key does.
        own = BuildContext(context.cache, context.name, user_ops, context.tally, context.mode)
        building = _FunctionBuild(own, graph)
        found = context.cache.get_or_build(
            key,
            building.build,
            lambda payload: building.load(key, payload),
            lambda found: building.verify(key, found),
        )
    except (Unfingerprintable, SourceError):
        return _function_without_key(context, graph)
    except UndescribedOpError:
        if not context.user_ops.is_open:
            raise
        return _function_without_key(context, graph)
    context.user_ops.include(user_ops)
    seconds_saved = sum(found.seconds.values()) - found.load_seconds
    context.tally.count("function", found.outcome == "hit", seconds_saved)
    return found.value


def _function_without_key(context: BuildContext, graph: FrozenFunctionGraph) -> CallbackFunction:
    """Build a function that no key describes, and name it by its program; the program that calls it is
    not stored."""
    building = _FunctionBuild(context, graph)
    artifact = building.build()
    return building.load(CacheKey.build("function", {"program": artifact.payload}), artifact.payload)


class _FunctionBuild:
    """Builds or loads one function that a callback calls."""

    def __init__(self, context: BuildContext, graph: FrozenFunctionGraph) -> None:
        self._context = context
        self._graph = graph
        self._built: BuiltProgram | None = None

    def build(self) -> Artifact:
        """Return the function to be stored."""
        graph, context = self._graph, self._context
        results = len(graph.outputs), ()
        built = build_program(
            context,
            graph,
            results,
            (),
            tuple(all_constants(graph)),
            lambda inner: callback_function(context, inner),
        )
        self._built = built
        summary = f"called by a callback: {len(graph.nodes)} nodes"
        seconds = {"lower": built.seconds}
        return Artifact(built.payload, built.program.blobs, seconds, summary, built.references)

    def load(self, key: CacheKey, payload: bytes) -> CallbackFunction:
        """Return the function that was built, or the one that `payload` stores, linked."""
        built, context = self._built, self._context
        if built is None:
            return load_function(context, key, payload)
        convert = ArrayChecker(built.program.inputs, context.name)
        return CallbackFunction(key, payload, built.link(context, (), convert))

    def verify(self, key: CacheKey, found: Found[CallbackFunction]) -> Correction[CallbackFunction] | None:
        """Build the function again and compare it with `found`; building compares its kernels."""
        from engine.compiling.verification import difference  # only the mode verify needs it

        again = _FunctionBuild(self._context, self._graph)
        artifact = again.build()
        function = again.load(key, artifact.payload)
        programs = found.value.execution, function.execution
        differs = difference((None, None), programs, [v.type for v in self._graph.inputs])
        return Correction(differs, artifact, function) if differs else None
