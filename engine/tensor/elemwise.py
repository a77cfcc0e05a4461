"""Elementwise operations on tensors, the reordering of axes, and gradients that are 0 in a branch not taken.

A gradient through `where` has the form `where(condition, gradient, 0)`. Such gradients are taken
apart: the slope is computed from the gradient without the condition, and the zeros are put in at
the end. In the other order an infinite slope in the branch not taken would meet a 0, and give NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cachegraph.named_tuples import NamedTuple
from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.graph.variables import Constant, Variable
from engine.late_names import names_elsewhere
from engine.scalar.arithmetic import Mul, Neg, TrueDiv, add, mul, neg, true_div
from engine.scalar.comparison import Where, where
from engine.scalar.complex_numbers import conj, real
from engine.scalar.conversion import Cast, second
from engine.scalar.number_ops import derivative_by_numbers
from engine.scalar.op import ScalarOp
from engine.scalar.promotion import COMPLEX, INEXACT
from engine.tensor.axes import numbers_of
from engine.tensor.broadcasting import broadcast_lengths, unbroadcast_axes
from engine.tensor.conversion import as_tensor_variable, as_tensors
from engine.tensor.known_lengths import computed_length
from engine.tensor.type import TensorType, check_dtype, is_data, tensor_type

if TYPE_CHECKING:
    from engine.tensor.variable import TensorVariable


class Elemwise(Op):
    """Applies `scalar_op` element by element. Inputs of lower rank get axes of length 1 in front.

    Raises ValueError for lengths that differ: static ones when the node is made, others when it is
    computed. An axis of length 1 whose type does not say so does not broadcast. An `inplace_pattern` is
    PyTensor's permission to overwrite inputs, of which no use is made; a `name` is ignored.
    """

    __props__ = ("scalar_op",)
    differentiates_complex = True

    def __init__(self, scalar_op: ScalarOp, inplace_pattern: Any = None, name: str | None = None) -> None:
        self.scalar_op = scalar_op

    @property
    def nin(self) -> int:
        """The number of inputs."""
        return self.scalar_op.nin

    def make_node(self, *inputs: Any) -> Apply:
        given = [as_tensor_variable(v) for v in inputs] if self.scalar_op.has_own_dtypes else inputs
        tensors = as_tensors(given)
        types = _output_types(self, tuple([variable.type for variable in tensors]))
        return Apply(self, tensors, [type.make_variable() for type in types])

    def __call__(self, *inputs: Any, **options: Any) -> TensorVariable:
        """Apply this Op; sums and products take any number of arguments, from left to right."""
        if self.scalar_op in (add, mul) and inputs:
            while len(inputs) > 2:
                inputs = (super().__call__(*inputs[:2]), *inputs[2:])
            if len(inputs) == 1:
                return as_tensor_variable(inputs[0])
        return super().__call__(*inputs, **options)

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        types = [variable.type for variable in node.inputs]
        shape = broadcast_lengths(str(self), types, [value.shape for value in inputs])
        arguments, _ = self.scalar_op.signature(tuple([type.dtype for type in types]))
        cast = [value.astype(to, copy=False) for value, to in zip(inputs, arguments, strict=True)]
        found = self.scalar_op.on_arrays(*cast)
        results = (found,) if len(node.outputs) == 1 else found
        for storage, output, result in zip(output_storage, node.outputs, results, strict=True):
            storage[0] = np.array(np.broadcast_to(np.asarray(result), shape), output.type.dtype, order="C")

    def known_number(self, node: Apply, steps: int) -> int | None:
        """Return the integer that one output is, if all inputs are known integers."""
        return computed_length(node, steps) if len(node.outputs) == 1 else None

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        return self.pullback_wanted(inputs, outputs, cotangents, None)

    def pullback_wanted(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        cotangents: Sequence[Any],
        wanted: Sequence[bool] | None,
    ) -> list[Any]:
        """Return the result of `pullback`, with None for inputs that are not `wanted`."""
        if all(c is None or o.type.dtype not in INEXACT for c, o in zip(cotangents, outputs, strict=True)):
            return [None] * len(inputs)
        if self.scalar_op.is_of_numbers:
            return self._pulled_back_by_numbers(inputs, outputs, cotangents, wanted)
        branches, gradient = split(cotangents[0])
        # The derivative of a complex function multiplies the conjugate of a cotangent.
        turns = outputs[0].type.dtype in COMPLEX and self.scalar_op.is_holomorphic
        if turns:
            gradient = conjugate(gradient)
        found = self.scalar_op.derivative(inputs, outputs[0], gradient, apply_elemwise, wanted)
        found = [conjugate(g) if turns and g is not None else g for g in found]
        return [_fit(within(branches, g), i, outputs[0]) for g, i in zip(found, inputs, strict=True)]

    def _pulled_back_by_numbers(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        cotangents: Sequence[Any],
        wanted: Sequence[bool] | None,
    ) -> list[Any]:
        found = derivative_by_numbers(self.scalar_op, inputs, outputs, cotangents, apply_elemwise, wanted)
        repeated = [None if each is None else apply_elemwise(second, outputs[0], each) for each in found]
        return [_fit(each, variable, outputs[0]) for each, variable in zip(repeated, inputs, strict=True)]

    def pushforward(self, inputs: Sequence[Any], outputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        if len(outputs) != 1 or self.scalar_op.is_of_numbers:
            return NotImplemented
        terms = [
            self.scalar_op.partial(index, inputs, outputs[0], tangent, apply_elemwise)
            for index, tangent in enumerate(tangents)
            if tangent is not None
        ]
        return [_total([term for term in terms if term is not None], outputs[0])]

    def vectorized(self, node: Apply, inputs: Sequence[Any]) -> Sequence[Any]:
        return self.make_node(*inputs).outputs

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Return which inputs the outputs depend on: all, except for the first input of `second`."""
        chooses = self.scalar_op == second
        return [[not (chooses and index == 0)] * len(node.outputs) for index in range(len(node.inputs))]

    def infer_shape(self, node: Apply, input_shapes: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
        """Return the lengths of each output, given those of the inputs: what PyTensor's users ask for."""
        found = []
        for axis, known in enumerate(node.outputs[0].type.shape):
            pairs = zip(node.inputs, input_shapes, strict=True)
            lengths = [shape[axis] for variable, shape in pairs if variable.type.shape[axis] != 1]
            found.append(as_tensor_variable((lengths[0] if lengths else 1) if known is None else known))
        return [tuple(found)] * len(node.outputs)

    def outer(self, x: Any, y: Any) -> TensorVariable:
        """Return this operation of each element of `x` with each of `y`: first the axes of `x`."""
        x, y = as_tensor_variable(x), as_tensor_variable(y)
        return self(dimshuffle(x, [*range(x.type.ndim), *["x"] * y.type.ndim]), y)

    def __str__(self) -> str:
        return str(self.scalar_op)

    __repr__ = __str__


@lru_cache(maxsize=256)
def elemwise(scalar_op: ScalarOp) -> Elemwise:
    """Return the Elemwise of `scalar_op`, one object for equal Ops."""
    return Elemwise(scalar_op)


def apply_elemwise(scalar_op: ScalarOp, *inputs: Any) -> Any:
    """Return `scalar_op` applied element by element to tensors and numbers."""
    return elemwise(scalar_op).make_node(*inputs).outputs[0]


def cast(x: Any, dtype: Any) -> TensorVariable:
    """Return `x` cast to `dtype`, or `x` itself if it has that dtype.

    Raises TypeError for complex numbers that are to become real ones.
    """
    x, dtype = as_tensor_variable(x), check_dtype(dtype)
    return x if x.type.dtype == dtype else apply_elemwise(Cast(dtype), x)


@lru_cache(maxsize=4096)
def _output_types(op: Elemwise, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
    axes = zip(*[type.shape for type in types], strict=True)
    shape = tuple([_static_length(op, types, axis, known) for axis, known in enumerate(axes)])
    dtypes = op.scalar_op.result_dtypes(tuple([type.dtype for type in types]))
    return tuple([tensor_type(dtype, shape) for dtype in dtypes])


def _static_length(
    op: Elemwise, types: Sequence[TensorType], axis: int, known: Sequence[int | None]
) -> int | None:
    lengths = {length for length in known if length is not None and length != 1}
    if len(lengths) > 1:
        raise ValueError(
            f"Applying {op}: Incompatible Elemwise input shapes {[type.shape for type in types]}: the "
            f"lengths along axis {axis} do not fit: "
            + ", ".join(f"input {position} has {length}" for position, length in enumerate(known))
        )
    if lengths:
        return lengths.pop()
    return None if None in known else 1


def _total(terms: Sequence[Any], output: Any) -> Any:
    """Return the sum of `terms` in the shape of `output`, or None without terms."""
    if not terms:
        return None
    total = terms[0]
    for term in terms[1:]:
        total = apply_elemwise(add, total, term)
    fits = total.type.broadcastable == output.type.broadcastable
    return total if fits else apply_elemwise(second, output, total)


def _fit(gradient: Any, variable: Any, output: Any) -> Any:
    """Return `gradient` summed over the axes of `variable` that were broadcast, in its float dtype."""
    if gradient is None:
        return None
    axes = unbroadcast_axes(variable.type, gradient.type)
    if axes:
        gradient = gradient.sum(axes, keepdims=True)
    return as_gradient(gradient, variable.type.dtype)


def as_gradient(gradient: Any, dtype: str) -> Any:
    """Return the gradient for a variable of `dtype` in that dtype, unless it is one of integers; of a complex
    one for a real variable, the real part. None stays None."""
    if gradient is None:
        return None
    if gradient.type.dtype in COMPLEX and dtype not in COMPLEX:
        gradient = apply_elemwise(real, gradient)
    return cast(gradient, dtype) if dtype in INEXACT and gradient.type.dtype != dtype else gradient


def conjugate(x: Any) -> Any:
    """Return the conjugate of the tensor `x`: `x` itself if it is real, or what `x` is the conjugate of."""
    if x.type.dtype not in COMPLEX:
        return x
    is_conjugate = x.owner is not None and getattr(x.owner.op, "scalar_op", None) == conj
    return x.owner.inputs[0] if is_conjugate else apply_elemwise(conj, x)


MOST_AXES = 64
"""numpy's arrays have no more."""


class DimShuffle(Op):
    """Reorders axes. `new_order` lists the old axes of the result; "x" adds an axis of length 1.

    An old axis that is left out is dropped and must have length 1: TypeError if its type says
    otherwise, ValueError if its value does. The output is a view.
    """

    __props__ = ("input_ndim", "new_order")
    view_map: ClassVar[dict[int, list[int]]] = {0: [0]}
    differentiates_complex = True

    def __init__(self, input_ndim: int, new_order: Sequence[int | str]) -> None:
        if not isinstance(input_ndim, int | np.integer):
            raise TypeError(f"Reordering axes: input_ndim must be an integer, not {input_ndim!r}")
        if len(new_order) > MOST_AXES:
            raise ValueError(
                "Reordering axes: maximum supported dimension for a TensorType is currently "
                f"{MOST_AXES}, found {len(new_order)}"
            )
        self.input_ndim = int(input_ndim)
        self.new_order = tuple([axis if type(axis) is int else _place(axis) for axis in new_order])
        kept = [axis for axis in self.new_order if not isinstance(axis, str)]
        if len(set(kept)) != len(kept) or any(not 0 <= axis < input_ndim for axis in kept):
            raise ValueError(
                f"Reordering the {input_ndim} axes of a tensor as {self.new_order}: an axis "
                f"may not appear twice, each is one of 0 to {input_ndim - 1}, everything else must be "
                '"x"'
            )
        self.drop = tuple([axis for axis in range(input_ndim) if axis not in kept])
        self.shuffle = tuple(kept)
        self.augment = tuple([position for position, axis in enumerate(self.new_order) if axis == "x"])

    def make_node(self, x: Any) -> Apply:
        x = as_tensor_variable(x)
        return Apply(self, [x], [_shuffled_type(self, x.type).make_variable()])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        x = inputs[0]
        for axis in self.drop:
            if x.shape[axis] != 1:
                raise ValueError(
                    f"Computing {self}: axis {axis} is dropped and must have length 1, not {x.shape[axis]}"
                )
        view = np.squeeze(x, self.drop) if self.drop else x
        order = np.argsort(np.argsort(self.shuffle))
        output_storage[0][0] = np.expand_dims(np.transpose(view, order), self.augment)

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        if cotangents[0] is None:
            return [None]
        position = {axis: place for place, axis in enumerate(self.new_order)}
        order = [position.get(axis, "x") for axis in range(self.input_ndim)]
        return [rearranged(cotangents[0], lambda v: dimshuffle(v, order), lambda v: dimshuffle(v, order))]

    def vectorized(self, node: Apply, inputs: Sequence[Any]) -> Sequence[Any]:
        count = inputs[0].type.ndim - self.input_ndim
        moved = [axis if isinstance(axis, str) else axis + count for axis in self.new_order]
        return [dimshuffle(inputs[0], [*range(count), *moved])]

    def __str__(self) -> str:
        return f"DimShuffle{{order=[{','.join(str(axis) for axis in self.new_order)}]}}"

    __repr__ = __str__


def _place(axis: Any) -> int | str:
    """Return an item of a new order: "x", or an axis as an int."""
    if isinstance(axis, str) and axis == "x":
        return "x"
    (number,) = numbers_of('Reordering axes: each is a whole number or "x"', [axis])
    return number


@lru_cache(maxsize=4096)
def _shuffled_type(op: DimShuffle, type: TensorType) -> TensorType:
    if type.ndim != op.input_ndim:
        raise TypeError(f"Applying {op} to {type}: it takes {op.input_ndim} dimensions")
    for axis in op.drop:
        if type.shape[axis] not in (1, None):
            raise TypeError(
                f"Applying {op} to {type}: axis {axis} is dropped and has length {type.shape[axis]}, not 1"
            )
    shape = [1 if isinstance(axis, str) else type.shape[axis] for axis in op.new_order]
    return tensor_type(type.dtype, tuple(shape))


@lru_cache(maxsize=1024)
def _dimshuffle_op(input_ndim: int, new_order: tuple[int | str, ...]) -> DimShuffle:
    return DimShuffle(input_ndim, new_order)


def dimshuffle(x: Any, new_order: Any) -> TensorVariable:
    """Return `x` with its axes reordered. `new_order` lists, for each axis of the result, an old axis or "x".

    "x" stands for a new axis of length 1. Axes may be negative. A dropped axis must have length 1. What is
    reordered already is reordered once.
    """
    x = as_tensor_variable(x)
    order, ndim = _positions(new_order, x.type.ndim), x.type.ndim
    if x.owner is not None and isinstance(x.owner.op, DimShuffle):
        inner, inner_order = x.owner.inputs[0], x.owner.op.new_order
        _dimshuffle_op(ndim, order)
        order = tuple([a if a == "x" else inner_order[a] for a in order])
        x, ndim = inner, inner.type.ndim
    return x if order == tuple(range(ndim)) else _dimshuffle_op(ndim, order)(x)


def shuffled(x: Any, new_order: Any) -> TensorVariable:
    """Return `x` with its axes reordered as `dimshuffle` does, by an Op of its own unless all axes stay."""
    order = _positions(new_order, x.type.ndim)
    return x if order == tuple(range(x.type.ndim)) else _dimshuffle_op(x.type.ndim, order)(x)


def _positions(new_order: Any, ndim: int) -> tuple[Any, ...]:
    """Return `new_order` with axes counted from the front."""
    if isinstance(new_order, Constant):
        new_order = new_order.data
    given = [axis if type(axis) is int else _place(axis) for axis in new_order]
    return tuple([a + ndim if not isinstance(a, str) and -ndim <= a < 0 else a for a in given])


class Branch(NamedTuple):
    """A condition on a gradient: it flows where `condition` equals `taken`, and is 0 elsewhere."""

    condition: Variable
    taken: bool


def split(gradient: Any) -> tuple[list[Branch], Any]:
    """Return the branches that `gradient` flows through, outermost first, and the gradient without them.

    A product flows through the branches of its factors, a quotient through those of its numerator; these may
    be products and quotients.
    """
    branches: list[Branch] = []
    while gradient is not None:
        found = _choice(gradient)
        if found is None:
            break
        branch, gradient = found
        branches.append(branch)
    return branches, gradient


_NESTED = 5
"""The depth to which products and quotients are searched for branches."""


def _choice(variable: Any, steps: int = _NESTED) -> tuple[Branch, Any] | None:
    """Return a branch and the value there if `variable` is 0 elsewhere: a `where`, its opposite, a product
    with one, or a quotient of one."""
    node = variable.owner
    is_elementwise = node is not None and isinstance(node.op, Elemwise)
    operation = type(node.op.scalar_op) if is_elementwise else None
    if operation is Where:
        return _chosen(variable)
    if operation is Neg and steps:
        found = _choice(node.inputs[0], steps - 1)
        return None if found is None else (found[0], apply_elemwise(neg, found[1]))
    if operation is TrueDiv and steps:
        found = _choice(node.inputs[0], steps - 1)
        return None if found is None else (found[0], apply_elemwise(true_div, found[1], node.inputs[1]))
    if operation is not Mul or not steps:
        return None
    for factor, other in (node.inputs, node.inputs[::-1]):
        found = _choice(factor, steps - 1)
        if found is not None:
            return found[0], apply_elemwise(mul, found[1], other)
    return None


def _chosen(variable: Any) -> tuple[Branch, Any] | None:
    condition, first, second = variable.owner.inputs
    taken = _is_zero(second, first)
    chosen = first if taken else second
    if not (taken or _is_zero(first, second)) or chosen.type.dtype != variable.type.dtype:
        return None
    return Branch(condition, taken), chosen


def within(branches: Sequence[Branch], gradient: Any) -> Any:
    """Return `gradient` where all `branches` are taken and 0 elsewhere; None stays None."""
    if gradient is None:
        return None
    for condition, taken in reversed(branches):
        gradient = (
            apply_elemwise(where, condition, gradient, 0)
            if taken
            else apply_elemwise(where, condition, 0, gradient)
        )
    return gradient


def rearranged(gradient: Any, arrange: Callable[[Any], Any], inner: Callable[[Any], Any]) -> Any:
    """Return `gradient` with its elements rearranged: conditions by `arrange`, values by `inner`."""
    branches, found = split(gradient)
    return within([Branch(arrange(condition), taken) for condition, taken in branches], inner(found))


def _is_zero(variable: Variable, beside: Variable) -> bool:
    """Return True for one zero, and for an array of zeros in the shape of the value `beside` it."""
    is_alike = variable.type == beside.type
    while variable.owner is not None and isinstance(variable.owner.op, DimShuffle):
        variable = variable.owner.inputs[0]
    if not isinstance(variable, Constant):
        return False
    if variable.data.size == 1:
        return bool(variable.data.item() == 0)
    return is_alike and not is_data(variable) and not np.any(variable.data)


if not TYPE_CHECKING:
    __getattr__ = names_elsewhere(__name__)
