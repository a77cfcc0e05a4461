"""Tests of scalars, elementwise operations, reductions and shapes that differ for a reason."""

from __future__ import annotations

from explanations.difference import difference
from pytensor_tests.explained import ExplainedDifference

_NAMED = "it looks for the Op in the compiled graph, where the Op's own graph has replaced it (decision 0137)"

INTERNAL: tuple[ExplainedDifference, ...] = (
    difference("tests/tensor/test_extra_ops.py::TestRepeat::test_infer_shape*", "AssertionError", _NAMED),
    difference(
        "tests/tensor/test_extra_ops.py::TestFillDiagonal*::test_infer_shape*", "AssertionError", _NAMED
    ),
    difference("tests/tensor/test_basic.py::TestInferShape::test_ExtractDiag", "AssertionError", _NAMED),
    difference("tests/tensor/test_basic.py::TestInferShape::test_Split", "AssertionError", _NAMED),
    difference("tests/tensor/test_basic.py::TestJoinAndSplit::test_split_0elem", "", _NAMED),
    difference(
        "tests/tensor/test_basic.py::TestJoinAndSplit::test_split_view*",
        "",
        "it asks which outputs share memory with inputs (view_map)",
    ),
    difference(
        "tests/tensor/test_math_scipy.py::TestHyp2F1Grad::test_unused_grad_loop_opt*",
        "",
        "it counts the arguments of PyTensor's own loop",
    ),
)

EXPLAINED: tuple[ExplainedDifference, ...] = (
    difference(
        "tests/tensor/test_math_scipy.py::TestBetaIncGrad::test_beta_inc_stan_grad_combined",
        "nan location mismatch",
        "betainc is 1 at x = 1 for all parameters: its slopes by them are 0, where PyTensor has NaN",
    ),
    difference(
        "tests/tensor/test_math.py::TestMeanDtype::test_mean_custom_dtype*-complex*",
        "imaginary part",
        "PyTensor drops imaginary parts here, with numpy's warning; the engine refuses (decision 0121)",
    ),
    difference(
        "tests/tensor/test_casting.py::TestCasting::test_0*",
        "scalar_op",
        "it reads properties of PyTensor's Op of a cast",
    ),
    difference(
        "tests/tensor/test_elemwise.py::TestAddInplaceBroadcast::*",
        "",
        "no elementwise operation overwrites its inputs here (decision 0016)",
    ),
    difference(
        "tests/tensor/test_elemwise.py::test_XOR_inplace",
        "",
        "no elementwise operation overwrites its inputs here (decision 0016)",
    ),
    difference(
        "tests/scalar/test_basic.py::test_constant",
        "int8",
        "a Python int is an int64 by itself (decision 0122)",
    ),
    difference(
        "tests/tensor/test_special.py::test_xlogy_as_xlogx",
        "nan",
        "x / x is NaN at 0, where PyTensor cancels it",
    ),
    difference(
        "tests/tensor/test_sort.py::*",
        "give one constant integer, an axis",
        "an axis is known when the graph is built",
    ),
    difference(
        "tests/tensor/test_extra_ops.py::TestSearchsortedOp::test_searchsortedOp_on_right_side",
        "",
        "it searches a vector that is not sorted",
    ),
)
