"""Rewriting of graphs: rewriters, the databases that name them, and the pipeline that a compiled function gets."""

from engine.rewriting.database import EquilibriumDB, RewriteDatabase, RewriteDatabaseQuery, SequenceDB
from engine.rewriting.merge import MergeOptimizer
from engine.rewriting.pattern import PatternNodeRewriter
from engine.rewriting.pipeline import DEFAULT_QUERY, describe, optdb, rewrite_graph
from engine.rewriting.report import RewriteReport
from engine.rewriting.rewriters import (
    EquilibriumGraphRewriter,
    GraphRewriter,
    NodeRewriter,
    SequentialGraphRewriter,
    node_rewriter,
)

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
