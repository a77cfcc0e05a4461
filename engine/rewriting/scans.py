"""Rewriting of Scans: each is taken apart, reduced, and rebuilt in place.

The last Scan comes first: then Scans before it need not compute what it no longer uses. New nodes outside
the loops are canonicalized, which may permit further reductions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from engine.graph.fgraph import FunctionGraph
from engine.graph.rewrite_query import RewriteDatabaseQuery
from engine.inner.scan import Scan
from engine.rewriting.database import Description, EquilibriumDB, RewriteDatabase
from engine.rewriting.equilibrium import EquilibriumGraphRewriter
from engine.rewriting.opened_scans import OpenedScan
from engine.rewriting.passes.scan_inputs import (
    drop_unused_outputs,
    fill_with_invariants,
    merge_inputs,
    push_out_invariants,
)
from engine.rewriting.passes.scan_products import push_out_products
from engine.rewriting.passes.scan_traces import reduce_traces, share_lengths
from engine.rewriting.rewriters import GraphRewriter, RewriteReport

Edit = Callable[[OpenedScan], None]

CLEAN: tuple[Edit, ...] = (share_lengths, drop_unused_outputs, merge_inputs, reduce_traces)
"""Edits that remove work from the graph of a step, and add none."""

MOST_ROUNDS = 8


class ScanRewriter(GraphRewriter):
    """A rewrite of all Scans by `edits`, and of the graph around by `canonicalize`, to a fixed point."""

    def __init__(
        self, name: str, edits: Sequence[Edit], canonicalize: EquilibriumGraphRewriter | None = None
    ) -> None:
        self.name = name
        self.edits = edits
        self.canonicalize = canonicalize

    def run(self, fgraph: FunctionGraph, report: RewriteReport) -> None:
        for _ in range(MOST_ROUNDS):
            if not self._change_all(fgraph, report):
                break

    def _change_all(self, fgraph: FunctionGraph, report: RewriteReport) -> bool:
        if self.canonicalize is None:
            return self._change(fgraph, report)
        return self.canonicalize.apply_after(lambda: self._change(fgraph, report), fgraph, report)

    def _change(self, fgraph: FunctionGraph, report: RewriteReport) -> bool:
        is_changed = False
        for node in reversed(fgraph.toposort()):
            if isinstance(node.op, Scan) and node in fgraph.apply_nodes and not _overwrites(node.op):
                scan = OpenedScan(fgraph, node)
                for edit in self.edits:
                    edit(scan)
                if scan.close(self.name):
                    report.count(self.name)
                    is_changed = True
        return is_changed


class ScanDB(RewriteDatabase[Any]):
    """The rewrites of Scans, with those of `canonicalize` for the graph around."""

    def __init__(self, name: str, canonicalize: EquilibriumDB) -> None:
        super().__init__(name)
        self.canonicalize = canonicalize

    def query(self, *query: RewriteDatabaseQuery | str) -> ScanRewriter:
        """Return the rewriter of Scans, with the rewrites that `query` chooses for the graph around."""
        edits = (push_out_invariants, fill_with_invariants, *CLEAN, push_out_products)
        return ScanRewriter(self.name, edits, self.canonicalize.query(*query))

    def describe(self, query: RewriteDatabaseQuery) -> Description:
        return self.canonicalize.describe(query)


def _overwrites(op: Scan) -> bool:
    """Return True if a node of the step overwrites: then the graph has a fixed order and is not changed."""
    return any(node.op.destroy_map for node in op.fgraph.nodes)
