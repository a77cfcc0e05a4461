"""Tests of PyTensor's that are no measure of the engine's language, and differences that stay.

Each has its reason. A difference may stay where PyTensor's behaviour is a defect or an internal.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from pytensor_tests.explained import ExplainedDifference

LINKERS = "it tests PyTensor's linkers, C code and profiles"
FILES = "it tests PyTensor's lock of its own compile directory"

LEFT_OUT = {
    "tests/compile/debug/*": LINKERS,
    "tests/compile/test_compilelock.py": FILES,
    "tests/tensor/test_blas.py": LINKERS,
    "tests/tensor/test_blas_c.py": LINKERS,
    "tests/tensor/test_gc.py": LINKERS,
    "tests/tensor/rewriting/test_blas*": LINKERS,
}
"""Files of tests that are not run, with the reason."""

RUN = "language"

EXPLAINED: tuple[ExplainedDifference, ...] = (
    ExplainedDifference(
        RUN,
        "tests/tensor/test_math.py::TestMeanDtype::test_mean_custom_dtype*-complex*",
        "imaginary part",
        "PyTensor drops imaginary parts here, with numpy's warning; the engine refuses (decision 0121)",
    ),
    ExplainedDifference(
        RUN,
        "tests/tensor/test_casting.py::TestCasting::test_0*",
        "scalar_op",
        "it reads properties of PyTensor's Op of a cast",
    ),
    ExplainedDifference(
        RUN,
        "tests/tensor/test_elemwise.py::TestAddInplaceBroadcast::*",
        "",
        "no elementwise operation overwrites its inputs here (decision 0016)",
    ),
    ExplainedDifference(
        RUN,
        "tests/tensor/test_elemwise.py::test_XOR_inplace",
        "",
        "no elementwise operation overwrites its inputs here (decision 0016)",
    ),
    ExplainedDifference(
        RUN,
        "tests/scalar/test_basic.py::test_constant",
        "int8",
        "a Python int is an int64 by itself (decision 0122)",
    ),
    ExplainedDifference(
        RUN,
        "tests/tensor/test_special.py::test_xlogy_as_xlogx",
        "nan",
        "x / x is NaN at 0, where PyTensor cancels it",
    ),
    ExplainedDifference(
        RUN,
        "tests/tensor/test_sort.py::*",
        "give one whole number, an axis",
        "an axis is known when the graph is built",
    ),
    ExplainedDifference(
        RUN,
        "tests/tensor/test_extra_ops.py::TestSearchsortedOp::test_searchsortedOp_on_right_side",
        "",
        "it searches a vector that is not sorted",
    ),
    ExplainedDifference(
        RUN,
        "tests/tensor/test_subtensor.py::TestAdvancedSubtensor::test_inc_adv_subtensor*_with_broadcasting*",
        "",
        "the gradient counts a repeated place once, as the value does (decision 0125)",
    ),
    ExplainedDifference(
        RUN,
        "tests/tensor/test_subtensor.py::*",
        "does not fit what is indexed: found lengths",
        "an axis broadcasts only if its length is known to be 1 (decision 0111)",
    ),
    ExplainedDifference(
        RUN,
        "tests/tensor/test_subtensor.py::TestSubtensor::test_grad_?d",
        "assert 4 == 6",
        "it counts the Ops of a compiled graph",
    ),
    ExplainedDifference(
        RUN,
        "tests/tensor/linalg/test_decomposition/test_svd.py::TestSvd::test_grad*full_matrices=True*",
        "DID NOT RAISE",
        "singular values have a gradient, whatever the form of their vectors",
    ),
    ExplainedDifference(
        RUN,
        "tests/tensor/linalg/test_decomposition/test_qr.py::test_qr_grad*shape=(6, 3)*mode=full*",
        "must be square",
        "both refuse this gradient, with errors of different classes",
    ),
    ExplainedDifference(
        RUN,
        "tests/tensor/linalg/test_decomposition/test_qr.py::test_qr_grad*mode=raw*",
        "Taking a gradient",
        "both refuse this gradient, with errors of different classes",
    ),
    ExplainedDifference(
        RUN,
        "tests/tensor/linalg/test_decomposition/test_schur.py::*not_batched_*",
        "Not equal to tolerance",
        "PyTensor overwrites an input that is declared mutable; the engine ignores this (decision 0112)",
    ),
    ExplainedDifference(
        RUN,
        "tests/tensor/linalg/test_decomposition/test_cholesky.py::test_cholesky_*indef",
        "DID NOT WARN",
        "the engine's cholesky has on_error, which is not deprecated",
    ),
    ExplainedDifference(
        RUN,
        "tests/tensor/linalg/test_deprecation_shim.py::*",
        "DID NOT",
        "the engine has no names of PyTensor's earlier releases",
    ),
    ExplainedDifference(
        RUN,
        "tests/tensor/linalg/test_doc_api.py::*",
        "linalg.rst",
        "it compares pages of PyTensor's documentation",
    ),
    ExplainedDifference(
        RUN,
        "tests/tensor/linalg/test_inverse.py::test_inverse_singular",
        "DID NOT RAISE",
        "the inverse of a singular matrix is NaN, as the solution of its equations is",
    ),
    ExplainedDifference(
        RUN,
        "tests/tensor/linalg/test_products.py::TestKron::test_vec_vec_kron_raises",
        "DID NOT RAISE",
        "vectors have a Kronecker product, numpy's",
    ),
    ExplainedDifference(
        RUN,
        "tests/tensor/linalg/test_solvers/test_general.py::TestSolveBase::*",
        "SolveTest",
        "messages and properties of its Op are PyTensor's own",
    ),
    ExplainedDifference(
        RUN,
        "tests/tensor/linalg/test_solvers/test_lstsq.py::TestLstsq::test_wrong_*",
        "Applying Lstsq",
        "the engine refuses wrong ranks when the graph is built",
    ),
    ExplainedDifference(
        RUN,
        "tests/tensor/linalg/test_summary.py::test_det_non_square_raises",
        "must be square",
        "the message is the engine's",
    ),
    ExplainedDifference(
        RUN,
        "tests/tensor/linalg/test_summary.py::test_trace",
        "DID NOT WARN",
        "the engine's linalg.trace is not deprecated",
    ),
    ExplainedDifference(
        RUN,
        "tests/tensor/test_blockwise.py::test_blockwise_*shape",
        "assert False",
        "a batch is a loop in the optimized graph, which shows no core_op (decision 0117)",
    ),
    ExplainedDifference(
        RUN,
        "tests/tensor/test_blockwise.py::TestInplace::*",
        "{}",
        "no Op of linear algebra overwrites its inputs here: kernels work on copies",
    ),
)
"""Tests that fail on the engine, and rightly so."""


def left_out(file: str) -> str:
    """Return why a file of tests is not run; empty if it is."""
    return next((reason for pattern, reason in LEFT_OUT.items() if fnmatchcase(file, pattern)), "")
