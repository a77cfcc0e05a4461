"""Tests of linear algebra and batches that differ for a reason."""

from __future__ import annotations

from explanations.difference import difference
from pytensor_tests.explained import ExplainedDifference

_LINALG = "tests/tensor/rewriting/linalg/"
_REPLACED = "it looks for Ops in a compiled graph, where graphs have taken their places (decision 0129)"
_MEMORY = "it asks which arrays a function overwrites; here none of a caller's (decision 0144)"

INTERNAL: tuple[ExplainedDifference, ...] = (
    difference("tests/tensor/test_blockwise.py::TestInplace::*", "{} == {0: [", _MEMORY),
    difference(
        "tests/tensor/linalg/test_decomposition/test_schur.py::*not_batched_*",
        "Not equal to tolerance",
        _MEMORY,
    ),
    difference(f"{_LINALG}test_inverse.py::test_transpose_of_inv", "ARange", _REPLACED),
    difference(f"{_LINALG}test_inverse.py::test_lift_linalg_of_expanded_matrices*", "len([])", _REPLACED),
    difference(f"{_LINALG}test_products.py::test_*nested_blockdiag_fusion", "len([])", _REPLACED),
    difference(f"{_LINALG}test_products.py::test_det_of_non_permutation_*", "assert False", _REPLACED),
    difference(f"{_LINALG}test_solvers.py::test_block_diag_solve_pushdown_bails*unknown*", "[]", _REPLACED),
    difference(f"{_LINALG}test_summary.py::test_dont_apply_det_of_diag_*", "assert False", _REPLACED),
    difference(f"{_LINALG}test_summary.py::test_slogdet_specialization", "not True", _REPLACED),
    difference(
        f"{_LINALG}test_solvers.py::TestDiagonalSolveToDivision::*b_ndim=2*",
        "equal_computations",
        "it expects an index without effect, d[..., :, None], which the rewritten graph does not have",
    ),
)

EXPLAINED: tuple[ExplainedDifference, ...] = (
    difference(
        f"{_LINALG}test_decomposition.py::test_*_of_diag*alloc_diag*",
        "[id ",
        "QR keeps LAPACK's signs, singular vectors have none that are 0, and rewrites leave complex numbers "
        "as they are (decision 0130)",
    ),
    difference(
        f"{_LINALG}test_decomposition.py::test_qr_of_diag*eye_mul_r*",
        "equal_computations",
        "R of a diagonal matrix is that matrix, as LAPACK computes it; PyTensor's has other signs "
        "(decision 0130)",
    ),
    difference(
        f"{_LINALG}test_decomposition.py::test_eig_to_eigh",
        "equal_computations",
        "rewrites leave nodes with complex numbers as they are (decision 0130)",
    ),
    difference(
        f"{_LINALG}test_solvers.py::test_block_diag_solve_pushdown_bails*non_square*",
        "must be square",
        "a matrix that is known not to be square is refused when the graph is built",
    ),
    difference(
        f"{_LINALG}test_solvers.py::test_lu_decomposition_reused_scan*pos*",
        "assert 0 == 1",
        "the rewrites of a function are those of its loops, whatever mode the loop was made with",
    ),
    difference(
        f"{_LINALG}test_summary.py::test_det_of_diag_incorrect_for_rectangle_eye",
        "must be square",
        "the message is the engine's",
    ),
    difference(
        f"{_LINALG}test_summary.py::test_local_log_prod_to_sum_log_positive_tag*",
        "equal_computations",
        "tags are no part of a key and are not read (decision 0130); log(prod(x)) is a sum of logarithms "
        "wherever the product is positive",
    ),
    difference(
        f"{_LINALG}test_summary.py::test_local_log_prod_to_sum_log[[]log_prod_sqr*",
        "equal_computations",
        "the logarithm of a square is twice that of its root",
    ),
    difference(
        f"{_LINALG}test_summary.py::test_det_of_matrix_factorized_elsewhere[[]*",
        "[id ",
        "PyTensor's form is wrong for a matrix that is not positive definite, and loses the sign of "
        "exchanged rows (decision 0130)",
    ),
    difference(
        "tests/tensor/rewriting/test_blockwise.py::test_blockwise_reshape",
        "Reshape",
        "a Reshape of a batch is a Reshape at once (decision 0117)",
    ),
    difference(
        "tests/tensor/rewriting/test_blockwise.py::test_local_blockwise_alloc*",
        "assert",
        "a Blockwise of filled arrays is a loop; an elementwise Op takes a batch itself",
    ),
    difference(
        "tests/tensor/linalg/test_decomposition/test_svd.py::TestSvd::test_grad*full_matrices=True*",
        "DID NOT RAISE",
        "singular values have a gradient, whatever the form of their vectors",
    ),
    difference(
        "tests/tensor/linalg/test_decomposition/test_cholesky.py::test_cholesky_*indef",
        "DID NOT WARN",
        "the engine's cholesky has on_error, which is not deprecated",
    ),
    difference(
        "tests/tensor/linalg/test_doc_api.py::*",
        "linalg.rst",
        "it compares pages of PyTensor's documentation",
    ),
    difference(
        "tests/tensor/linalg/test_inverse.py::test_inverse_singular",
        "DID NOT RAISE",
        "the inverse of a singular matrix is NaN, as the solution of its equations is",
    ),
    difference(
        "tests/tensor/linalg/test_products.py::TestKron::test_vec_vec_kron_raises",
        "DID NOT RAISE",
        "vectors have a Kronecker product, numpy's",
    ),
    difference(
        "tests/tensor/linalg/test_solvers/test_general.py::TestSolveBase::*",
        "SolveTest",
        "messages and properties of its Op are PyTensor's own",
    ),
    difference(
        "tests/tensor/linalg/test_solvers/test_lstsq.py::TestLstsq::test_wrong_*",
        "Applying Lstsq",
        "the engine refuses wrong ranks when the graph is built",
    ),
    difference(
        "tests/tensor/linalg/test_summary.py::test_trace",
        "DID NOT WARN",
        "the engine's linalg.trace is not deprecated",
    ),
    difference(
        "tests/tensor/test_blockwise.py::test_blockwise_infer_core_shape",
        "assert not True",
        "an infer_shape sees types only, and nothing that computes inputs",
    ),
)
