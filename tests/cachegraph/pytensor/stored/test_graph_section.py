"""Frozen graphs are stored, and come back as the same objects."""

from __future__ import annotations

from typing import Any

import pytensor.scalar as ps
from pytensor.graph.fg import FrozenFunctionGraph

from cachegraph.pytensor.stored.externals import Context
from cachegraph.pytensor.stored.graph_section import pack_frozen, unpack_frozen


def stored_and_read(graph: Any) -> Any:
    external = Context().external()
    return unpack_frozen(pack_frozen(graph, external), external)


def test_a_frozen_graph_comes_back_as_it_was() -> None:
    x, y = ps.float64("x"), ps.float64("y")
    frozen = FrozenFunctionGraph.from_io([x, y], [ps.exp(x * y) + x, y])
    found = stored_and_read(frozen)
    assert found == frozen
    assert found.outputs == frozen.outputs


def test_a_graph_that_had_equal_nodes_is_stored_too() -> None:
    x = ps.float64("x")
    first, second = ps.exp(x), ps.exp(x)
    outputs = [ps.sqr(second) + first, ps.neg(second), ps.sin(first)]
    frozen = FrozenFunctionGraph.from_io([x], outputs, dedup_nodes=True)
    assert len(set(frozen.toposort())) < len(frozen.toposort()), "PyTensor lists a node once"
    found = stored_and_read(frozen)
    assert found == frozen
    assert found.toposort() == frozen.toposort()
