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
)
"""Tests that fail on the engine, and rightly so."""


def left_out(file: str) -> str:
    """Return why a file of tests is not run; empty if it is."""
    return next((reason for pattern, reason in LEFT_OUT.items() if fnmatchcase(file, pattern)), "")
