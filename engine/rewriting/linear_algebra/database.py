"""The rewriter of the linear algebra of a graph, and what a user assumes, removed from the graph."""

from __future__ import annotations

from typing import Any

from engine.assumptions import ALL_KEYS, AssumptionFeature, SpecifyAssumptions
from engine.graph import FunctionGraph, Op
from engine.graph.rewrite_query import RewriteDatabaseQuery
from engine.inner.diagonals import AllocDiag, ExtractDiag
from engine.rewriting.database import EquilibriumDB
from engine.rewriting.equilibrium import EquilibriumGraphRewriter
from engine.rewriting.linear_algebra.core_rewriter import core_of
from engine.rewriting.merge import MergeOptimizer
from engine.rewriting.rewriters import GraphRewriter, RewriteReport
from engine.tensor.linalg.matrix_op import MatrixOp
from engine.tensor.ordering import SortOp
from engine.tensor.replaced_op import ReplacedOp
from engine.tensor.subtensor import AdvancedIncSubtensor, AdvancedSubtensor

_KEY_OF = {key.name: key for key in ALL_KEYS}
_MATRIX_OPS = (MatrixOp, ReplacedOp, AllocDiag, ExtractDiag, SpecifyAssumptions)
_OF_ELEMENTS = (AdvancedSubtensor, AdvancedIncSubtensor, SortOp)


class DrainSpecifyAssumptions(GraphRewriter):
    """The replacement of every `assume(x)` by x. An AssumptionFeature remembers what it said."""

    name = "drain_specify_assumptions"

    def run(self, fgraph: FunctionGraph, report: RewriteReport) -> None:
        """Rewrite `fgraph`. Raises ConflictingAssumptionsError if it contradicts what is found out."""
        nodes = [node for node in fgraph.toposort() if isinstance(node.op, SpecifyAssumptions)]
        if not nodes:
            return
        fgraph.attach_feature(AssumptionFeature())
        for node in nodes:
            assert isinstance(node.op, SpecifyAssumptions)
            for name, _ in node.op.assumptions:
                fgraph.assumption_feature.get(node.outputs[0], _KEY_OF[name])
        for node in nodes:
            fgraph.replace_all([(node.outputs[0], node.inputs[0])], self.name)
            report.count(self.name)


class LinearAlgebraRewriter(GraphRewriter):
    """The rewrites of linear algebra on a merged graph, if it has any."""

    name = "linear_algebra"

    def __init__(self, equilibrium: EquilibriumGraphRewriter) -> None:
        self.equilibrium = equilibrium

    def run(self, fgraph: FunctionGraph, report: RewriteReport) -> None:
        assumed = [feature for feature in fgraph.features if isinstance(feature, AssumptionFeature)]
        if assumed or any(_is_of_matrices(core_of(node)) for node in fgraph.apply_nodes):
            MergeOptimizer().run(fgraph, report)
            self.equilibrium.run(fgraph, report)
        for feature in fgraph.features:
            if isinstance(feature, AssumptionFeature):
                fgraph.remove_feature(feature)


def _is_of_matrices(op: Op) -> bool:
    return isinstance(op, _MATRIX_OPS) and not isinstance(op, _OF_ELEMENTS)


class LinearAlgebraDB(EquilibriumDB):
    """The rewrites of linear algebra by name and tags."""

    def query(self, *query: RewriteDatabaseQuery | str) -> Any:
        """Return the rewriter with the chosen rewrites."""
        return LinearAlgebraRewriter(super().query(*query))
