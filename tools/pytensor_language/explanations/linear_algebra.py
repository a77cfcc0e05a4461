"""Tests of linear algebra and batches that differ for a reason."""

from __future__ import annotations

from explanations.difference import difference
from pytensor_tests.explained import ExplainedDifference

INTERNAL: tuple[ExplainedDifference, ...] = ()

EXPLAINED: tuple[ExplainedDifference, ...] = (
    difference(
        "tests/tensor/linalg/test_decomposition/test_svd.py::TestSvd::test_grad*full_matrices=True*",
        "DID NOT RAISE",
        "singular values have a gradient, whatever the form of their vectors",
    ),
    difference(
        "tests/tensor/linalg/test_decomposition/test_qr.py::test_qr_grad*shape=(6, 3)*mode=full*",
        "must be square",
        "both refuse this gradient, with errors of different classes",
    ),
    difference(
        "tests/tensor/linalg/test_decomposition/test_qr.py::test_qr_grad*mode=raw*",
        "Taking a gradient",
        "both refuse this gradient, with errors of different classes",
    ),
    difference(
        "tests/tensor/linalg/test_decomposition/test_schur.py::*not_batched_*",
        "Not equal to tolerance",
        "PyTensor overwrites an input that is declared mutable; the engine ignores this (decision 0112)",
    ),
    difference(
        "tests/tensor/linalg/test_decomposition/test_cholesky.py::test_cholesky_*indef",
        "DID NOT WARN",
        "the engine's cholesky has on_error, which is not deprecated",
    ),
    difference(
        "tests/tensor/linalg/test_deprecation_shim.py::*",
        "DID NOT",
        "the engine has no names of PyTensor's earlier releases",
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
        "tests/tensor/linalg/test_summary.py::test_det_non_square_raises",
        "must be square",
        "the message is the engine's",
    ),
    difference(
        "tests/tensor/linalg/test_summary.py::test_trace",
        "DID NOT WARN",
        "the engine's linalg.trace is not deprecated",
    ),
    difference(
        "tests/tensor/test_blockwise.py::test_blockwise_*shape",
        "assert False",
        "a batch is a loop in the optimized graph, which shows no core_op (decision 0117)",
    ),
    difference(
        "tests/tensor/test_blockwise.py::TestInplace::*",
        "{}",
        "no Op of linear algebra overwrites its inputs here: kernels work on copies",
    ),
)
