"""`polygamma`: derivatives of any order of the logarithm of the gamma function, which SciPy computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.errors import ComplexError, NullGradientError
from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.scalar.promotion import COMPLEX, FLOATS, INTEGERS
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.elemwise import cast
from engine.tensor.math import add, mul
from engine.tensor.rearranging import broadcast_arrays
from engine.tensor.type import tensor_type

if TYPE_CHECKING:
    from engine.tensor.variable import TensorVariable


class PolyGamma(Op):
    """Derivative number n + 1 of the logarithm of the gamma function at x, for integers n and floats x of
    one shape, computed by SciPy in a callback: NaN for a negative n, and where there is none.

    Its gradient by n is undefined.
    """

    __props__ = ()

    def make_node(self, n: Any, x: Any) -> Apply:
        n, x = as_tensor_variable(n), as_tensor_variable(x)
        if n.type.dtype not in INTEGERS or x.type.dtype not in FLOATS or n.type.ndim != x.type.ndim:
            raise TypeError(
                f"Applying {self} to {n.type} and {x.type}: it takes integers and floats of one shape"
            )
        return Apply(self, [n, x], [tensor_type(x.type.dtype, x.type.shape).make_variable()])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        from scipy.special import polygamma as of_scipy

        n, x = inputs
        with np.errstate(all="ignore"):
            found = np.where(n < 0, np.nan, of_scipy(np.maximum(n, 0), x.astype("float64")))
        output_storage[0][0] = np.asarray(found).astype(x.dtype)

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        n, x = inputs
        return [None, None if cotangents[0] is None else mul(cotangents[0], self(add(n, 1), x))]

    def pullback_wanted(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        cotangents: Sequence[Any],
        wanted: Sequence[bool] | None,
    ) -> list[Any]:
        """Return the result of `pullback`; NullGradientError if the gradient by n is wanted."""
        if wanted is not None and wanted[0] and cotangents[0] is not None:
            message = f"Taking a gradient through {self}: none is defined by n, a whole number"
            raise NullGradientError(message, self)
        return self.pullback(inputs, outputs, cotangents)

    def vectorized(self, node: Apply, inputs: Sequence[Any]) -> Sequence[Any]:
        return [polygamma(*inputs)]


def polygamma(n: Any, x: Any) -> TensorVariable:
    """Return derivative number n + 1 of the logarithm of the gamma function at `x`: `psi` for an `n` of 0.

    Both broadcast. The result has the dtype of `x`, float64 for integers. Raises TypeError for an `n` that is
    no integer and for a complex `x`.
    """
    n, x = as_tensor_variable(n), as_tensor_variable(x)
    if n.type.dtype not in INTEGERS:
        raise TypeError(f"Applying polygamma: n has dtype {n.type.dtype}; it must be discrete, an integer")
    if x.type.dtype in COMPLEX:
        raise ComplexError("Applying polygamma: complex argument not supported")
    orders, points = broadcast_arrays(n, x if x.type.dtype in FLOATS else cast(x, "float64"))
    found: Any = PolyGamma()(orders, points)
    return found
