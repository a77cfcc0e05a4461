"""The graph core: types, variables, Apply, Op, mutable and frozen graphs."""

from engine.graph.apply import Apply
from engine.graph.dot import to_dot, to_svg
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
from engine.graph.replace import (
    clone,
    clone_get_equiv,
    clone_replace,
    equal_computations,
    graph_replace,
    rebuild,
)
from engine.graph.traversal import (
    ancestors,
    apply_depends_on,
    applys_between,
    explicit_graph_inputs,
    get_var_by_name,
    graph_inputs,
    io_toposort,
    orphans_between,
    toposort,
    truncated_graph_inputs,
    variable_depends_on,
    vars_between,
    walk,
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
    "apply_depends_on",
    "applys_between",
    "clone",
    "clone_get_equiv",
    "clone_replace",
    "equal_computations",
    "explicit_graph_inputs",
    "get_var_by_name",
    "graph_inputs",
    "graph_replace",
    "io_toposort",
    "orphans_between",
    "rebuild",
    "register_feature_callback",
    "to_dot",
    "to_svg",
    "toposort",
    "truncated_graph_inputs",
    "variable_depends_on",
    "vars_between",
    "walk",
]
