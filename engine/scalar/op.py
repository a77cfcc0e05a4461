"""`ScalarOp`: an operation on numbers. Elementwise operations, fused loops and kernels are made of them.

Each says, in one place, its type rule, its reference on numpy arrays and its derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.graph.variables import Variable
from engine.scalar.promotion import NoRule, Signature, weak_dtype
from engine.scalar.type import ScalarType, scalar_type

ApplyScalarOp = Callable[..., Any]
"""`apply(scalar_op, *arguments)`: the operation on variables of the kind at hand, and Python numbers."""


class ScalarOp(Op):
    """An operation from `nin` numbers to one (what is made of several of them may give `nout`).

    `name` is the kernel's name for it, by default its class's. `rule` is its type rule, a function of
    `engine.scalar.promotion`, and `_impl` what it computes, of arrays of just these dtypes.
    """

    __props__: tuple[str, ...] = ()
    name: str
    nin: int = 1
    nout: int = 1
    has_own_dtypes: ClassVar[bool] = False
    """Whether arguments are cast to dtypes that the operation has, whatever theirs: Python numbers keep their own then."""
    rule: ClassVar[staticmethod[[tuple[str, ...]], Signature]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not hasattr(cls, "name"):
            cls.name = cls.__name__.lower()

    def signature(self, dtypes: tuple[str, ...]) -> Signature:
        """Return the dtypes that arguments of `dtypes` are cast to, and the result's dtype.

        Raises TypeError for another number of arguments than `nin`, and dtypes that the operation does not take.
        """
        return _signature(self, dtypes)

    def _signature(self, dtypes: tuple[str, ...]) -> Signature:
        return type(self).rule(dtypes)

    def result_dtypes(self, dtypes: tuple[str, ...]) -> tuple[str, ...]:
        """Return the dtype of each of the `nout` results, for arguments of `dtypes`."""
        return (self.signature(dtypes)[1],)

    def impl(self, *arrays: Any) -> Any:
        """Return the operation on arrays (or numpy scalars) that were cast already: numpy's values, no warnings."""
        with np.errstate(all="ignore"):
            return self._impl(*arrays)

    def _impl(self, *arrays: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must implement _impl()")

    def derivative(
        self,
        inputs: Sequence[Any],
        output: Any,
        cotangent: Any,
        apply: ApplyScalarOp,
        wanted: Sequence[bool] | None = None,
    ) -> list[Any]:
        """Return the gradient for each of `inputs`, given the output's, `cotangent`; None where nothing flows.

        Built with `apply`, so the same text serves scalars and tensors, in the dtypes that come of it. Of the inputs
        not `wanted`, None.
        """
        return [
            self.partial(index, inputs, output, cotangent, apply) if wanted is None or wanted[index] else None
            for index in range(len(inputs))
        ]

    def partial(
        self, index: int, inputs: Sequence[Any], output: Any, cotangent: Any, apply: ApplyScalarOp
    ) -> Any:
        """Return the gradient for input `index`; None, as here, if nothing flows through it."""
        return None

    def make_node(self, *inputs: Any) -> Apply:
        """Return the operation on scalar variables; Python numbers take the dtype of the others."""
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
        raise TypeError(f"Applying {op} to ({', '.join(dtypes)}): {op} {reason}") from None


def apply_scalar_op(op: ScalarOp, *inputs: Any) -> Any:
    """Return `op` on scalar variables and Python numbers."""
    return op.make_node(*inputs).outputs[0]


def as_scalar(value: Any) -> Any:
    """Return `value` as a scalar variable: variables as they are, numbers as constants.

    Raises TypeError for what is neither, and tensors.
    """
    if isinstance(value, Variable):
        if isinstance(value.type, ScalarType):
            return value
        raise TypeError(f"Using {value} of type {value.type} as a scalar: it is no scalar variable")
    if isinstance(value, np.generic):
        return scalar_type(value.dtype.name).make_constant(value)
    if isinstance(value, bool | int | float):
        return _constant(value, weak_dtype(value, ()))
    raise TypeError(
        f"Using {value!r} as a scalar: it is a {type(value).__name__}, neither a variable nor a number"
    )


def as_scalars(values: Sequence[Any]) -> list[Any]:
    """Return the arguments of one operation as scalar variables; Python numbers take the dtype of the others."""
    result = [value if type(value) in _WEAK else as_scalar(value) for value in values]
    strong = tuple([variable.type.dtype for variable in result if isinstance(variable, Variable)])
    return [v if isinstance(v, Variable) else _constant(v, weak_dtype(v, strong)) for v in result]


_WEAK = (bool, int, float)


def _constant(value: bool | int | float, dtype: str) -> Variable:
    with np.errstate(all="ignore"):
        return scalar_type(dtype).make_constant(np.dtype(dtype).type(value))
