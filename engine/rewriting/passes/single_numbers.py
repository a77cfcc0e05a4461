"""Tensors of numbers that are computed of tensors: what computes the numbers computes the tensors, too."""

from __future__ import annotations

from engine.graph import Apply, FunctionGraph, Variable
from engine.rewriting.rewriters import node_rewriter
from engine.tensor.single_numbers import TensorFromScalar, tensor_from_scalar


@node_rewriter([TensorFromScalar], for_all_dtypes=True)
def local_tensor_scalar_tensor(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """tensor_from_scalar(f(scalar_from_tensor(x))) -> f(x), elementwise."""
    found = tensor_from_scalar.elementwise(node.inputs[0])
    is_same = found.owner is not None and isinstance(found.owner.op, TensorFromScalar)
    return None if is_same else [found]
