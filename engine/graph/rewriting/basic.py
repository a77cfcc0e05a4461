"""Rewriters of nodes and of graphs, under PyTensor's path."""

from engine.rewriting.equilibrium import EquilibriumGraphRewriter, NodeProcessingGraphRewriter
from engine.rewriting.merge import MergeOptimizer
from engine.rewriting.patterns import PatternNodeRewriter
from engine.rewriting.rewriters import (
    FromFunctionGraphRewriter,
    FromFunctionNodeRewriter,
    GraphRewriter,
    NodeRewriter,
    SequentialGraphRewriter,
    copy_stack_trace,
    graph_rewriter,
    node_rewriter,
)
from engine.rewriting.tracking import OpToRewriterTracker, pre_constant_merge
from engine.rewriting.walking import (
    SequentialNodeRewriter,
    SubstitutionNodeRewriter,
    WalkingGraphRewriter,
    dfs_rewriter,
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
    "NodeProcessingGraphRewriter",
    "NodeRewriter",
    "OpToRewriterTracker",
    "PatternNodeRewriter",
    "SequentialGraphRewriter",
    "SequentialNodeRewriter",
    "SubstitutionNodeRewriter",
    "WalkingGraphRewriter",
    "copy_stack_trace",
    "dfs_rewriter",
    "graph_rewriter",
    "in2out",
    "node_rewriter",
    "out2in",
    "pre_constant_merge",
    "walking_rewriter",
]
