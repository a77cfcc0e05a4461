"""The lengths of all variables of a graph, and digests of arrays, under PyTensor's path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from xxhash import xxh3_128_hexdigest

from engine.graph.represented import RepresentedType
from engine.graph.variables import Variable
from engine.tensor.shape import shape
from engine.tensor.type import tensor_type

if TYPE_CHECKING:
    from engine.graph.fgraph import FunctionGraph


def shape_of_variables(
    fgraph: FunctionGraph, input_shapes: Mapping[Variable, Sequence[int]]
) -> dict[Variable, tuple[int, ...]]:
    """Return the shape of each tensor of `fgraph`, given those of its inputs.

    Values are computed only where a shape depends on them; then inputs are zeros. Raises ValueError for
    an input of the graph without a shape, and for the shape of another variable.
    """
    if set(input_shapes) != set(fgraph.inputs):
        raise ValueError(
            f"Computing the shapes of a graph: shapes are needed for its inputs {fgraph.inputs}, they were "
            f"given for {list(input_shapes)}"
        )
    tensors = [variable for variable in fgraph.variables if not isinstance(variable.type, RepresentedType)]
    zeros = {
        variable: np.zeros(tuple(given), variable.type.dtype) for variable, given in input_shapes.items()
    }
    # Inputs of the graph may have static lengths that others than `zeros` would need.
    inputs = {old: tensor_type(value.dtype.name, value.shape).make_variable() for old, value in zeros.items()}
    computed = import_module("engine.functions").function(
        list(inputs.values()),
        [shape(variable) for variable in tensors],
        givens=inputs,
        on_unused_input="ignore",
    )
    found = computed(*zeros.values())
    return {variable: tuple(each.tolist()) for variable, each in zip(tensors, found, strict=True)}


def hash_from_ndarray(data: Any) -> str:
    """Return a digest of the dtype, the shape and the elements of an array; strides are no part of it."""
    array = np.asarray(data)
    elements = xxh3_128_hexdigest(np.ascontiguousarray(array).data)
    return f"{array.dtype.str}{array.shape}{elements}"
