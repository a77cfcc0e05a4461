"""The node that a user's Op is shown when it is asked for something that is stored: lengths, or code for numba.

What it gives may follow from the Op, whose code and attributes are described, and from types alone: the key has no more of the
constants, of what computes the inputs, and of where the node lies. So that is all that it sees.
"""

from __future__ import annotations

from engine.graph.apply import Apply


def shown(node: Apply) -> Apply:
    """The Op of `node` applied to variables of the same types, which nothing computes and no constant is among."""
    inputs, outputs = (
        [variable.type.make_variable() for variable in variables] for variables in (node.inputs, node.outputs)
    )
    return Apply(node.op, inputs, outputs)
