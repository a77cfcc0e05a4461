"""The constants that computations on constants alone are: each is computed once, by the reference.

Nothing here reads data, or makes any: results of more than 32 elements are not folded. Neither are nodes that
raise (they raise when they run), draws of random numbers, loops and solvers (which may take long in the
reference), and user Ops: their results may depend on more than the inputs, so no entry may keep them.
"""

from __future__ import annotations

import math

import numpy as np

from engine.graph import Apply, Constant, Variable
from engine.graph.represented import RepresentedType
from engine.graph.traversal import toposort
from engine.graph.user_ops import needs_python
from engine.inner.optimize_ops import ScipyWrapperOp
from engine.inner.scan import Scan
from engine.tensor.matching import tensor_type_of
from engine.tensor.type import LARGEST_CONSTANT, is_data, tensor_type


def folded(node: Apply) -> list[Variable] | None:
    """Return the constants that the outputs of `node` are, if it has constants for inputs; otherwise None."""
    if isinstance(node.op, Scan | ScipyWrapperOp) or needs_python(node.op):
        return None
    if any(isinstance(output.type, RepresentedType) for output in node.outputs):
        return None
    if not all(isinstance(variable, Constant) and not is_data(variable) for variable in node.inputs):
        return None
    if any(_known_size(output) > LARGEST_CONSTANT for output in node.outputs):
        return None
    storage: list[list[np.ndarray | None]] = [[None] for _ in node.outputs]
    try:
        with np.errstate(all="ignore"):
            node.op.perform(
                node, [variable.value for variable in node.inputs if isinstance(variable, Constant)], storage
            )
    except Exception:  # it raises again when the function runs
        return None
    values = [np.array(cell[0], order="C") for cell in storage]
    if any(value.size > LARGEST_CONSTANT for value in values):
        return None
    return [tensor_type(value.dtype.name, value.shape).make_constant(value) for value in values]


def constant_of(variable: Variable) -> Variable:
    """Return the constant that `variable`, computed from constants alone, is; itself if it is not folded."""
    known: dict[Variable, Variable] = {}
    for node in toposort([variable]):
        copied = node.clone_with_new_inputs([known.get(v, v) for v in node.inputs])
        known.update(zip(node.outputs, folded(copied) or copied.outputs, strict=True))
    found = known.get(variable, variable)
    return found if isinstance(found, Constant) else variable


def _known_size(variable: Variable) -> int:
    """Return the number of elements, or 0 if a length is unknown."""
    lengths = tensor_type_of(variable).shape
    return 0 if None in lengths else math.prod(n for n in lengths if n is not None)
