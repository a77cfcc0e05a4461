"""The pipeline: which rewrites there are, in which order they run, and `rewrite_graph`, which runs them."""

from __future__ import annotations

from functools import cache

from engine.graph.fgraph import FunctionGraph
from engine.rewriting.database import Description, EquilibriumDB, RewriteDatabaseQuery, SequenceDB
from engine.rewriting.merge import MergeOptimizer
from engine.rewriting.passes.constant_folding import constant_folding
from engine.rewriting.passes.fusion import FusionOptimizer
from engine.rewriting.report import RewriteReport

DEFAULT_QUERY = RewriteDatabaseQuery(include=("fast_run",))
"""All rewrites that a compiled function gets unless its mode says otherwise."""


@cache
def optdb() -> SequenceDB:
    """The database of all rewrites of the engine."""
    database = SequenceDB("optdb")
    database.register("merge", MergeOptimizer(), "fast_run", "fast_compile", position=0)
    database.register("canonicalize", _canonicalize(), "fast_run", "fast_compile", position=1)
    database.register("fusion", FusionOptimizer(), "fast_run", position=49)
    return database


def _canonicalize() -> EquilibriumDB:
    database = EquilibriumDB("canonicalize")
    database.register("constant_folding", constant_folding, "fast_run", "fast_compile")
    return database


def describe(query: RewriteDatabaseQuery = DEFAULT_QUERY) -> Description:
    """What `query` chooses, as (name, position, ...) in running order: names and numbers, for a cache key."""
    return optdb().describe(query)


def rewrite_graph(fgraph: FunctionGraph, query: RewriteDatabaseQuery = DEFAULT_QUERY) -> RewriteReport:
    """Rewrite `fgraph`, in place, by what `query` chooses; what was applied and how long each pass took.

    Types, broadcasting and, but for rounding, values stay. Equal graphs become equal graphs, in every process.
    """
    report = RewriteReport()
    optdb().query(query).apply(fgraph, report)
    return report
