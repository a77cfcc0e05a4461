"""`ScalarOp`: an operation on numbers, of which elementwise operations, fused loops and kernels are made.

Its class holds the type rule, the reference on numpy arrays and the derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from engine.errors import ComplexError
from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.graph.variables import Variable
from engine.scalar.promotion import COMPLEX, NoRule, Signature, weak_dtype
from engine.scalar.type import ScalarType, scalar_type

ApplyScalarOp = Callable[..., Any]
"""`apply(scalar_op, *arguments)` applies the operation to scalar or tensor variables and Python numbers."""


class ScalarOp(Op):
    """An operation from `nin` numbers to one. Compositions of several operations may have `nout` results.

    `name` identifies it in kernels (by default the class name), `rule` is its type rule, a function of
    `engine.scalar.promotion`, and `_impl` computes it on arrays of exactly these dtypes. `ufunc` is
    a numpy function that does so; an Op without one overrides `_impl`.
    """

    __props__: tuple[str, ...] = ()
    name: str
    nin: int = 1
    nout: int = 1
    has_own_dtypes: ClassVar[bool] = False
    """True if the argument dtypes are fixed. Python numbers then keep their own dtype, and are cast."""
    is_holomorphic: ClassVar[bool] = True
    """False if `partial` says itself what becomes of the cotangent of a complex number (complex_numbers.py),
    instead of multiplying it by the derivative.
    """
    rule: ClassVar[staticmethod[[tuple[str, ...]], Signature]]
    ufunc: ClassVar[Any] = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not hasattr(cls, "name"):
            cls.name = cls.__name__.lower()

    def signature(self, dtypes: tuple[str, ...]) -> Signature:
        """Return the dtypes that arguments of `dtypes` are cast to, and the result's dtype.

        Raises TypeError for a wrong number of arguments and for dtypes that the operation does not take.
        """
        return _signature(self, dtypes)

    def _signature(self, dtypes: tuple[str, ...]) -> Signature:
        return type(self).rule(dtypes)

    def result_dtypes(self, dtypes: tuple[str, ...]) -> tuple[str, ...]:
        """Return the dtypes of the `nout` results for arguments of `dtypes`."""
        return (self.signature(dtypes)[1],)

    def impl(self, *arrays: Any) -> Any:
        """Return the operation on arrays or numpy scalars that were cast already, without numpy warnings."""
        with np.errstate(all="ignore"):
            return self._impl(*arrays)

    def _impl(self, *arrays: Any) -> Any:
        if self.ufunc is None:
            raise NotImplementedError(f"{type(self).__name__} must implement _impl()")
        return self.ufunc(*arrays)

    def derivative(
        self,
        inputs: Sequence[Any],
        output: Any,
        cotangent: Any,
        apply: ApplyScalarOp,
        wanted: Sequence[bool] | None = None,
    ) -> list[Any]:
        """Return the gradient of each input, given that of the output (`cotangent`); None where none flows.

        Gradients are built with `apply`, so one rule serves scalars and tensors. Inputs that are not
        `wanted` get None.
        """
        return [
            self.partial(index, inputs, output, cotangent, apply) if wanted is None or wanted[index] else None
            for index in range(len(inputs))
        ]

    def partial(
        self, index: int, inputs: Sequence[Any], output: Any, cotangent: Any, apply: ApplyScalarOp
    ) -> Any:
        """Return the gradient of input `index`, or None, as here, if none flows through it."""
        return None

    def make_node(self, *inputs: Any) -> Apply:
        """Return the node on scalar variables. Python numbers take the dtype of the other inputs."""
        variables = as_scalars(inputs)
        dtype = self.signature(tuple([variable.type.dtype for variable in variables]))[1]
        return Apply(self, variables, [scalar_type(dtype).make_variable()])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        arguments, dtype = self.signature(tuple([variable.type.dtype for variable in node.inputs]))
        values = [np.dtype(to).type(value) for to, value in zip(arguments, inputs, strict=True)]
        output_storage[0][0] = np.dtype(dtype).type(self.impl(*values))


@lru_cache(maxsize=4096)
def _signature(op: ScalarOp, dtypes: tuple[str, ...]) -> Signature:
    if len(dtypes) != op.nin:
        raise TypeError(f"Applying {op}: it takes {op.nin} arguments, {len(dtypes)} were given")
    try:
        return op._signature(dtypes)
    except NoRule as reason:
        error = ComplexError if any(dtype in COMPLEX for dtype in dtypes) else TypeError
        raise error(f"Applying {op} to ({', '.join(dtypes)}): {op} {reason}") from None


def apply_scalar_op(op: ScalarOp, *inputs: Any) -> Any:
    """Return `op` applied to scalar variables and Python numbers."""
    return op.make_node(*inputs).outputs[0]


def as_scalar(value: Any) -> Any:
    """Return `value` as a scalar variable: a variable itself, a number as a constant, a tensor of 0
    dimensions as the number that it holds.

    Raises TypeError for other tensors and for anything else.
    """
    if isinstance(value, Variable):
        if isinstance(value.type, ScalarType):
            return value
        if hasattr(value.type, "as_scalar"):
            return value.type.as_scalar(value)
        raise TypeError(f"Using {value} of type {value.type} as a scalar: it is no scalar variable")
    if isinstance(value, np.generic):
        return scalar_type(value.dtype.name).make_constant(value)
    if isinstance(value, _WEAK):
        return _constant(value, weak_dtype(value, ()))
    raise TypeError(
        f"Using {value!r} as a scalar: it is a {type(value).__name__}, neither a variable nor a number"
    )


def as_scalars(values: Sequence[Any]) -> list[Any]:
    """Return the arguments of one operation as scalar variables. Python numbers take the others' dtype."""
    result = [value if type(value) in _WEAK else as_scalar(value) for value in values]
    strong = tuple([variable.type.dtype for variable in result if isinstance(variable, Variable)])
    return [v if isinstance(v, Variable) else _constant(v, weak_dtype(v, strong)) for v in result]


_WEAK = (bool, int, float, complex)


def _constant(value: bool | int | float | complex, dtype: str) -> Variable:
    with np.errstate(all="ignore"):
        return scalar_type(dtype).make_constant(np.dtype(dtype).type(value))
