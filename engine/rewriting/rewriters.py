"""Rewriters of single nodes and of whole graphs, and the report of their work.

The result of a rewriter depends on the structure of the graph alone.
"""

from __future__ import annotations

from collections import UserList
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any, Literal, cast

from msgspec import Struct, field

from engine.graph import Apply, DestroyHandler, FunctionGraph, Op, Variable
from engine.rewriting.unification import OpPattern


class RewriteReport(Struct):
    """The number of applications of each rewrite, by name, and the seconds spent in each pass."""

    applied: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """The number of rewrites applied."""
        return sum(self.applied.values())

    def count(self, name: str, times: int = 1) -> None:
        """Add `times` applications of the rewrite `name`."""
        if times:
            self.applied[name] = self.applied.get(name, 0) + times

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Add the time of the block to the pass `name`."""
        start = perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + perf_counter() - start


Tracked = Op | type[Op] | OpPattern
Replacements = Sequence[Variable | None] | Mapping[Any, Any] | Literal[False] | None
Transform = Callable[[FunctionGraph, Apply], Any]
Requirement = Callable[[FunctionGraph], object]


class NodeRewriter:
    """A rewrite of one node, as `transform` gives replacements for its outputs.

    Nodes with complex numbers or float16 it gets only if it is right `for_all_dtypes`.
    """

    name: str = ""
    for_all_dtypes = False

    def tracks(self) -> Sequence[Tracked] | None:
        """Return the Ops (classes of Ops, patterns of them) with nodes to rewrite; None for all."""
        return None

    def transform(self, fgraph: FunctionGraph, node: Apply) -> Replacements:
        """Return replacements for the outputs of `node`; None or False keeps the node.

        They are a list with a variable for each output (None for one that nothing uses), or a dictionary
        from variables of the graph to their replacements; its key "remove" lists variables that the graph
        must not have any longer.
        """
        raise NotImplementedError(f"{type(self).__name__} must implement transform()")

    def transform_tracked(self, fgraph: FunctionGraph, node: Apply) -> Replacements:
        """Return `transform` of a node of a tracked Op."""
        return self.transform(fgraph, node)

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        """Attach the Features that this rewrite needs; by default none."""

    def __str__(self) -> str:
        return self.name or type(self).__name__


class FromFunctionNodeRewriter(NodeRewriter):
    """A node rewriter that calls a function on nodes of the Ops that it tracks."""

    def __init__(
        self,
        function: Transform,
        tracks: Sequence[Tracked] | None = None,
        requirements: Sequence[Requirement] = (),
    ) -> None:
        self.function = function
        self.name = self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self.requirements = tuple(requirements)
        self._tracks = tracks

    def tracks(self) -> Sequence[Tracked] | None:
        return self._tracks

    def transform(self, fgraph: FunctionGraph, node: Apply, enforce_tracks: bool = True) -> Replacements:
        """Return the function's replacements; None for a node of another Op, if `enforce_tracks`."""
        if enforce_tracks and not is_tracked(self, node.op):
            return None
        return cast(Replacements, self.function(fgraph, node))

    def transform_tracked(self, fgraph: FunctionGraph, node: Apply) -> Replacements:
        return cast(Replacements, self.function(fgraph, node))

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        for requirement in self.requirements:
            requirement(fgraph)

    def __repr__(self) -> str:
        return f"FromFunctionNodeRewriter({self.function!r}, {self._tracks!r}, {self.requirements!r})"


def copy_stack_trace(from_var: Any, to_var: Any) -> Any:
    """Return `to_var`. PyTensor's rewrites copy the lines that made a variable with it, and here no variable
    knows them (decision 0173)."""
    return to_var


def node_rewriter(
    tracks: Sequence[Tracked] | None,
    inplace: bool = False,
    requirements: Sequence[Requirement] | None = (),
    for_all_dtypes: bool = False,
) -> Callable[[Transform], FromFunctionNodeRewriter]:
    """Return a decorator that makes a function of (fgraph, node) a rewriter.

    It rewrites the nodes of `tracks` (Ops, classes of Ops or patterns of them; None: all), of numbers that
    kernels compute or `for_all_dtypes`. `requirements` are called with a graph before it is rewritten; with
    `inplace` it gets a DestroyHandler. Refuse (ValueError) empty `tracks`, and (TypeError) other things in
    them.
    """
    if tracks is not None and not tracks:
        raise ValueError("Making a node_rewriter: tracks is empty; None is for all Ops")
    for item in tracks or ():
        if not (isinstance(item, Op | OpPattern) or (isinstance(item, type) and issubclass(item, Op))):
            raise TypeError(f"Making a node_rewriter: {item!r} in tracks is no Op, class of Ops or OpPattern")
    needed = (*(requirements or ()), *([_attach_destroy_handler] if inplace else ()))

    def decorator(function: Transform) -> FromFunctionNodeRewriter:
        rewriter = FromFunctionNodeRewriter(function, tracks, needed)
        rewriter.for_all_dtypes = for_all_dtypes
        return rewriter

    return decorator


