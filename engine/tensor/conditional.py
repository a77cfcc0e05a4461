"""The lazy choice between two branches: `ifelse`. What only one branch needs is computed if it is chosen.

`switch` and `where` choose element by element, and compute both. The Op here takes the values of both
branches. The rewrite `lazy_branches` moves what only one of them needs into a loop of one pass or none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.graph.represented import RepresentedType
from engine.graph.variables import Variable
from engine.scalar.promotion import FLOATS
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.creation import zeros_like
from engine.tensor.elemwise import cast
from engine.tensor.held_arrays import held_array, held_value
from engine.tensor.type import TensorType


class IfElse(Op):
    """Returns the first `n_outs` of the values given after the condition, or the others.

    `as_view` is PyTensor's permission to share memory with inputs, of which no use is made; `name` is shown.
    Raises ValueError for a wrong number of values; TypeError for a condition of more than 0 dimensions,
    and for two values that differ in dtype or rank. Their shapes may differ.
    """

    __props__ = ("n_outs", "name")

    def __init__(self, n_outs: int, as_view: bool = False, name: str | None = None) -> None:
        self.n_outs = n_outs
        self.name = name

    def make_node(self, condition: Any, *values: Any) -> Apply:
        condition = as_tensor_variable(condition)
        if condition.type.ndim > 0:
            raise TypeError(
                f"Applying {self}: The condition argument {condition} of type {condition.type} must have 0 "
                "dimensions"
            )
        if len(values) != 2 * self.n_outs:
            raise ValueError(
                f"Applying {self}: {2 * self.n_outs} values are needed behind the condition, {len(values)} "
                "were given"
            )
        tensors = [as_tensor_variable(value) for value in values]
        pairs = zip(tensors[: self.n_outs], tensors[self.n_outs :], strict=True)
        types = [_type_of_both(yes, no) for yes, no in pairs]
        return Apply(self, [cast(condition, "bool"), *tensors], [type.make_variable() for type in types])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        first = 1 if inputs[0] else 1 + self.n_outs
        for number, storage in enumerate(output_storage):
            storage[0] = inputs[first + number].copy()

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        condition, values = inputs[0], inputs[1:]
        pairs = zip(values[: self.n_outs], values[self.n_outs :], cotangents, strict=True)
        both = [_gradients(condition, yes, no, gradient) for yes, no, gradient in pairs]
        return [None, *(yes for yes, _ in both), *(no for _, no in both)]

    def pushforward(self, inputs: Sequence[Any], outputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        values, changes = inputs[1:], tangents[1:]
        pairs = zip(values[: self.n_outs], values[self.n_outs :], strict=True)
        both = zip(changes[: self.n_outs], changes[self.n_outs :], strict=True)
        return [_tangent(inputs[0], pair, two) for pair, two in zip(pairs, both, strict=True)]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Return that each output depends on its two values, and on the condition, whose gradient is 0."""
        numbers = range(self.n_outs)
        rows = [[number == output for output in numbers] for number in numbers]
        return [[True] * self.n_outs, *rows, *rows]


def ifelse(condition: Any, then_branch: Any, else_branch: Any, name: str | None = None) -> Any:
    """Return `then_branch` where the number `condition` is not 0, else `else_branch`.

    Each branch is a value, or a list or tuple of as many values as the other: then the result is one, too. A
    value may be a generator of random numbers.
    `name` names the result. Refuses what IfElse refuses.
    """
    several = isinstance(then_branch, list | tuple)
    yes = list(then_branch) if several else [then_branch]
    no = list(else_branch) if isinstance(else_branch, list | tuple) else [else_branch]
    if len(yes) != len(no):
        raise ValueError(
            f"Choosing between branches: one has {len(yes)} values, the other {len(no)}; "
            "both must have as many"
        )
    held = [_type_of_held(a, b) if _is_held(a) or _is_held(b) else None for a, b in zip(yes, no, strict=True)]
    arrays = [held_array(value) if _is_held(value) else value for value in (*yes, *no)]
    found = IfElse(len(yes))(condition, *arrays, return_list=True)
    found = [v if type is None else held_value(v, type) for v, type in zip(found, held, strict=True)]
    for variable in found:
        variable.name = name
    return type(then_branch)(found) if several else found[0]


def _is_held(value: Any) -> bool:
    return isinstance(value, Variable) and isinstance(value.type, RepresentedType)


def _type_of_held(yes: Any, no: Any) -> RepresentedType:
    """Return the type of two variables whose values are no arrays. Raises TypeError if there are two."""
    if not (_is_held(yes) and _is_held(no)) or yes.type != no.type:
        raise TypeError(f"Choosing between branches: {yes} and {no} must have one type")
    found: RepresentedType = yes.type
    return found


def _type_of_both(yes: Variable, no: Variable) -> TensorType:
    """Return the type with the static lengths that two tensors share. Raises TypeError if they conflict."""
    one, other = yes.type, no.type
    assert isinstance(one, TensorType)
    assert isinstance(other, TensorType)
    if (one.dtype, one.ndim) != (other.dtype, other.ndim):
        raise TypeError(
            f"Choosing between branches: {yes} has type {one} and {no} has type {other}; both must have one "
            "dtype and one number of dimensions"
        )
    return one.clone(shape=[a if a == b else None for a, b in zip(one.shape, other.shape, strict=True)])


def _gradients(condition: Any, yes: Any, no: Any, gradient: Any) -> tuple[Any, Any]:
    if gradient is None or yes.type.dtype not in FLOATS:
        return None, None
    return (
        ifelse(condition, gradient, zeros_like(yes, gradient.type.dtype)),
        ifelse(condition, zeros_like(no, gradient.type.dtype), gradient),
    )


def _tangent(condition: Any, values: Sequence[Any], tangents: Sequence[Any]) -> Any:
    if all(tangent is None for tangent in tangents):
        return None
    pairs = zip(values, tangents, strict=True)
    yes, no = (zeros_like(value) if tangent is None else tangent for value, tangent in pairs)
    return ifelse(condition, yes, no)
