"""Rewriting of graphs: rewriters, databases of rewrites, and the pipeline for compiled functions.

Names are imported at first use: a function from the cache needs none of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from engine.graph.rewrite_query import RewriteDatabaseQuery

if TYPE_CHECKING:
    from engine.rewriting.database import (
        EquilibriumDB,
        LocalGroupDB,
        ProxyDB,
        RewriteDatabase,
        SequenceDB,
        TopoDB,
    )
    from engine.rewriting.equilibrium import EquilibriumGraphRewriter, NodeProcessingGraphRewriter
    from engine.rewriting.merge import MergeOptimizer
    from engine.rewriting.passes.draws import (
        local_dimshuffle_rv_lift,
        local_rv_size_lift,
        local_subtensor_rv_lift,
        sidestep_unused_rng_consumer,
    )
    from engine.rewriting.patterns import PatternNodeRewriter
    from engine.rewriting.pipeline import DEFAULT_QUERY, describe, optdb, rewrite_graph, run_pipeline
    from engine.rewriting.rewriters import (
        FromFunctionGraphRewriter,
        GraphRewriter,
        NodeRewriter,
        RewriteReport,
        SequentialGraphRewriter,
        graph_rewriter,
        node_rewriter,
    )
    from engine.rewriting.shape_feature import ShapeFeature, ShapeOptimizer
    from engine.rewriting.unification import LiteralString, OpPattern
    from engine.rewriting.walking import (
        SequentialNodeRewriter,
        SubstitutionNodeRewriter,
        WalkingGraphRewriter,
        dfs_rewriter,
        in2out,
        out2in,
        walking_rewriter,
    )

_MODULES = {
    "EquilibriumDB": "database",
    "LocalGroupDB": "database",
    "ProxyDB": "database",
    "TopoDB": "database",
    "RewriteDatabase": "database",
    "SequenceDB": "database",
    "MergeOptimizer": "merge",
    "LiteralString": "unification",
    "OpPattern": "unification",
    "PatternNodeRewriter": "patterns",
    "local_dimshuffle_rv_lift": "passes.draws",
    "local_rv_size_lift": "passes.draws",
    "local_subtensor_rv_lift": "passes.draws",
    "sidestep_unused_rng_consumer": "passes.draws",
    "ShapeFeature": "shape_feature",
    "ShapeOptimizer": "shape_feature",
    "DEFAULT_QUERY": "pipeline",
    "describe": "pipeline",
    "optdb": "pipeline",
    "rewrite_graph": "pipeline",
    "run_pipeline": "pipeline",
    "RewriteReport": "rewriters",
    "EquilibriumGraphRewriter": "equilibrium",
    "NodeProcessingGraphRewriter": "equilibrium",
    "FromFunctionGraphRewriter": "rewriters",
    "GraphRewriter": "rewriters",
    "NodeRewriter": "rewriters",
    "SequentialGraphRewriter": "rewriters",
    "graph_rewriter": "rewriters",
    "node_rewriter": "rewriters",
    "SequentialNodeRewriter": "walking",
    "dfs_rewriter": "walking",
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
    "LocalGroupDB",
    "MergeOptimizer",
    "NodeProcessingGraphRewriter",
    "NodeRewriter",
    "OpPattern",
    "PatternNodeRewriter",
    "ProxyDB",
    "RewriteDatabase",
    "RewriteDatabaseQuery",
    "RewriteReport",
    "SequenceDB",
    "SequentialGraphRewriter",
    "SequentialNodeRewriter",
    "ShapeFeature",
    "ShapeOptimizer",
    "SubstitutionNodeRewriter",
    "TopoDB",
    "WalkingGraphRewriter",
    "describe",
    "dfs_rewriter",
    "graph_rewriter",
    "in2out",
    "local_dimshuffle_rv_lift",
    "local_rv_size_lift",
    "local_subtensor_rv_lift",
    "node_rewriter",
    "optdb",
    "out2in",
    "rewrite_graph",
    "run_pipeline",
    "sidestep_unused_rng_consumer",
    "walking_rewriter",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
