"""`RandomVariable`: a draw from a generator. Inputs: the generator, the size, the parameters; outputs: the
generator in its next state, and the numbers.

A draw leaves the generator that it is given as it was, so two draws of one generator with equal parameters
are one computation. numpy and SciPy draw: Python computes each (lowering/rules/callbacks.py).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.graph.variables import Variable
from engine.random.shared import shared_rng
from engine.random.signature import parsed_signature, signature_of
from engine.random.size import (
    as_vector,
    batch_lengths,
    explicit_expand_dims,
    normalize_size_param,
    static_length,
)
from engine.random.states import custom_rng_deepcopy, drawn
from engine.random.type import RandomGeneratorType, as_rng, random_generator_type
from engine.tensor.conversion import as_tensor_variable, number
from engine.tensor.none_type import NoneConst, NoneTypeT
from engine.tensor.shape import elements_of, lengths_of, shape_i
from engine.tensor.type import check_dtype, tensor_type


class RNGConsumerOp(Op):
    """An Op that draws from generators."""

    is_draw = True

    def update(self, node: Apply) -> dict[Variable, Variable]:
        """Return the generator in its next state for each that `node` draws from."""
        raise NotImplementedError(f"{type(self).__name__} must implement update()")


class RandomVariable(RNGConsumerOp):
    """A draw called `name` of numbers of `dtype`, with the axes that `signature` gives one draw.

    Further axes of the parameters, which broadcast, or the size make a batch. Without a dtype it is
    float64. With `inplace` the generator that is given is drawn from itself. Subclasses may have these as
    attributes; `ndim_supp` and `ndims_params` are the older form of a signature.
    """

    __props__: tuple[str, ...] = ("name", "signature", "dtype", "inplace")
    default_output = 1
    name: str
    signature: str
    dtype: str | None = None
    inplace = False
    ndim_supp: int | None = None
    ndims_params: Any = None

    def __init__(
        self,
        name: str | None = None,
        ndim_supp: int | None = None,
        ndims_params: Sequence[int] | None = None,
        dtype: Any = None,
        inplace: bool | None = None,
        signature: str | None = None,
    ) -> None:
        self.name = name or self.name
        self.signature = self._signature(signature, ndim_supp, ndims_params)
        self.inputs_sig, self.output_sig = parsed_signature(self.signature)
        self.ndims_params = tuple(map(len, self.inputs_sig))
        self.ndim_supp = len(self.output_sig)
        given = dtype or self.dtype
        self.dtype = given if given in (None, "floatX") else check_dtype(given)
        self.inplace = type(self).inplace if inplace is None else inplace
        if self.inplace:
            self.destroy_map = {0: [0]}

    def _signature(
        self, signature: str | None, ndim_supp: int | None, ndims_params: Sequence[int] | None
    ) -> str:
        found = signature or getattr(self, "signature", None)
        ndim_supp = self.ndim_supp if ndim_supp is None else ndim_supp
        ndims_params = self.ndims_params if ndims_params is None else ndims_params
        if ndim_supp is not None or ndims_params is not None:
            warnings.warn(
                "ndim_supp and ndims_params are deprecated. Provide signature instead.", FutureWarning, 3
            )
            if ndims_params is not None and not isinstance(ndims_params, Sequence):
                raise TypeError("Parameter ndims_params must be sequence type.")
        if found is not None:
            return found
        if ndim_supp is None or ndims_params is None:
            raise ValueError(f"Making a {type(self).__name__}: signature must be provided")
        return signature_of(ndims_params, ndim_supp)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return numbers drawn with the parameters `args`; the keywords are those of `draw`."""
        return self.draw(args, **kwargs)

    def draw(
        self,
        params: Sequence[Any],
        size: Any = None,
        name: str | None = None,
        rng: Any = None,
        dtype: Any = None,
        return_next_rng: bool = False,
    ) -> Any:
        """Return numbers drawn with `params`, called `name`; with `return_next_rng` the generator in its
        next state before them.

        `size` is None or the lengths of the batch, `rng` a generator in a graph or None for a new shared
        one, from a seed of the system's. Raises ValueError for a `dtype` of another kind than this draw's.
        """
        node = self.with_dtype(dtype).make_node(rng, size, *params)
        draws = node.outputs[1]
        draws.name = name
        return (node.outputs[0], draws) if return_next_rng else draws

    def with_dtype(self, dtype: Any) -> RandomVariable:
        """Return this draw with numbers of `dtype`; None is its own, "floatX" is the flag's."""
        due = self.dtype if dtype is None else dtype
        due = None if due is None else check_dtype(due)
        if due == self.dtype:
            return self
        if (
            self.dtype is not None
            and due is not None
            and due.startswith("float") != self.dtype.startswith("float")
        ):
            raise ValueError(f"Cannot change the dtype of a {self.name} RV from {self.dtype} to {due}")
        return type(self)(**{**self.props_dict(), "dtype": due})

    def without_inplace(self) -> RandomVariable:
        """Return this draw, which leaves the generator that it is given as it was."""
        return type(self)(**{**self.props_dict(), "inplace": False}) if self.inplace else self

    def make_node(self, rng: Any, size: Any, *dist_params: Any) -> Apply:
        size = normalize_size_param(size)
        params = [as_tensor_variable(param) for param in dist_params]
        rng = shared_rng(seed=None) if rng is None else as_rng(rng)
        if isinstance(rng.tag, SimpleNamespace):  # that of a frozen variable is none
            rng.tag.used = True
        shape = tuple(map(static_length, self._infer_shape(size, params)))
        if len(params) != len(self.ndims_params):
            raise ValueError(
                f"Drawing {self.name}: it takes {len(self.ndims_params)} parameters, {len(params)} were given"
            )
        size_length = None if isinstance(size.type, NoneTypeT) else size.type.shape[0]
        params = explicit_expand_dims(params, self.ndims_params, size_length)
        op = self.with_dtype(self.dtype or "floatX")
        draws = tensor_type(str(op.dtype), shape).make_variable()
        return Apply(op, [rng, size, *params], [rng.type.make_variable(), draws])

    def vectorized(self, node: Apply, inputs: Sequence[Any]) -> Sequence[Any] | None:
        """Return the outputs for a batch of parameters: a size that stayed gets their lengths in front."""
        rng, size, *params = inputs
        if not isinstance(size.type, NoneTypeT) and size.type.ndim != 1:
            return None
        if not isinstance(size.type, NoneTypeT) and size is node.inputs[1]:
            batch = batch_lengths(params, self.ndims_params)
            count = max(len(batch) - self.batch_ndim(node), 0)
            size = as_vector([*batch[:count], *elements_of(size)])
        return self.make_node(rng, size, *params).outputs

    def _supp_shape_from_params(self, dist_params: Sequence[Any], param_shapes: Any = None) -> Sequence[Any]:
        """Return the lengths of one draw, given the parameters and, if they are known better, their lengths.

        Raises NotImplementedError if the signature does not tell them: then a subclass does.
        """
        lengths = {axis: number(int(axis), "int64") for axis in self.output_sig if axis.isnumeric()}
        for position, (param, axes) in enumerate(zip(dist_params, self.inputs_sig, strict=False)):
            first = param.type.ndim - len(axes)
            for offset, axis in enumerate(axes):
                found = (
                    shape_i(param, first + offset)
                    if param_shapes is None
                    else param_shapes[position][first + offset]
                )
                lengths.setdefault(axis, found)
        if not all(axis in lengths for axis in self.output_sig):
            raise NotImplementedError(
                f"Drawing {self.name}: `_supp_shape_from_params` must be implemented, because the signature "
                f"{self.signature} does not tell the lengths of a draw"
            )
        return [lengths[axis] for axis in self.output_sig]

    def _infer_shape(
        self, size: Any, dist_params: Sequence[Any], param_shapes: Sequence[Any] | None = None
    ) -> tuple[Any, ...]:
        """Return the lengths of the numbers, 0-d int64s. Raises ValueError for a size of fewer axes than a
        parameter's batch."""
        support = tuple(self._supp_shape_from_params(dist_params, param_shapes)) if self.ndim_supp else ()
        if isinstance(size.type, NoneTypeT):
            return (*batch_lengths(dist_params, self.ndims_params, param_shapes), *lengths_of(support))
        lengths = elements_of(size) if size.type.shape[0] else []
        for position, (param, ndim) in enumerate(zip(dist_params, self.ndims_params, strict=False)):
            batch = param.type.ndim - ndim
            if batch > len(lengths):
                raise ValueError(
                    f"Size length is incompatible with batched dimensions of parameter {position} {param}: "
                    f"size has {len(lengths)} lengths, the batch of the parameter has {batch}; size must be "
                    "None, or have as many"
                )
        return (*lengths, *lengths_of(support))

    def infer_shape(
        self, fgraph: object, node: Apply, input_shapes: Sequence[Any]
    ) -> list[tuple[Any, ...] | None]:
        """Return the lengths of the numbers: nothing is drawn for them."""
        _, size, *params = node.inputs
        return [None, self._infer_shape(size, params, input_shapes[2:])]

    def rng_fn(self, *args: Any, **kwargs: Any) -> Any:
        """Return numbers drawn from a generator with parameters and a size: the arguments, in this order."""
        rng, *others = args
        return getattr(rng, self.name)(*others, **kwargs)

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        rng, size, *params = inputs
        if size is None:
            self._check_batches(node, params)
        drawn_from = rng if self.inplace else custom_rng_deepcopy(rng)
        draws = self.rng_fn(drawn_from, *params, None if size is None else tuple(size.tolist()))
        output_storage[0][0] = drawn_from
        output_storage[1][0] = np.asarray(draws, self.dtype)

    def on_arrays(self, node: Apply) -> Callable[[Sequence[Any]], list[Any]]:
        """Return `perform` as a function from the arrays that programs hold to those of the outputs."""
        has_no_size = isinstance(node.inputs[1].type, NoneTypeT)
        dtype = np.dtype(str(self.dtype))

        def run(arrays: Sequence[Any]) -> list[Any]:
            vector, size, *params = arrays
            lengths = None if has_no_size else tuple(size.tolist())
            if lengths is None:
                self._check_batches(node, params)
            following, draws = drawn(vector, lambda rng: self.rng_fn(rng, *params, lengths))
            return [following, np.asarray(draws, dtype)]

        return run

    def _check_batches(self, node: Apply, params: Sequence[Any]) -> None:
        """Refuse (ValueError) parameters that only broadcast because of lengths that happen to be 1: the
        lengths of the numbers are computed without them, and no other Op broadcasts such."""
        found: dict[int, int] = {}
        for variable, value, ndim in zip(node.inputs[2:], params, self.ndims_params, strict=True):
            for axis, is_one in enumerate(variable.type.broadcastable[: value.ndim - ndim]):
                length = value.shape[axis]
                if not is_one and found.setdefault(axis, length) != length:
                    raise ValueError(
                        f"Drawing {self.name}: parameters have lengths {found[axis]} and {length} along axis "
                        f"{axis} of the batch; only a static length of 1 broadcasts"
                    )

    def pushforward(self, inputs: Sequence[Any], outputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        return [None] * len(outputs)

    def update(self, node: Apply) -> dict[Variable, Variable]:
        return {node.inputs[0]: node.outputs[0]}

    def batch_ndim(self, node: Apply) -> int:
        """Return the number of axes of the batch."""
        return int(node.outputs[1].type.ndim) - len(self.output_sig)

    def rng_param(self, node: Apply) -> Variable:
        """Return the generator that `node` draws from."""
        return node.inputs[0]

    def size_param(self, node: Apply) -> Variable:
        """Return the size that `node` was given."""
        return node.inputs[1]

    def dist_params(self, node: Apply) -> Sequence[Variable]:
        """Return the parameters of `node`."""
        return node.inputs[2:]

    def __str__(self) -> str:
        known = RandomVariable.__props__
        further = [str(getattr(self, name)) for name in self.__props__ if name not in known]
        shown = ", ".join([f'"{self.signature}"', *further])
        return f"{self.name}_rv{{{shown}}}"

    __repr__ = __str__


class DefaultGeneratorMakerOp(Op):
    """A generator from a seed: `numpy.random.default_rng`. Input: None, an integer or a vector of them."""

    __props__ = ()
    random_type = random_generator_type
    varies = True  # from None, the system's entropy

    def make_node(self, seed: Any = None) -> Apply:
        is_none = isinstance(seed, Variable) and isinstance(seed.type, NoneTypeT)
        given = NoneConst if seed is None else seed if is_none else as_tensor_variable(seed)
        return Apply(self, [given], [RandomGeneratorType().make_variable()])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        (seed,) = inputs
        is_number = seed is not None and seed.size == 1
        output_storage[0][0] = np.random.default_rng(seed.item() if is_number else seed)


default_rng = DefaultGeneratorMakerOp()
