"""Rewriting of graphs: rewriters, databases of rewrites, and the pipeline for compiled functions.

Names are imported at first use: a function from the cache needs none of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from engine.graph.rewrite_query import RewriteDatabaseQuery

if TYPE_CHECKING:
    from engine.rewriting.database import EquilibriumDB, RewriteDatabase, SequenceDB
    from engine.rewriting.merge import MergeOptimizer
    from engine.rewriting.pattern import PatternNodeRewriter
    from engine.rewriting.pipeline import DEFAULT_QUERY, describe, optdb, rewrite_graph
    from engine.rewriting.rewriters import (
        EquilibriumGraphRewriter,
        GraphRewriter,
        NodeRewriter,
        RewriteReport,
        SequentialGraphRewriter,
        node_rewriter,
    )

_MODULES = {
    "EquilibriumDB": "database",
    "RewriteDatabase": "database",
    "SequenceDB": "database",
    "MergeOptimizer": "merge",
    "PatternNodeRewriter": "pattern",
    "DEFAULT_QUERY": "pipeline",
    "describe": "pipeline",
    "optdb": "pipeline",
    "rewrite_graph": "pipeline",
    "RewriteReport": "rewriters",
    "EquilibriumGraphRewriter": "rewriters",
    "GraphRewriter": "rewriters",
    "NodeRewriter": "rewriters",
    "SequentialGraphRewriter": "rewriters",
    "node_rewriter": "rewriters",
}

__all__ = [
    "DEFAULT_QUERY",
    "EquilibriumDB",
    "EquilibriumGraphRewriter",
    "GraphRewriter",
    "MergeOptimizer",
    "NodeRewriter",
    "PatternNodeRewriter",
    "RewriteDatabase",
    "RewriteDatabaseQuery",
    "RewriteReport",
    "SequenceDB",
    "SequentialGraphRewriter",
    "describe",
    "node_rewriter",
    "optdb",
    "rewrite_graph",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
