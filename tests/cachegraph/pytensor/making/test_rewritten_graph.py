"""A graph that is rewritten quickly becomes the graph that PyTensor makes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.debug.profiling import ProfileStats
from pytensor.compile.io import In, Out
from pytensor.compile.maker import FunctionMaker
from pytensor.graph.basic import Constant
from pytensor.graph.features import Feature
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import MergeFeature, MergeOptimizer
from pytensor.graph.traversal import ancestors
from pytensor.graph.utils import MissingInputError

from cachegraph.pytensor.making.rewritten_graph import RewrittenGraph, rewritten_quickly
from cachegraph.pytensor.making.uncached import UncachedMaking
from tests.cachegraph.pytensor.models import MODELS

MODES = ["NUMBA", "FAST_COMPILE"]
MERGE = MergeOptimizer()


def density() -> tuple[list[Any], list[Any]]:
    """A graph with many rewrites: a density of a few variables and its gradient, with repeated constants."""
    values = [pt.vector(f"value_{number}") for number in range(6)]
    total: Any = 0.0
    for number, value in enumerate(values):
        scale = pt.exp(value[0]) + 1.0
        total += (-0.5 * ((value - number) / scale) ** 2 - pt.log(scale) - 0.5 * np.log(2 * np.pi)).sum()
        total += pt.log(pt.sigmoid(value)).sum() + pt.switch(value > 0, value, -np.inf).max()
    return values, [total, *pytensor.grad(total, values)]


GRAPHS: dict[str, Callable[[], tuple[list[Any], list[Any]]]] = {"density": density, **MODELS}
del GRAPHS["draws"]  # pytensor.function adds its shared generator to the inputs


def copied(inputs: list[Any], outputs: list[Any]) -> tuple[list[Any], list[Any]]:
    graph = FunctionGraph(inputs, outputs)
    return [In(variable) for variable in graph.inputs], [Out(variable) for variable in graph.outputs]


def told(fgraph: FunctionGraph) -> list[Any]:
    """All that can be seen of a graph: its nodes in order, their constants, and which rewrites made them."""
    found: list[Any] = [pytensor.dprint(fgraph, file="str", print_type=True)]
    for node in fgraph.toposort():
        imported = [t for t in getattr(node.tag, "imported_by", []) if not t.startswith("('Revert'")]
        data = [repr(v.data) for v in node.inputs if isinstance(v, Constant)]
        found.append((str(node.op), imported, data, [len(fgraph.clients[v]) for v in node.outputs]))
    return found


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", GRAPHS)
def test_the_graph_is_the_one_that_pytensor_makes(name: str, mode: str) -> None:
    inputs, outputs = GRAPHS[name]()
    due = FunctionMaker(*copied(inputs, outputs), mode=mode, on_unused_input="ignore").fgraph
    found = UncachedMaking(*copied(inputs, outputs), mode=mode).rewrite()
    assert told(found) == told(due)
    found.check_integrity()
    assert type(found) is FunctionGraph
    assert [type(feature) for feature in found._features] == [type(feature) for feature in due._features]
    assert vars(found).keys() - {"_execute_callbacks_times_dict"} == vars(due).keys() - {
        "_execute_callbacks_times_dict"
    }


class Listener(Feature):
    """Keeps what it hears."""

    def __init__(self) -> None:
        self.heard: list[tuple[Any, ...]] = []

    def on_import(self, fgraph: Any, node: Any, reason: Any) -> None:
        self.heard.append(("import", node, reason))

    def on_prune(self, fgraph: Any, node: Any, reason: Any) -> None:
        self.heard.append(("prune", node, reason))

    def on_change_input(self, fgraph: Any, node: Any, i: int, r: Any, new_r: Any, reason: Any = None) -> None:
        self.heard.append(("change", node, i, r, new_r, reason))


def heard_in(quickly: bool) -> list[tuple[Any, ...]]:
    """What two listeners hear of the same replacements, nodes by their places in what was built."""
    x, y = pt.vectors("x", "y")
    old = pt.exp(x)
    outputs = [old * y, old + pt.tanh(old)]
    fgraph = FunctionGraph([x, y], outputs, clone=False)
    inner = pt.log1p(y)
    new = inner * pt.sqrt(inner + x)
    later, first = Listener(), Listener()

    with rewritten_quickly(fgraph) if quickly else nullcontext():
        assert isinstance(fgraph, RewrittenGraph) == quickly
        fgraph.attach_feature(first)
        fgraph.replace(old, new, reason="first")
        fgraph.attach_feature(later)
        fgraph.remove_feature(first)
        fgraph.replace(new, old, reason=MERGE)
        fgraph.replace_all_validate([(fgraph.outputs[0], x)], reason="last")
    known = [v.owner for v in ancestors([*outputs, new, old]) if v.owner is not None]
    return [
        tuple(known.index(part) if part in known else str(part) for part in event)
        for event in (*first.heard, *later.heard)
    ]


def test_features_hear_the_same_in_the_same_order_from_when_they_come_to_when_they_go() -> None:
    found = heard_in(quickly=True)
    assert found == heard_in(quickly=False)
    assert len(found) > 8


@pytest.mark.parametrize("quickly", [True, False])
def test_a_replacement_that_needs_another_input_is_refused_with_pytensors_message(quickly: bool) -> None:
    x, missing = pt.vectors("x", "missing")
    fgraph = FunctionGraph([x], [pt.exp(x)], clone=False)
    due = pytest.raises(MissingInputError, match=r"Input 0 \(missing\) of the graph .* was not provided")
    with due, rewritten_quickly(fgraph) if quickly else nullcontext():
        fgraph.replace(fgraph.outputs[0], pt.tanh(pt.log(missing)), reason="a rewrite")


def test_a_missing_input_is_added_where_that_is_asked_for() -> None:
    x, missing = pt.vectors("x", "missing")
    fgraph = FunctionGraph([x], [pt.exp(x)], clone=False)
    with rewritten_quickly(fgraph):
        fgraph.replace(fgraph.outputs[0], pt.tanh(x + pt.log(missing)), import_missing=True)
    assert fgraph.inputs == [x, missing]
    fgraph.check_integrity()


CONSTANTS = [
    [0.5, 0.5, 0.25, 0.5],
    [0.0, -0.0, 0.0, -0.0],
    [np.nan, np.nan, 1.0, np.nan],
    [np.inf, -np.inf, np.inf, 0.0],
    [np.arange(3.0), np.arange(3.0), np.arange(3.0)[::-1].copy(), [0.0, np.nan, 2.0]],
    [np.int8(1), np.float32(1), np.float64(1), np.int64(1), True],
    [np.zeros(500), np.zeros(500), np.ones(500)],
    [np.zeros((0, 2)), np.zeros((2, 0)), np.zeros((0, 2))],
]


@pytest.mark.parametrize("values", CONSTANTS, ids=str)
def test_the_constants_are_merged_that_pytensor_merges(values: list[Any]) -> None:
    def merged(quickly: bool) -> list[list[int]]:
        x = pt.dscalar("x")
        fgraph = FunctionGraph([x], [pt.add(x, pt.constant(value)) for value in values], clone=False)
        with rewritten_quickly(fgraph) if quickly else nullcontext():
            MergeOptimizer().rewrite(fgraph)
        assert type(fgraph.merge_feature) is MergeFeature
        constants = [output.owner.inputs[1] for output in fgraph.outputs]
        constants = [v if isinstance(v, Constant) else v.owner.inputs[0] for v in constants]
        return [[index for index, other in enumerate(constants) if other is one] for one in constants]

    assert merged(quickly=True) == merged(quickly=False)


def test_a_constant_that_was_pruned_is_not_merged_with() -> None:
    x = pt.dscalar("x")
    fgraph = FunctionGraph([x], [x * pt.constant(0.5)], clone=False)
    with rewritten_quickly(fgraph):
        MergeOptimizer().rewrite(fgraph)
        fgraph.replace(fgraph.outputs[0], x)
        fgraph.replace(fgraph.outputs[0], x + pt.constant(0.5))
        fgraph.replace(fgraph.outputs[0], fgraph.outputs[0] * pt.constant(0.5))
        MergeOptimizer().rewrite(fgraph)
    product = fgraph.outputs[0].owner
    assert product.inputs[1] is product.inputs[0].owner.inputs[1]
    fgraph.check_integrity()


def test_a_rewrite_that_fails_leaves_the_class_that_the_graph_had() -> None:
    x = pt.vector("x")
    fgraph = FunctionGraph([x], [pt.exp(x)], clone=False)

    def rewrite() -> None:
        with rewritten_quickly(fgraph):
            MergeOptimizer().add_requirements(fgraph)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rewrite()
    assert type(fgraph) is FunctionGraph
    assert type(fgraph.merge_feature) is MergeFeature
    assert not {"_callbacks", "_texts"} & vars(fgraph).keys()
    assert "same_bytes" not in vars(fgraph.merge_feature)


def test_a_graph_with_a_profile_keeps_the_times_of_its_features() -> None:
    x = pt.vector("x")
    fgraph = FunctionGraph([x], [pt.exp(x)], clone=False)
    fgraph.profile = ProfileStats(atexit_print=False)
    with rewritten_quickly(fgraph):
        assert type(fgraph) is FunctionGraph


def test_a_class_of_somebody_elses_stays() -> None:
    class Own(FunctionGraph):
        pass

    x = pt.vector("x")
    fgraph = Own([x], [pt.exp(x)], clone=False)
    with rewritten_quickly(fgraph):
        assert type(fgraph) is Own
    assert type(fgraph) is Own


def test_a_copy_made_while_the_graph_is_rewritten_is_pytensors() -> None:
    x = pt.vector("x")
    fgraph = FunctionGraph([x], [pt.exp(x)], clone=False)
    with rewritten_quickly(fgraph):
        MergeOptimizer().add_requirements(fgraph)
        copy = fgraph.clone()
    assert type(copy) is FunctionGraph
    assert type(copy.merge_feature) is MergeFeature
