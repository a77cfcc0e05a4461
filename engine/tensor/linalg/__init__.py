"""Linear algebra: systems of equations, Cholesky's factor, determinants. `pt.linalg.solve(A, b)`.

Floats of 2 dimensions (float32 where all are, else float64). What LAPACK cannot compute, because a matrix is singular
or not positive definite, is made of NaNs, as in PyTensor.
"""

from engine.tensor.linalg.factorizations import Cholesky, SLogDet, cholesky, det, slogdet
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
    "slogdet",
    "solve",
    "solve_triangular",
]
