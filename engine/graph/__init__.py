"""The graph core: types, variables, nodes, Ops, and graphs in mutable and frozen form."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from engine.graph.apply import Apply
from engine.graph.fgraph import FrozenFunctionGraph, FunctionGraph, Output
from engine.graph.frozen_nodes import FrozenApply, FrozenConstant, FrozenVariable, NominalVariable
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

if TYPE_CHECKING:
    from engine.graph.dot import to_dot, to_svg
    from engine.graph.features import (
        AlreadyThere,
        DestroyHandler,
        Feature,
        FullHistory,
        History,
        NodeFinder,
        NoOutputFromInplace,
        PreserveVariableAttributes,
        PrintListener,
        ReplacementDidNotRemoveError,
        ReplaceValidate,
        Supervisor,
        Validator,
        register_feature_callback,
    )

__all__ = [
    "AlreadyThere",
    "Apply",
    "Constant",
    "DestroyHandler",
    "Feature",
    "FrozenApply",
    "FrozenConstant",
    "FrozenFunctionGraph",
    "FrozenVariable",
    "FullHistory",
    "FunctionGraph",
    "History",
    "NoOutputFromInplace",
    "NodeFinder",
    "NominalVariable",
    "Op",
    "Output",
    "PreserveVariableAttributes",
    "PrintListener",
    "ReplaceValidate",
    "ReplacementDidNotRemoveError",
    "Supervisor",
    "Type",
    "Validator",
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

_FEATURES = frozenset(
    "AlreadyThere DestroyHandler Feature FullHistory History NodeFinder NoOutputFromInplace PrintListener "
    "PreserveVariableAttributes ReplaceValidate ReplacementDidNotRemoveError Supervisor Validator "
    "register_feature_callback".split()
)
"""Public names of the features, which a model whose graph does not change has no use for."""


def __getattr__(name: str) -> Any:
    if name in ("to_dot", "to_svg"):
        return getattr(import_module("engine.graph.dot"), name)
    if name not in _FEATURES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("engine.graph.features"), name)
