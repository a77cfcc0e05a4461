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
from engine.scalar.number_ops import computed_by_numbers
from engine.scalar.promotion import COMPLEX, NoRule, Signature, weak_dtype
from engine.scalar.type import ScalarType, scalar_type

_ANY_NUMBER = -1
ApplyScalarOp = Callable[..., Any]
"""`apply(scalar_op, *arguments)` applies the operation to scalar or tensor variables and Python numbers."""


class ScalarOp(Op):
    """An operation from `nin` numbers to one. Compositions of several operations may have `nout` results.

    `name` identifies it in kernels (by default the class name), `rule` is its type rule, a function of
    `engine.scalar.promotion`, and `_impl` computes it on arrays of exactly these dtypes. `ufunc` is
    a numpy function that does so; an Op without one overrides `_impl`.

    A user's class may follow PyTensor's protocol instead, without a rule: `impl` computes numbers of numbers,
    `output_types_preference` or `make_node` tells the types of results, and `pullback`, or an older `L_op` or
    `grad`, gives gradients of numbers. It then takes any number of arguments unless `nin` says how many.
    """

    __props__: tuple[str, ...] = ()
    name: str
    nin: int = 1
    nout: int = 1
    has_kernel: ClassVar[bool] = True
    """False if no kernel computes it: numpy or SciPy does, in a callback."""
    has_own_dtypes: ClassVar[bool] = False
    """True if the argument dtypes are fixed. Python numbers then keep their own dtype, and are cast."""
    is_holomorphic: ClassVar[bool] = True
    """False if `partial` says itself what becomes of the cotangent of a complex number (complex_numbers.py),
    instead of multiplying it by the derivative.
    """
    rule: ClassVar[staticmethod[[tuple[str, ...]], Signature]]
    ufunc: ClassVar[Any] = None
    is_of_numbers: ClassVar[bool] = False
    """True for users' classes that follow PyTensor's protocol (number_ops.py)."""
    output_types_preference: Any = None

    def __init__(self, output_types_preference: Any = None, name: str | None = None) -> None:
        if output_types_preference is not None:
            self.output_types_preference = output_types_preference
        if name is not None:
            self.name = name

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        is_of_engine = cls.__module__.partition(".")[0] == "engine"
        has_rule = hasattr(cls, "rule") or cls._signature is not ScalarOp._signature
        cls.is_of_numbers = not is_of_engine and not has_rule
        if not hasattr(cls, "name") or (cls.is_of_numbers and "name" not in vars(cls)):
            cls.name = cls.__name__.lower()
        if cls.is_of_numbers and next(base for base in cls.__mro__ if "nin" in vars(base)) is ScalarOp:
            cls.nin = _ANY_NUMBER

    def signature(self, dtypes: tuple[str, ...]) -> Signature:
        """Return the dtypes that arguments of `dtypes` are cast to, and the result's dtype.

        Raises TypeError for a wrong number of arguments and for dtypes that the operation does not take.
        """
        return _signature(self, dtypes)

    def _signature(self, dtypes: tuple[str, ...]) -> Signature:
        if not self.is_of_numbers:
            return type(self).rule(dtypes)
        node = self.node_of(dtypes)
        return tuple([variable.type.dtype for variable in node.inputs]), node.outputs[0].type.dtype

    def node_of(self, dtypes: tuple[str, ...]) -> Apply:
        """Return this Op applied to new variables of `dtypes`."""
        return self.make_node(*[scalar_type(dtype).make_variable() for dtype in dtypes])

    def result_dtypes(self, dtypes: tuple[str, ...]) -> tuple[str, ...]:
        """Return the dtypes of the `nout` results for arguments of `dtypes`."""
        if self.is_of_numbers:
            return tuple([variable.type.dtype for variable in self.node_of(dtypes).outputs])
        return (self.signature(dtypes)[1],)

    def output_types(self, types: Sequence[ScalarType]) -> Sequence[ScalarType]:
        """Return the types of the results for arguments of `types`: those of the type rule, or those that a
        user's `output_types_preference` gives."""
        if not self.is_of_numbers:
            return [scalar_type(dtype) for dtype in self.result_dtypes(tuple([type.dtype for type in types]))]
        if self.output_types_preference is None:
            raise NotImplementedError(
                f"Applying {self}: it has neither a rule nor an output_types_preference; give it one"
            )
        found: Sequence[ScalarType] = self.output_types_preference(*types)
        return found

    def on_arrays(self, *arrays: Any) -> Any:
        """Return `impl` of each element of `arrays`, which were cast already."""
        if self.is_of_numbers:
            return computed_by_numbers(self, arrays)
        return self.impl(*arrays)

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
        if self.is_of_numbers:
            _check_count(self, len(variables))
            types = self.output_types([variable.type for variable in variables])
            return Apply(self, variables, [type.make_variable() for type in types])
        dtype = self.signature(tuple([variable.type.dtype for variable in variables]))[1]
        return Apply(self, variables, [scalar_type(dtype).make_variable()])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        arguments, dtype = self.signature(tuple([variable.type.dtype for variable in node.inputs]))
        values = [np.dtype(to).type(value) for to, value in zip(arguments, inputs, strict=True)]
        output_storage[0][0] = np.dtype(dtype).type(self.impl(*values))


