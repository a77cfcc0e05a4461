"""The exponential of a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from engine.tensor.blockwise import batched
from engine.tensor.creation import zeros_like
from engine.tensor.joining import concatenate
from engine.tensor.linalg.callback_op import Arrays, CallbackOp
from engine.tensor.shape import shape_i

if TYPE_CHECKING:
    from engine.tensor.variable import TensorVariable


class Expm(CallbackOp):
    """The exponential of a square matrix: the sum of its powers, each divided by the factorial."""

    __props__ = ()
    takes_batches = True
    gufunc_signature = "(m,m)->(m,m)"

    def computed(self, *arrays: Any) -> Sequence[Any]:
        from scipy.linalg import expm as exponential

        return (exponential(arrays[0]),)

    def gradients(self, inputs: Arrays, outputs: Arrays, cotangents: Arrays) -> list[Any]:
        """Follow Mathias, "A chain rule for matrix functions and applications", 1996: the derivative is a
        block of the exponential of a matrix of blocks.
        """
        gradient, n = cotangents[0], shape_i(inputs[0], 0)
        x = inputs[0].T
        above, below = concatenate([x, gradient], 1), concatenate([zeros_like(x), x], 1)
        return [self(concatenate([above, below], 0))[:n, n:]]


def expm(A: Any) -> TensorVariable:
    """Return the exponential of the square matrix `A`. Leading axes are a batch."""
    return batched(Expm(), A)
