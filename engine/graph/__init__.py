"""The graph core: types, variables, nodes, Ops, and graphs in mutable and frozen form."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.graph.apply import Apply
    from engine.graph.dot import to_dot
    from engine.graph.drawing.svg import to_html, to_svg
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
        general_toposort,
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
    from engine.rewriting.pipeline import rewrite_graph
    from engine.tensor.blockwise import vectorize_graph, vectorize_node

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
    "general_toposort",
    "get_var_by_name",
    "graph_inputs",
    "graph_replace",
    "io_toposort",
    "orphans_between",
    "rebuild",
    "register_feature_callback",
    "rewrite_graph",
    "to_dot",
    "to_html",
    "to_svg",
    "toposort",
    "truncated_graph_inputs",
    "variable_depends_on",
    "vars_between",
    "vectorize_graph",
    "vectorize_node",
    "walk",
]

_NAMES = {
    "apply": "Apply",
    "dot": "to_dot",
    "drawing.svg": "to_html to_svg",
    "features": "AlreadyThere DestroyHandler Feature FullHistory History NodeFinder NoOutputFromInplace "
    "PreserveVariableAttributes PrintListener ReplacementDidNotRemoveError ReplaceValidate Supervisor "
    "Validator register_feature_callback",
    "fgraph": "FrozenFunctionGraph FunctionGraph Output",
    "frozen_nodes": "FrozenApply FrozenConstant FrozenVariable NominalVariable",
    "op": "Op",
    "replace": "clone clone_get_equiv clone_replace equal_computations graph_replace rebuild",
    "traversal": "ancestors apply_depends_on applys_between explicit_graph_inputs general_toposort "
    "get_var_by_name graph_inputs io_toposort orphans_between toposort truncated_graph_inputs "
    "variable_depends_on vars_between walk",
    "types": "Type",
    "variables": "Constant Variable",
}
_MODULE_OF = {
    name: f"engine.graph.{module}" for module, names in _NAMES.items() for name in names.split()
} | {"rewrite_graph": "engine.rewriting.pipeline"}
_MODULE_OF |= dict.fromkeys(["vectorize_graph", "vectorize_node"], "engine.tensor.blockwise")
"""Public names by the module that has them, which a program that uses none of them does not import."""


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        from engine.paths import find  # few programs ask for such a name

        return find(__name__, name)
    found = globals()[name] = getattr(import_module(_MODULE_OF[name]), name)
    return found
