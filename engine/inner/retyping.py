"""The graph of a scalar Op for arguments of other types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from engine.graph.fgraph import FrozenFunctionGraph
from engine.graph.variables import Constant, Variable
from engine.scalar.promotion import weak_dtype
from engine.scalar.type import ScalarType, scalar_type


def retyped(
    fgraph: FrozenFunctionGraph, types: Sequence[ScalarType]
) -> tuple[list[Variable], list[Variable]]:
    """Return new inputs of `types`, and what the operations of `fgraph` compute from them.

    If all inputs of one dtype become inputs of another one, so do the constants of that dtype: what was
    written as `x + 1` then keeps the dtype of `x`. Raises as the operations do for dtypes that they do not
    take, and OverflowError for a constant that does not fit.
    """
    inputs: list[Variable] = [type.make_variable() for type in types]
    found: dict[Variable, Any] = dict(zip(fgraph.inputs, inputs, strict=True))
    becomes = _new_dtypes(fgraph, types)
    for node in fgraph.nodes:
        arguments = [_of(variable, found, becomes) for variable in node.inputs]
        found.update(zip(node.outputs, node.op.make_node(*arguments).outputs, strict=True))
    return inputs, [_of(variable, found, becomes) for variable in fgraph.outputs]


def _new_dtypes(fgraph: FrozenFunctionGraph, types: Sequence[ScalarType]) -> dict[str, str]:
    """Return what the dtypes of inputs become, as far as all inputs of one become the same other one."""
    every: dict[str, set[str]] = {}
    for variable, type in zip(fgraph.inputs, types, strict=True):
        every.setdefault(cast(ScalarType, variable.type).dtype, set()).add(type.dtype)
    return {old: new for old, (new, *others) in every.items() if not others and new != old}


def _of(variable: Any, found: dict[Variable, Any], becomes: dict[str, str]) -> Any:
    if not isinstance(variable, Constant):
        return found[variable]
    number, dtype = variable.data.item(), becomes.get(variable.type.dtype)
    return variable if dtype is None else scalar_type(weak_dtype(number, (dtype,))).make_constant(number)
