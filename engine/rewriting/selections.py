"""The rewriting of indices with several arrays or masks, before graphs of rows take their places."""

from __future__ import annotations

from typing import Any

from engine.assumptions import AssumptionFeature
from engine.graph import Apply, FunctionGraph
from engine.graph.rewrite_query import RewriteDatabaseQuery
from engine.rewriting.database import EquilibriumDB
from engine.rewriting.equilibrium import EquilibriumGraphRewriter
from engine.rewriting.merge import MergeOptimizer
from engine.rewriting.passes.lifted_parts import local_subtensor_of_batch_dims
from engine.rewriting.passes.lifted_selections import LIFTED_SELECTIONS
from engine.rewriting.passes.reads_of_writes import local_advanced_read_of_write_constant_indices
from engine.rewriting.passes.selected_slices import SELECTED_SLICES
from engine.rewriting.passes.selected_writes import local_set_to_inc_subtensor
from engine.rewriting.passes.slices import local_read_of_write_same_indices
from engine.rewriting.passes.written_parts import local_write_of_write_same_indices
from engine.rewriting.rewriters import GraphRewriter, RewriteReport
from engine.tensor import AdvancedIncSubtensor, AdvancedSubtensor

SELECTIONS = (
    local_read_of_write_same_indices,
    local_advanced_read_of_write_constant_indices,
    local_write_of_write_same_indices,
    local_set_to_inc_subtensor,
    *SELECTED_SLICES,
    *LIFTED_SELECTIONS,
    local_subtensor_of_batch_dims,
)
"""Tried in this order on each node until none applies. The canonical forms of other indices have them too."""


class SelectionRewriter(GraphRewriter):
    """The rewrites of selections on a merged graph, if it has an index that rows will replace, or a user said
    something of one.
    """

    name = "selections"

    def __init__(self, equilibrium: EquilibriumGraphRewriter) -> None:
        self.equilibrium = equilibrium

    def run(self, fgraph: FunctionGraph, report: RewriteReport) -> None:
        is_assumed = any(isinstance(feature, AssumptionFeature) for feature in fgraph.features)
        if is_assumed or any(_is_replaced(node) for node in fgraph.apply_nodes):
            MergeOptimizer().run(fgraph, report)
            self.equilibrium.run(fgraph, report)


def _is_replaced(node: Apply) -> bool:
    return isinstance(node.op, AdvancedSubtensor | AdvancedIncSubtensor) and node.op.is_replaced(node.inputs)


class SelectionDB(EquilibriumDB):
    """The rewrites of selections by name and tags."""

    def query(self, *query: RewriteDatabaseQuery | str) -> Any:
        """Return the rewriter with the chosen rewrites."""
        return SelectionRewriter(super().query(*query))


def selection_database() -> SelectionDB:
    """Return the database of these rewrites. Canonical forms have them under the same names and tags."""
    database = SelectionDB(SelectionRewriter.name)
    for rewriter in SELECTIONS:
        database.register(rewriter.name, rewriter, "fast_run", "fast_compile", use_db_name_as_tag=False)
    return database
