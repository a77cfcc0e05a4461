"""Linear algebra: equations, factors, eigenvalues, determinants. `pt.linalg.solve(A, b)`.

Inputs are matrices, or batches of them: axes in front. The result is float32 if all are, complex if one is,
otherwise float64. Where LAPACK fails because a matrix is singular or not positive definite, the result is
NaN, as in PyTensor.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.inner.diagonals import trace
    from engine.tensor.linalg.control import (
        SolveDiscreteARE,
        SolveDiscreteLyapunov,
        SolveSylvester,
        solve_continuous_lyapunov,
        solve_discrete_are,
        solve_discrete_lyapunov,
        solve_sylvester,
    )
    from engine.tensor.linalg.eigen import Eig, Eigh, Eigvalsh, eig, eigh, eigvals, eigvalsh
    from engine.tensor.linalg.elimination import (
        LU,
        LUFactor,
        PivotToPermutations,
        lu,
        lu_factor,
        lu_solve,
        pivot_to_permutation,
    )
    from engine.tensor.linalg.equations import (
        CholeskySolve,
        MatrixInverse,
        Solve,
        SolveBase,
        SolveTriangular,
        cho_solve,
        inv,
        matrix_inverse,
        solve,
        solve_triangular,
    )
    from engine.tensor.linalg.exponential import Expm, expm
    from engine.tensor.linalg.factorizations import Cholesky, Det, SLogDet, cholesky, det, slogdet
    from engine.tensor.linalg.least_squares import Lstsq, TensorInv, lstsq, tensorinv, tensorsolve
    from engine.tensor.linalg.matrices import (
        BlockDiagonal,
        KroneckerProduct,
        block_diag,
        kron,
        matrix_dot,
        matrix_norm,
        matrix_power,
        norm,
        vector_norm,
    )
    from engine.tensor.linalg.orthogonal import QR, qr
    from engine.tensor.linalg.schur_forms import QZ, Schur, ordqz, qz, schur
    from engine.tensor.linalg.singular_values import (
        SVD,
        MatrixPinv,
        MatrixPinvOfLarge,
        matrix_rank,
        pinv,
        svd,
        svdvals,
    )

__all__ = [
    "LU",
    "QR",
    "QZ",
    "SVD",
    "BlockDiagonal",
    "Cholesky",
    "CholeskySolve",
    "Det",
    "Eig",
    "Eigh",
    "Eigvalsh",
    "Expm",
    "KroneckerProduct",
    "LUFactor",
    "Lstsq",
    "MatrixInverse",
    "MatrixPinv",
    "MatrixPinvOfLarge",
    "PivotToPermutations",
    "SLogDet",
    "Schur",
    "Solve",
    "SolveBase",
    "SolveDiscreteARE",
    "SolveDiscreteLyapunov",
    "SolveSylvester",
    "SolveTriangular",
    "TensorInv",
    "block_diag",
    "cho_solve",
    "cholesky",
    "det",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "expm",
    "inv",
    "kron",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_solve",
    "matrix_dot",
    "matrix_inverse",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "norm",
    "ordqz",
    "pinv",
    "pivot_to_permutation",
    "qr",
    "qz",
    "schur",
    "slogdet",
    "solve",
    "solve_continuous_lyapunov",
    "solve_discrete_are",
    "solve_discrete_lyapunov",
    "solve_sylvester",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensorinv",
    "tensorsolve",
    "trace",
    "tridiagonal_lu_factor",
    "tridiagonal_lu_solve",
    "vector_norm",
]

_NAMES = {
    "control": (
        "SolveDiscreteARE SolveDiscreteLyapunov SolveSylvester solve_continuous_lyapunov "
        "solve_discrete_are solve_discrete_lyapunov solve_sylvester"
    ),
    "eigen": "Eig Eigh Eigvalsh eig eigh eigvals eigvalsh",
    "elimination": "LU LUFactor PivotToPermutations lu lu_factor lu_solve pivot_to_permutation",
    "exponential": "Expm expm",
    "factorizations": "Cholesky Det SLogDet cholesky det slogdet",
    "least_squares": "Lstsq TensorInv lstsq tensorinv tensorsolve",
    "matrices": (
        "BlockDiagonal KroneckerProduct block_diag kron matrix_dot matrix_norm matrix_power norm vector_norm"
    ),
    "orthogonal": "QR qr",
    "schur_forms": "QZ Schur ordqz qz schur",
    "singular_values": "SVD MatrixPinv MatrixPinvOfLarge matrix_rank pinv svd svdvals",
    "equations": (
        "CholeskySolve MatrixInverse Solve SolveBase SolveTriangular cho_solve inv matrix_inverse "
        "solve solve_triangular"
    ),
}
_PLACES = {
    "trace": "engine.inner.diagonals",
    **dict.fromkeys(
        (
            "LUFactorTridiagonal",
            "SolveLUFactorTridiagonal",
            "tridiagonal_lu_factor",
            "tridiagonal_lu_solve",
        ),
        "engine.inner.tridiagonal",
    ),
    **{name: f"{__name__}.{module}" for module, names in _NAMES.items() for name in names.split()},
}
"""Public names by the module that has them, which a model that uses none of them does not import."""


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_PLACES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES})
