"""Tests of the language that differ one by one, each for a reason of its own."""

from __future__ import annotations

from explanations.difference import RUN, OtherForm, difference
from pytensor_tests.explained import ExplainedDifference

_CHAIN = "a sum of three terms is a chain of sums of two, so that a pattern sees two operands"
_REDUCTION = "a reduction holds its axes as numbers, and its class is its operation (Sum, Max)"
_RULE = "an operation of the engine has a rule for dtypes and no preference"
REASONS = {
    "tensor/rewriting/test_basic.py::TestLocalUselessSwitch::test_broadcasting_different_dtype": (
        "the lengths in `x.shape` are read from it, so that it can be replaced"
    ),
    "compile/test_maker.py::TestFunction::test_update_err_broadcast": "a matrix of one element is a matrix",
    "graph/rewriting/test_unify.py::test_reify_op_pattern_to_op": _REDUCTION,
    "graph/rewriting/test_unify.py::test_*variadic*": _CHAIN,
    "graph/test_replace.py::*test_non_variable_raises": "the number of shapes is known",
    "scalar/test_basic.py::test_scalar_hash_default_output_type_preference": _RULE,
    "scan/rewriting/test_trace.py::*test_broadcasted_init*": "a state has no buffer of all its steps",
    "scan/test_basic.py::*test_grad_connectivity_matrix": "an initial state is a row of all",
    "tensor/linalg/test_inverse.py::*test_infer_shape": "it looks for the Op, which a solver replaces",
    "tensor/linalg/test_inverse.py::*test_static_shape": "a matrix that is not square is refused at once",
    "tensor/linalg/test_solvers/test_psd.py::*test_repr": "an Op is written with its properties in braces",
    "tensor/random/rewriting/test_basic.py::test_inplace_rewrites*": "it asks for a private function",
    "tensor/random/rewriting/test_basic.py::test_Dimshuffle_lift_re*": "names do not outlive compiling",
    "tensor/random/rewriting/test_basic.py::test_unused_rng": "a draw that nothing reads moves its generator",
    "tensor/test_basic.py::TestAlloc::test_alloc_of_view_linker": "new axes are added when it is built",
    "tensor/rewriting/test_elemwise.py::*test_nested_composite": "users' operations run one by one",
    "tensor/test_basic.py::test_identity": "it looks for PyTensor's Op of a copy",
    "tensor/test_elemwise.py::test_perform_raises_with_too_many_operands": "the engine has no such limit",
    "tensor/test_extra_ops.py::test_broadcast_shape_symbolic*": "a float is no length",
    "tensor/test_math.py::TestNegBroadcast::test_bad_compile": "negated unsigned numbers wrap, as numpy's",
    "tensor/test_math.py::TestArgminArgmax::test2_float16": "it looks for the Op in the compiled graph",
    "tensor/test_shape.py::TestReshape::test_bad_shape": "a shape of unknown length is reshaped first",
    "tensor/test_special.py::test_xlogy": "the slope of 0 log(y) by y is 0 at y = 0, too",
    "tensor/test_special.py::test_xlog1py": "the slope of 0 log(1 + y) by y is 0 at y = -1, too",
    "tensor/test_variable.py::test__getitem__AdvancedSubtensor_bool": "a list of bools is a mask",
}
"""Patterns of tests, and the reason."""

INTERNAL: tuple[ExplainedDifference, ...] = (
    difference("tests/tensor/random/rewriting/*", "_props_dict", "it asks for a private function"),
)

EXPLAINED: tuple[ExplainedDifference, ...] = tuple(
    OtherForm(RUN, f"tests/{tests}", "", reason) for tests, reason in REASONS.items()
)
