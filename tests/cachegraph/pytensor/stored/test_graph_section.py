"""Frozen graphs are stored, and come back as the same objects."""

from __future__ import annotations

from typing import Any

import pytensor.scalar as ps
import pytensor.tensor as pt
from pytensor.compile.builders import OpFromGraph
from pytensor.graph.basic import Apply
from pytensor.graph.fg import FrozenFunctionGraph, FunctionGraph
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.type import TensorType

from cachegraph.pytensor.describe.held_arrays import HeldArrays
from cachegraph.pytensor.stored.externals import Context
from cachegraph.pytensor.stored.graph_section import (
    GraphTable,
    inner_graphs,
    pack_frozen,
    unpack_frozen,
)


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


def test_equal_types_of_tensors_are_stored_once_unless_anything_of_them_differs() -> None:
    x = pt.dvector("x")
    named = TensorType("float64", (None,), name="named")
    results = [pt.exp(x), pt.log(x), pt.sum(x), Apply(pt.exp.make_node(x).op, [x], [named()]).outputs[0]]
    results[0].type.checked = True
    graph = FunctionGraph([x], [*results, pt.sin(x)], clone=False)
    section = GraphTable([x], graph.toposort(), graph.outputs, HeldArrays()).section
    assert len(section.types) == 4
    _, found = section.rebuild(
        [x], lambda op, inputs, types, _: Apply(op, inputs, [t() for t in types]).outputs
    )
    assert [(v.type, v.type.name) for v in found] == [(v.type, v.type.name) for v in graph.outputs]


def test_graphs_within_ops_are_found_wherever_an_op_holds_them() -> None:
    x = pt.dvector("x")
    a, b = ps.float64("a"), ps.float64("b")
    composite = Elemwise(ps.Composite([a, b], [ps.exp(a) * b]))
    inner = OpFromGraph([x], [composite(x, x)])
    outputs = [pt.exp(x), composite(x, x), inner(x)]
    ops = [variable.owner.op for variable in outputs]
    found = inner_graphs([*ops, *ops], Context().external())
    assert {composite.scalar_op.fgraph, inner.fgraph} <= set(found)
    assert found.index(composite.scalar_op.fgraph) < found.index(inner.fgraph)
