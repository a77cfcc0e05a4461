"""Rewriting of graphs: rewriters, databases of rewrites, and the pipeline for compiled functions.

Names are imported at first use: a function from the cache needs none of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from engine.graph.rewrite_query import RewriteDatabaseQuery

if TYPE_CHECKING:
    from engine.rewriting.database import EquilibriumDB, RewriteDatabase, SequenceDB
    from engine.rewriting.merge import MergeOptimizer
    from engine.rewriting.patterns import LiteralString, OpPattern, PatternNodeRewriter
    from engine.rewriting.pipeline import DEFAULT_QUERY, describe, optdb, rewrite_graph, run_pipeline
    from engine.rewriting.rewriters import (
        EquilibriumGraphRewriter,
        FromFunctionGraphRewriter,
        GraphRewriter,
        NodeRewriter,
        RewriteReport,
        SequentialGraphRewriter,
        graph_rewriter,
        node_rewriter,
    )
    from engine.rewriting.walking import (
        SequentialNodeRewriter,
        SubstitutionNodeRewriter,
        WalkingGraphRewriter,
        in2out,
        out2in,
        walking_rewriter,
    )

_MODULES = {
    "EquilibriumDB": "database",
    "RewriteDatabase": "database",
    "SequenceDB": "database",
    "MergeOptimizer": "merge",
    "LiteralString": "patterns",
    "OpPattern": "patterns",
    "PatternNodeRewriter": "patterns",
    "DEFAULT_QUERY": "pipeline",
    "describe": "pipeline",
    "optdb": "pipeline",
    "rewrite_graph": "pipeline",
    "run_pipeline": "pipeline",
    "RewriteReport": "rewriters",
    "EquilibriumGraphRewriter": "rewriters",
    "FromFunctionGraphRewriter": "rewriters",
    "GraphRewriter": "rewriters",
    "NodeRewriter": "rewriters",
    "SequentialGraphRewriter": "rewriters",
    "graph_rewriter": "rewriters",
    "node_rewriter": "rewriters",
    "SequentialNodeRewriter": "walking",
    "SubstitutionNodeRewriter": "walking",
    "WalkingGraphRewriter": "walking",
    "in2out": "walking",
    "out2in": "walking",
    "walking_rewriter": "walking",
}

__all__ = [
    "DEFAULT_QUERY",
    "EquilibriumDB",
    "EquilibriumGraphRewriter",
    "FromFunctionGraphRewriter",
    "GraphRewriter",
    "LiteralString",
    "MergeOptimizer",
    "NodeRewriter",
    "OpPattern",
    "PatternNodeRewriter",
    "RewriteDatabase",
    "RewriteDatabaseQuery",
    "RewriteReport",
    "SequenceDB",
    "SequentialGraphRewriter",
    "SequentialNodeRewriter",
    "SubstitutionNodeRewriter",
    "WalkingGraphRewriter",
    "describe",
    "graph_rewriter",
    "in2out",
    "node_rewriter",
    "optdb",
    "out2in",
    "rewrite_graph",
    "run_pipeline",
    "walking_rewriter",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
