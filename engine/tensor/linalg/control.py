"""Matrix equations of linear control: Sylvester's, Lyapunov's and Riccati's.

Gradients follow Kao and Hennequin, "Automatic differentiation of Sylvester, Lyapunov, and algebraic Riccati
equations", 2020.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.tensor.blockwise import batched
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.linalg.callback_op import Arrays, CallbackOp
from engine.tensor.linalg.equations import Solve, adjoint

if TYPE_CHECKING:
    from engine.tensor.variable import TensorVariable


class SolveSylvester(CallbackOp):
    """The X with `A X + X B = C`; NaN if A and -B share an eigenvalue."""

    __props__ = ()
    gufunc_signature = "(m,m),(n,n),(m,n)->(m,n)"

    def computed(self, *arrays: Any) -> Sequence[Any]:
        from scipy.linalg import solve_sylvester as solved

        return (solved(*arrays) if arrays[2].size else arrays[2],)

    def gradients(self, inputs: Arrays, outputs: Arrays, cotangents: Arrays) -> list[Any]:
        a, b, _ = inputs
        of_c = self(a.T, b.T, cotangents[0])
        return [-(of_c @ outputs[0].T), -(outputs[0].T @ of_c), of_c]


def solve_sylvester(A: Any, B: Any, Q: Any) -> TensorVariable:
    """Return the X with `A X + X B = Q`. Leading axes are a batch."""
    return batched(SolveSylvester(), A, B, Q)


def solve_continuous_lyapunov(A: Any, Q: Any) -> TensorVariable:
    """Return the X with `A X + X A* = Q`, A* the adjoint of A. Leading axes are a batch."""
    A = as_tensor_variable(A)
    return solve_sylvester(A, adjoint(A), Q)


class SolveDiscreteLyapunov(CallbackOp):
    """The X with `A X A* - X + Q = 0`, by SciPy's `method` "direct" or "bilinear"."""

    __props__ = ("method",)
    gufunc_signature = "(m,m),(m,m)->(m,m)"

    def __init__(self, method: str = "bilinear") -> None:
        if method not in ("direct", "bilinear"):
            raise ValueError(
                'Solving a Lyapunov equation: Parameter "method" must be one of "direct" or "bilinear", '
                f"found {method}"
            )
        self.method = method

    def computed(self, *arrays: Any) -> Sequence[Any]:
        from scipy.linalg import solve_discrete_lyapunov as solved

        return (solved(*arrays, method=self.method) if arrays[1].size else arrays[1],)

    def gradients(self, inputs: Arrays, outputs: Arrays, cotangents: Arrays) -> list[Any]:
        a, x = inputs[0], outputs[0]
        of_q = self(a.T, cotangents[0])
        return [of_q @ a @ x.T + of_q.T @ a @ x, of_q]


def solve_discrete_lyapunov(A: Any, Q: Any, method: str = "bilinear") -> TensorVariable:
    """Return the X with `A X A* - X + Q = 0`, by the `method` "direct" (for small matrices) or "bilinear".

    Leading axes are a batch.
    """
    return batched(SolveDiscreteLyapunov(method), A, Q)


class SolveDiscreteARE(CallbackOp):
    """The stabilizing X with `A* X A - X - (A* X B) (R + B* X B)^-1 (B* X A) + Q = 0`; NaN without one.

    A* is the adjoint of A. Of Q and R the hermitian part counts.
    """

    __props__ = ()
    gufunc_signature = "(m,m),(m,n),(m,m),(n,n)->(m,m)"

    def computed(self, *arrays: Any) -> Sequence[Any]:
        from scipy.linalg import solve_discrete_are as solved

        a, b, q, r = arrays
        try:
            return (solved(a, b, (q + q.conj().T) / 2, (r + r.conj().T) / 2),)
        except ValueError as error:  # R is singular
            raise np.linalg.LinAlgError(str(error)) from error

    def gradients(self, inputs: Arrays, outputs: Arrays, cotangents: Arrays) -> list[Any]:
        (a, b, _, r), (x,) = inputs, outputs
        gain = Solve(assume_a="gen", b_ndim=2)(r + b.T @ x @ b, b.T @ x @ a)
        closed = a - b @ gain
        of_q = SolveDiscreteLyapunov()(closed, 0.5 * (cotangents[0] + cotangents[0].T))
        of_a = 2 * (x @ closed @ of_q)
        return [of_a, -(of_a @ gain.T), of_q, gain @ of_q @ gain.T]


def solve_discrete_are(A: Any, B: Any, Q: Any, R: Any) -> TensorVariable:
    """Return the stabilizing solution of the discrete algebraic Riccati equation; NaN without one.

    It is the X with `A* X A - X - (A* X B) (R + B* X B)^-1 (B* X A) + Q = 0`. Of Q and R the hermitian
    part counts. Leading axes are a batch.
    """
    return batched(SolveDiscreteARE(), A, B, Q, R)
