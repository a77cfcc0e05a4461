"""PyTensor's loops of scalar Ops as the engine's: series that have no closed form, such as the derivatives of
the incomplete gamma function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from engine.graph.traversal import io_toposort
from engine.inner.composite import ScalarLoop
from engine.pytensor.representation import Untranslatable, new_variable
from engine.scalar.type import scalar_type
from engine.tensor.elemwise import Elemwise
from engine.tensor.numbers import as_numbers

Translate = Callable[[Any, Sequence[Any]], list[Any]]
"""translate(graph, inputs) -> the engine's tensors for the outputs of a graph of scalar Ops on `inputs`."""


def scalar_loop(scalar_op: Any, inputs: Sequence[Any], translate: Translate) -> list[Any]:
    """Return the results of a ScalarLoop on the engine's tensors `inputs`.

    Raises Untranslatable if an Op of its graph has no rule, or one that is not scalar.
    """
    tensors = [new_variable(variable.type) for variable in scalar_op.fgraph.inputs]
    scalars = {tensor: scalar_type(tensor.type.dtype).make_variable() for tensor in tensors}
    found = _as_scalars(tensors, scalars, translate(scalar_op.fgraph, tensors))
    *updates, until = found if scalar_op.is_while else (*found, None)
    variables = list(scalars.values())
    n_states = len(updates)
    op = ScalarLoop(variables[:n_states], updates, variables[n_states:], until)
    return list(Elemwise(op).make_node(*inputs).outputs)


def _as_scalars(inputs: Sequence[Any], scalars: dict[Any, Any], outputs: Sequence[Any]) -> list[Any]:
    """Return `outputs`, 0-d tensors computed elementwise from `inputs`, as scalars made of `scalars`."""
    for node in io_toposort(inputs, outputs):
        if not isinstance(node.op, Elemwise):
            raise Untranslatable(f"{node.op} in a ScalarLoop is not elementwise")
    return as_numbers(outputs, scalars)
