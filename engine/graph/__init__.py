"""The graph core: types, variables, Apply, Op, mutable and frozen graphs."""

from engine.graph.apply import Apply
from engine.graph.features import Feature, register_feature_callback
from engine.graph.fgraph import FunctionGraph, Output
from engine.graph.frozen import (
    FrozenApply,
    FrozenConstant,
    FrozenFunctionGraph,
    FrozenVariable,
    NominalVariable,
)
from engine.graph.op import Op
from engine.graph.replace import clone, clone_get_equiv, clone_replace, rebuild
from engine.graph.traversal import (
    ancestors,
    applys_between,
    explicit_graph_inputs,
    graph_inputs,
    io_toposort,
    toposort,
    vars_between,
)
from engine.graph.types import Type
from engine.graph.variables import Constant, Variable

__all__ = [
    "Apply",
    "Constant",
    "Feature",
    "FrozenApply",
    "FrozenConstant",
    "FrozenFunctionGraph",
    "FrozenVariable",
    "FunctionGraph",
    "NominalVariable",
    "Op",
    "Output",
    "Type",
    "Variable",
    "ancestors",
    "applys_between",
    "clone",
    "clone_get_equiv",
    "clone_replace",
    "explicit_graph_inputs",
    "graph_inputs",
    "io_toposort",
    "rebuild",
    "register_feature_callback",
    "toposort",
    "vars_between",
]
