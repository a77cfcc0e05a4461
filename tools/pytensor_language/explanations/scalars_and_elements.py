"""Tests of scalars, elementwise operations, reductions and shapes that differ for a reason."""

from __future__ import annotations

from explanations.difference import difference
from pytensor_tests.explained import ExplainedDifference

_NAMED = "it looks for the Op in the compiled graph, where the Op's own graph has replaced it (decision 0137)"

_CONSTANT = "a constant is a copy that nobody can change"
_COPIED = "unaligned arrays are converted"
_SILENT = "nothing of PyTensor's earlier releases is there, and no comparison warns"
_NUMBERS = "a number in a graph of tensors is a tensor, before a function is made"
_BATCHED = "a batch is an Op with more axes, not a Blockwise (decision 0117)"
_COUNTED = "it counts the Ops of a compiled graph"
_REDUCED = "a sum over several axes has the bits of numpy's, not those of one axis after the other"
_BROADCASTS = "an axis broadcasts only if its length is known to be 1 (decision 0111)"
_AUTOCAST = "a Python number takes the dtype of what it meets (NEP 50)"

INTERNAL: tuple[ExplainedDifference, ...] = (
    difference(
        "tests/tensor/test_casting.py::TestCasting::test_0*", "scalar_op", "it asks for a private cast"
    ),
    difference("tests/tensor/test_basic.py::TestInferShape::test_Eye", "AssertionError", _NAMED),
    difference("tests/tensor/test_special.py::TestSoftmax::test_infer_shape", "AssertionError", _NAMED),
    difference("tests/tensor/*::test_identity", "assert 0 == 1", "it looks for PyTensor's Op of a copy"),
    difference(
        "tests/tensor/*join_concatenate_one*", "assert 0 == 1", "it looks for PyTensor's Op of a copy"
    ),
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
    difference("tests/tensor/test_basic.py::TestARange::*", "cast{int64}", "a range counts in int64"),
    difference(
        "tests/tensor/test_basic.py::TestAsTensorVariable::test_bool", "", "True is a bool, as in numpy"
    ),
    difference("tests/tensor/test_basic.py::TestAsTensorVariable::test_memmap", "", _CONSTANT),
    difference("tests/tensor/test_type.py::test_filter_variable", "DID NOT RAISE", _COPIED),
    difference("tests/tensor/test_basic.py::test_unalign", "DID NOT RAISE", _COPIED),
    difference("tests/tensor/test_type.py::test_tensor_values_eq_approx", "DID NOT WARN", _SILENT),
    difference("tests/tensor/*", "FutureWarning", _SILENT),
    difference("tests/tensor/*", "(<class 'DeprecationWarning'>,)", _SILENT),
    difference("tests/tensor/test_basic.py::test_*ScalarFromTensor*", "", _NUMBERS),
    difference("tests/tensor/test_basic.py::TestInferShape::test_*Scalar*", "", _NUMBERS),
    difference("tests/tensor/test_subtensor.py::test_vectorize_adv*", "False == True", _BATCHED),
    difference("tests/tensor/test_blockwise.py::test_cop_with_params", "Blockwise", _BATCHED),
    difference("tests/tensor/test_shape.py::TestVectorize::*", "equal_computations", _BATCHED),
    difference("tests/tensor/test_basic.py::TestAlloc::*-1_2*", "assert 0 == 1", _COUNTED),
    difference("tests/tensor/test_sharedvar.py::*specify_shape*", "assert", _COUNTED),
    difference("tests/tensor/test_shape.py::TestReshape::test_bad_shape", "assert 3 == 1", _COUNTED),
    difference("tests/tensor/signal/test_conv.py::*", "too many values to unpack", _COUNTED),
    difference("tests/tensor/test_math.py::*", "equal_computations([Reshape{ndim=0}]", _COUNTED),
    difference("tests/tensor/test_elemwise.py::TestCAReduce::test_perform_nan", "", _REDUCED),
    difference(
        "tests/tensor/test_elemwise.py::TestElemwise::test_str", "Add", "an Op is named as its function"
    ),
    difference(
        "tests/tensor/*", "typing.Any cannot", "the Op of `any` is found by the shim in place of a type"
    ),
    difference(
        "tests/tensor/test_math.py::TestExp2Broadcast::test_good",
        "np.allclose",
        "functions of integers are float64, where PyTensor has float32 for narrow ones, which overflows",
    ),
    difference(
        "tests/tensor/test_math.py::TestBackwardsClip::test_good",
        "wrong value",
        "the upper bound wins over a larger lower one, as in numpy",
    ),
    difference(
        "tests/tensor/test_math.py::test_MaxAndArgmax_deprecated", "", "there are no earlier releases"
    ),
    difference(
        "tests/tensor/test_basic.py::*test_split_neg", "do not add up", "a negative length is refused at once"
    ),
    difference(
        "tests/tensor/test_basic.py::*test_negative_axis", "known", "a Split holds the lengths that are known"
    ),
    difference("tests/tensor/test_basic.py::*numpy_compare_tuple*", "SpecifyShape", _BROADCASTS),
    difference("tests/tensor/test_subtensor.py::*", "Runtime broadcasting not allowed", _BROADCASTS),
    difference("tests/tensor/test_shape.py::*shape_in_grad", "second", "a constraint that holds is left out"),
    difference("tests/tensor/test_shape.py::*non_tensor_type", "looks like a dtype", "a name is no dtype"),
    difference("tests/tensor/*", "pytensor.scalar.autocast_float", _AUTOCAST),
    difference(
        "tests/tensor/test_elemwise.py::test_inplace_dtype_changed",
        "'float64' == 'float32'",
        "dtypes are numpy's; this test sets another cast policy",
    ),
    difference("tests/tensor/test_basic.py::test_autocast_*", "'custom'", _AUTOCAST),
    difference("tests/*", "pytensor.sparse.", "there are no sparse matrices"),
    difference(
        "tests/tensor/test_math.py::TestClip2::test_complex_value",
        "",
        "complex numbers are clipped as numpy's",
    ),
    difference("tests/tensor/test_math.py::test_pprint", "axis=None", "all axes are written as None"),
    difference("tests/test_basic.py::test_root_module_not_polluted", "", "the shim lists no names"),
    difference(
        "tests/tensor/test_math_scipy.py::TestBetaIncGrad::test_beta_inc_stan_grad_combined",
        "nan location mismatch",
        "betainc is 1 at x = 1 for all parameters: its slopes by them are 0, where PyTensor has NaN",
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
        "tests/tensor/test_extra_ops.py::TestSearchsortedOp::test_searchsortedOp_on_right_side",
        "",
        "it searches a vector that is not sorted",
    ),
)