def _attach_destroy_handler(fgraph: FunctionGraph) -> None:
    fgraph.attach_feature(DestroyHandler())


class GraphRewriter:
    """A rewrite of a whole graph, in place; a user's class implements `apply`.

    `add_requirements` attaches the Features that a rewrite needs, before it runs.
    """

    name: str = ""

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        """Attach the Features that this rewrite needs; by default none."""

    def apply(self, fgraph: FunctionGraph) -> Any:
        """Rewrite `fgraph`."""
        if type(self).run is GraphRewriter.run:
            raise NotImplementedError(f"{type(self).__name__} must implement apply()")
        self.run(fgraph, RewriteReport())

    def run(self, fgraph: FunctionGraph, report: RewriteReport) -> None:
        """Rewrite `fgraph` and count the applications in `report`."""
        self.apply(fgraph)

    def rewrite(self, fgraph: FunctionGraph) -> RewriteReport:
        """Rewrite `fgraph` and return the report."""
        report = RewriteReport()
        with report.timed(self.name or type(self).__name__):
            self.add_requirements(fgraph)
            self.run(fgraph, report)
        return report

    def __call__(self, fgraph: FunctionGraph) -> RewriteReport:
        return self.rewrite(fgraph)

    def __str__(self) -> str:
        return self.name or type(self).__name__


class FromFunctionGraphRewriter(GraphRewriter):
    """A rewriter of graphs that calls a function, after those of `requirements`."""

    def __init__(
        self, function: Callable[[FunctionGraph], object], requirements: Sequence[Requirement] = ()
    ) -> None:
        self.function = function
        self.name = self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self.requirements = tuple(requirements)

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        for requirement in self.requirements:
            requirement(fgraph)

    def apply(self, fgraph: FunctionGraph) -> Any:
        return self.function(fgraph)


def graph_rewriter(f: Callable[[FunctionGraph], object]) -> FromFunctionGraphRewriter:
    """Return a function of a FunctionGraph, which changes it in place, as a rewriter."""
    return FromFunctionGraphRewriter(f)


class SequentialGraphRewriter(GraphRewriter, UserList["GraphRewriter"]):
    """A list of rewriters of graphs, which run in order, each timed under its own name.

    A `failure_callback` is called with an exception that one raises, this rewriter and that one, and the next
    one runs; without it, the exception ends the run.
    """

    def __init__(
        self,
        *rewriters: Any,
        name: str = "sequence",
        failure_callback: Callable[[Exception, Any, GraphRewriter], object] | None = None,
    ) -> None:
        listed = len(rewriters) == 1 and isinstance(rewriters[0], list | tuple)
        super().__init__(rewriters[0] if listed else rewriters)
        self.name = name
        self.failure_callback = failure_callback

    __eq__ = object.__eq__
    __hash__ = object.__hash__  # type: ignore[assignment]

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        for rewriter in self:
            rewriter.add_requirements(fgraph)

    def run(self, fgraph: FunctionGraph, report: RewriteReport) -> None:
        for rewriter in self:
            with report.timed(rewriter.name):
                self._run_one(rewriter, fgraph, report)

    def _run_one(self, rewriter: GraphRewriter, fgraph: FunctionGraph, report: RewriteReport) -> None:
        try:
            rewriter.run(fgraph, report)
        except Exception as error:
            if self.failure_callback is None:
                raise
            self.failure_callback(error, self, rewriter)


def is_tracked(rewriter: NodeRewriter, op: Op) -> bool:
    """Return True if `rewriter` may apply to nodes of `op`."""
    tracked = rewriter.tracks()
    return tracked is None or any(_is_one_of(op, item) for item in tracked)


def _is_one_of(op: Op, item: Tracked) -> bool:
    if isinstance(item, type):
        return isinstance(op, item)
    return item.match_op(op) if isinstance(item, OpPattern) else item == op
