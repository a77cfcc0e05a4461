"""Variables, constants, nodes and copies of graphs, under PyTensor's path."""

from engine.graph.apply import Apply
from engine.graph.expressions import as_string
from engine.graph.frozen_nodes import FrozenApply, NominalVariable
from engine.graph.replace import clone, clone_get_equiv, equal_computations
from engine.graph.variables import Constant, Variable

__all__ = [
    "Apply",
    "Constant",
    "FrozenApply",
    "NominalVariable",
    "Variable",
    "as_string",
    "clone",
    "clone_get_equiv",
    "equal_computations",
]
