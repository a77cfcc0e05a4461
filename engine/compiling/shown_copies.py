"""The copies that a compiled function makes of its results, as nodes of the graph that users look at.

Results share memory neither with arguments and constants nor with each other. The program that runs copies
by itself; `maker.fgraph` says where, as PyTensor's does.
"""

from __future__ import annotations

from collections.abc import Collection

from engine.graph.fgraph import FunctionGraph
from engine.graph.variables import Variable
from engine.tensor.copying import deep_copy_op
from engine.tensor.type import TensorType


def show_copies(fgraph: FunctionGraph, updated: Collection[Variable]) -> None:
    """Put a DeepCopyOp behind each output that would share memory with an input, a constant or a later
    output.

    A shared variable that is `updated` gets another value: its old one may be returned as it is.
    """
    roots = [_root(output) for output in fgraph.outputs]
    for position, (output, root) in enumerate(zip(list(fgraph.outputs), roots, strict=True)):
        is_given = root.owner is None and root not in updated
        if not isinstance(output.type, TensorType) or not (is_given or root in roots[position + 1 :]):
            continue
        user = fgraph.output_uses[position]
        fgraph.change_node_input(user, 0, deep_copy_op(output), reason="show_copies")


def _root(variable: Variable) -> Variable:
    """Return the variable of which `variable` is a view, or itself."""
    while variable.owner is not None:
        viewed = variable.owner.op.view_map.get(variable.index or 0)
        if not viewed:
            return variable
        variable = variable.owner.inputs[viewed[0]]
    return variable
