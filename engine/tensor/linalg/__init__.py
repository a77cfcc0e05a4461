"""Linear algebra: equations, Cholesky factors, determinants. `pt.linalg.solve(A, b)`.

Inputs are float matrices; the result is float32 if all are, otherwise float64. Where LAPACK fails
because a matrix is singular or not positive definite, the result is NaN, as in PyTensor.
"""

from engine.tensor.linalg.factorizations import Cholesky, SLogDet, cholesky, det, slogdet
from engine.tensor.linalg.matrices import kron, matrix_dot, matrix_power, norm, trace
from engine.tensor.linalg.solvers import Solve, SolveTriangular, cho_solve, inv, solve, solve_triangular

__all__ = [
    "Cholesky",
    "SLogDet",
    "Solve",
    "SolveTriangular",
    "cho_solve",
    "cholesky",
    "det",
    "inv",
    "kron",
    "matrix_dot",
    "matrix_power",
    "norm",
    "slogdet",
    "solve",
    "solve_triangular",
    "trace",
]
