"""Rewriters of nodes and of graphs, under PyTensor's path."""

from engine.rewriting.merge import MergeOptimizer
from engine.rewriting.patterns import PatternNodeRewriter
from engine.rewriting.rewriters import (
    EquilibriumGraphRewriter,
    FromFunctionGraphRewriter,
    FromFunctionNodeRewriter,
    GraphRewriter,
    NodeRewriter,
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

__all__ = [
    "EquilibriumGraphRewriter",
    "FromFunctionGraphRewriter",
    "FromFunctionNodeRewriter",
    "GraphRewriter",
    "MergeOptimizer",
    "NodeRewriter",
    "PatternNodeRewriter",
    "SequentialGraphRewriter",
    "SequentialNodeRewriter",
    "SubstitutionNodeRewriter",
    "WalkingGraphRewriter",
    "graph_rewriter",
    "in2out",
    "node_rewriter",
    "out2in",
    "walking_rewriter",
]