class UnaryScalarOp(ScalarOp):
    """An operation from one number to one: a base class for users."""

    nin = 1


class BinaryScalarOp(ScalarOp):
    """An operation from two numbers to one: a base class for users."""

    nin = 2


def _check_count(op: ScalarOp, count: int) -> None:
    if op.nin not in (count, _ANY_NUMBER):
        raise TypeError(f"Applying {op}: it takes {op.nin} arguments, {count} were given")


@lru_cache(maxsize=4096)
def _signature(op: ScalarOp, dtypes: tuple[str, ...]) -> Signature:
    _check_count(op, len(dtypes))
    try:
        return op._signature(dtypes)
    except NoRule as reason:
        error = ComplexError if any(dtype in COMPLEX for dtype in dtypes) else TypeError
        raise error(f"Applying {op} to ({', '.join(dtypes)}): {op} {reason}") from None


def apply_scalar_op(op: ScalarOp, *inputs: Any) -> Any:
    """Return `op` applied to scalar variables and Python numbers."""
    return op.make_node(*inputs).outputs[0]


def as_scalar(x: Any) -> Any:
    """Return `x` as a scalar variable: a variable itself, a number as a constant, a tensor of 0
    dimensions as the number that it holds.

    Raises TypeError for other tensors and for anything else.
    """
    if isinstance(x, Variable):
        if isinstance(x.type, ScalarType):
            return x
        if hasattr(x.type, "as_scalar"):
            return x.type.as_scalar(x)
        raise TypeError(f"Using {x} of type {x.type} as a scalar: it is no scalar variable")
    if isinstance(x, np.generic):
        return scalar_type(x.dtype.name).make_constant(x)
    if isinstance(x, _WEAK):
        return _constant(x, weak_dtype(x, ()))
    raise TypeError(f"Using {x!r} as a scalar: it is a {type(x).__name__}, neither a variable nor a number")


def as_scalars(values: Sequence[Any]) -> list[Any]:
    """Return the arguments of one operation as scalar variables. Python numbers take the others' dtype."""
    result = [value if type(value) in _WEAK else as_scalar(value) for value in values]
    strong = tuple([variable.type.dtype for variable in result if isinstance(variable, Variable)])
    return [v if isinstance(v, Variable) else _constant(v, weak_dtype(v, strong)) for v in result]


_WEAK = (bool, int, float, complex)


def _constant(value: bool | int | float | complex, dtype: str) -> Variable:
    with np.errstate(all="ignore"):
        return scalar_type(dtype).make_constant(np.dtype(dtype).type(value))
