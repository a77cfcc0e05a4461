"""The decomposition of a matrix into an orthogonal and an upper triangular one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from engine.errors import UnavailableGradientError
from engine.tensor.blockwise import batched
from engine.tensor.checks import Assert
from engine.tensor.diagonals import tril
from engine.tensor.joining import concatenate
from engine.tensor.linalg.callback_op import Arrays, CallbackOp, zeros_for_none
from engine.tensor.linalg.equations import solve_triangular
from engine.tensor.math import le, minimum
from engine.tensor.shape import shape_i

if TYPE_CHECKING:
    pass

_SIGNATURES = {
    "full": "(m,n)->(m,m),(m,n)",
    "economic": "(m,n)->(m,k),(k,n)",
    "r": "(m,n)->(m,n)",
    "raw": "(m,n)->(m,n),(k),(k,n)",
}
_IS_WIDE = Assert("Taking a gradient through QR{mode=full}: there is none for more rows than columns")
_LIKE_NUMPY = {"complete": "full", "reduced": "economic"}


class QR(CallbackOp):
    """An orthogonal Q and an upper triangular R with `x = Q @ R`; with `pivoting` `x[:, P] = Q @ R`, and P
    last.

    `mode` is "full" (Q is square), "economic" (Q has as many columns as R rows), "r" (R alone), or "raw":
    the Householder reflections and their factors, as LAPACK's geqrf returns them, and R.
    """

    __props__ = ("mode", "pivoting")

    def __init__(self, mode: str = "full", pivoting: bool = False) -> None:
        if mode not in _SIGNATURES:
            raise ValueError(
                f"Making a QR: Invalid mode {mode!r}; it must be one of {', '.join(_SIGNATURES)}"
            )
        self.mode, self.pivoting = mode, bool(pivoting)
        self.gufunc_signature = _SIGNATURES[mode] + (",(n)" if self.pivoting else "")

    def output_dtypes(self, dtype: str) -> Sequence[str]:
        floats = [dtype] * {"raw": 3, "r": 1}.get(self.mode, 2)
        return [*floats, "int32"] if self.pivoting else floats

    def computed(self, *arrays: Any) -> Sequence[Any]:
        from scipy.linalg import qr as factored

        found = factored(arrays[0], mode=self.mode, pivoting=self.pivoting, check_finite=False)
        return (*found[0], *found[1:]) if self.mode == "raw" else found

    def gradients(self, inputs: Arrays, outputs: Arrays, cotangents: Arrays) -> list[Any]:
        """Follow Liao and others, "Differentiable programming tensor networks", 2019, appendix, and for
        more columns than rows Roberts and Roberts, "QR and LQ decomposition matrix backpropagation", 2020.
        """
        x = inputs[0]
        rows, columns = x.type.shape
        is_unsuited = self.mode == "full" and rows is not None and columns is not None and rows > columns
        if self.mode == "raw" or self.pivoting or is_unsuited:
            raise UnavailableGradientError(
                f"Taking a gradient through {self} of {x.type}: there is none for this form", self
            )
        if self.mode == "full":
            x = _IS_WIDE(x, le(shape_i(x, 0), shape_i(x, 1)))
        if self.mode != "r":
            q, r = outputs
            of_q, of_r = zeros_for_none(outputs, cotangents)
        else:
            q, r = QR("economic")(x)
            of_q, of_r = (
                zeros_for_none([q], [None])[0],
                cotangents[0][: minimum(shape_i(x, 0), shape_i(x, 1))],
            )
        return [_of_wide(x, q, r, of_q, of_r)]


def _of_wide(x: Any, q: Any, r: Any, of_q: Any, of_r: Any) -> Any:
    """Return the gradient of `x`: that of its first columns, which are square or tall, beside the others'."""
    k = shape_i(r, 0)
    of_q = of_q + x[:, k:] @ of_r[:, k:].T
    r, of_r, beside = r[:, :k], of_r[:, :k], q @ of_r[:, k:]
    within = r @ of_r.T - of_q.T @ q
    symmetric = tril(within) + tril(within, -1).T
    first = solve_triangular(r, (of_q + q @ symmetric).T, b_ndim=2).T
    return concatenate([first, beside], 1)


def qr(
    A: Any, mode: str = "full", overwrite_a: bool = False, pivoting: bool = False, lwork: Any = None
) -> Any:
    """Return an orthogonal Q and an upper triangular R with `A = Q @ R`; see QR for the modes.

    "complete" and "reduced" are numpy's names of "full" and "economic". With `pivoting`, P with
    `A[:, P] = Q @ R` is returned last. `overwrite_a` and `lwork` are ignored. Leading axes are a batch.
    There is a gradient for "r", for "economic", and for "full" if A has no more rows than columns.
    """
    return batched(QR(_LIKE_NUMPY.get(mode, mode), pivoting), A)
