"""Tests of rewriting that expect a graph which the engine writes in another form, or does not make.

Values are those of PyTensor in each; decision 0142 has the rewrites that would change values.
"""

from __future__ import annotations

from explanations.difference import RUN, OtherForm, difference
from pytensor_tests.explained import ExplainedDifference

FOLDER = "tests/tensor/rewriting/"

FILL = "a value that is repeated like another is `second` until loops are fused, and is read where it is"
ALLOC = (
    "loops read a repeated value where it is; an `alloc` stays where lengths are not known when it is built"
)
SIGN = "a negated value is `neg`, and is no product with -1"
TERMS = "a sum of several terms is a chain of sums of two"
FUSED = "the compiled function has a Composite, in which the Ops that the test counts are"
FUSION = "loops are fused by other rules, and their order is another"
SPELLED = "the result is the same numbers in another form"
SWITCHED = "a branch that is computed by one more operation would cost more than a choice"
UNORDERED = "x <= x is False where x is NaN"
INTEGERS = "a square of whole numbers wraps, so its root is not the number"
NOT_MOVED = "an index with arrays moves where every check stays, and it selects no more (decision 0192)"
CHAINED = "an index with several arrays or a mask is a gather of rows before rewrites see it (decision 0138)"
FOLDED = "a range between constants is a constant before other rewrites see it"
WIDER = "a difference of numbers of two precisions is computed in the wider one as it is written"
DIVIDED = "a sum or product of quotients is one loop"
CHECKED = "the lengths that it would no longer check are checked (decision 0139)"
NAMED = (
    "an Op that its own graph replaces is replaced before, and not by a rewrite of these sets (decision 0137)"
)
DTYPE = "a part is set to a value of its own dtype; what would lose digits is refused"
PLAIN = "it makes an Op as only PyTensor's own code does"
ADDED = "two written parts are merged only where lengths are known to fit"
BATCH = "a batch is an Op with more axes, not a Blockwise (decision 0117)"
INFINITE = "eye(n) * d is NaN beside the diagonal where d is infinite, so it is no diagonal matrix"

FORMS: dict[str, tuple[str, ...]] = {
    FILL: (
        "test_basic.py::TestLocalUselessSwitch::test_broadcasting_1",
        "test_math.py::TestLocalSumProd::test_local_careduce_of_alloc",
        "test_math.py::test_log1p",
        "test_math.py::test_local_elemwise_sub_zeros",
        "test_math.py::test_local_mul_specialize",
        "test_math.py::test_local_pow_specialize",
        "test_special.py::test_local_log_sum_exp_maximum",
    ),
    ALLOC: (
        "test_basic.py::TestLocalCanonicalizeAlloc::*",
        "test_basic.py::TestLocalUselessIncSubtensorAlloc::*",
        "test_basic.py::test_local_merge_alloc",
        "test_subtensor.py::TestSubtensorAllocRewrites::test_incsubtensor_x_zeros",
        "test_subtensor.py::test_local_useless_inc_subtensor_increment_zeros",
        "test_subtensor_lift.py::TestSubtensorOfAlloc::test_basic_subtensor",
        "test_subtensor_lift.py::TestExtractDiagLiftPass::test_extract_diag_of_eye_*",
    ),
    SIGN: (
        "test_math.py::TestLocalNegToMul::test_neg_of_mul_stays_flat",
        "test_math.py::test_local_odds_sigmoid",
        "test_uncanonicalize.py::TestMinMax::test_optimization_min",
    ),
    TERMS: (
        "test_math.py::TestAlgebraicCanonizer::test_elemwise_multiple_inputs_rewrites",
        "test_elemwise.py::test_constant_fold_branches_add_mul*",
        "test_elemwise.py::TestFusion::test_add_mul_fusion_precedence",
    ),
    FUSED: (
        "test_math.py::TestSigmoidRewrites::test_exp_over_1_plus_exp",
        "test_math.py::TestSoftplusRewrites::*",
        "test_math.py::test_local_logit_sigmoid",
        "test_math.py::test_local_merge_abs",
        "test_math.py::TestLocalMergeSwitchSameCond::*",
        "test_math.py::TestLocalSumProd::test_local_sum_prod_of_scalar_mul",
    ),
    FUSION: ("test_elemwise.py::TestFusion::*",),
    SPELLED: (
        "test_math.py::TestLocalSumProd::test_local_careduce_of_alloc_broadcast_reduced_axes",
        "test_math.py::TestAlgebraicCanonizer::test_mul_div_cases",
        "test_math.py::TestAlgebraicCanonizer::test_mul_absorbing_element_broadcast",
        "test_basic.py::TestUselessElemwise::*",
        "test_basic.py::TestLiftTransposeThroughDot::*",
        "test_shape.py::TestLocalUselessReshape::test_all_but_one_match",
        "test_shape.py::TestLocalReshapeToDimshuffle::*",
        "test_subtensor.py::test_local_uint_constant_indices",
        "test_subtensor_lift.py::TestLocalSubtensorMakeVector::*",
        "test_subtensor_lift.py::TestExtractDiagLiftPass::test_extract_diag_of_write",
        "test_elemwise.py::test_local_useless_expand_dims_in_reshape",
    ),
    SWITCHED: ("test_basic.py::TestLocalMergeSwitchSameCond::*",),
    UNORDERED: ("test_math.py::TestLocalUselessElemwiseComparison::test_inequality_with_self",),
    INTEGERS: ("test_math.py::TestSqrSqrt::test_sqrt_sqr_integer_upcast",),
    NOT_MOVED: (
        "test_subtensor_lift.py::TestLocalSubtensorOfBatchDims::test_*adv*",
        "test_subtensor_lift.py::TestSubtensorOfAlloc::test_*adv*",
    ),
    CHAINED: (
        "test_subtensor.py::TestSubtensorIncSubtensor::test_inplace[[]*",
        "test_subtensor.py::TestReadOfWriteSameIndices::test_set_multi_axis_symbolic",
        "test_subtensor.py::TestReadOfWriteConstantIndices::test_non_leading_adv",
        "test_subtensor.py::test_local_adv_idx_to_slice_boolean_mask",
        "test_subtensor.py::test_local_set_to_inc_subtensor*",
        "test_subtensor.py::test_local_IncSubtensor_serialize",
    ),
    DIVIDED: ("test_math.py::TestLocalSumProd::test_local_sum_of_div",),
    FOLDED: ("test_subtensor.py::TestArangeRewrites::test_paired_*",),
    WIDER: ("test_math.py::TestSigmoidRewrites::test_local_1msigmoid",),
    CHECKED: (
        "test_subtensor.py::TestArangeRewrites::test_symbolic_*",
        "test_math.py::TestLocalSumProd::test_local_careduce_of_alloc_mixed_axes",
        "test_math.py::TestLocalSumProd::test_local_careduce_of_alloc_idempotent*",
        "test_math.py::TestLocalSumProd::test_local_careduce_of_alloc_prod_without_zeros",
        "test_shape.py::test_local_Shape_of_SpecifyShape*",
        "test_shape.py::test_local_specify_shape_alloc",
        "test_shape.py::TestSameShape::*",
        "test_basic.py::test_local_merge_consecutive_specify_shape*",
        "test_subtensor_lift.py::TestLocalSubtensorSpecifyShapeLift::*",
        "test_subtensor_lift.py::TestLocalSubtensorOfBatchDims::test_elemwise[[]*",
        "test_subtensor_lift.py::TestLocalSubtensorOfBatchDims::test_stale_*",
    ),
    NAMED: (
        "test_basic.py::TestTile::*",
        "test_basic.py::test_local_join_to_tile",
        "test_basic.py::test_local_useless_split",
        "test_extra_ops.py::*",
    ),
    DTYPE: (
        "test_subtensor.py::TestSubtensorIncSubtensor::test_different_dtypes",
        "test_subtensor.py::TestReadOfWriteSameIndices::test_set[[]float32-float64*",
    ),
    PLAIN: (
        "test_elemwise.py::TestDimshuffleLift::*",
        "test_numba.py::*",
        "test_shape.py::test_local_Shape_i_ground",
        "test_subtensor.py::test_local_useless_inc_subtensor_no_opt",
    ),
    ADDED: ("test_subtensor.py::TestWriteOfWriteSameIndices::*",),
    BATCH: ("test_subtensor.py::TestBlockwiseIncSubtensor::*",),
    INFINITE: ("test_math.py::TestDotDiagToElemwise::*eye_mul?",),
}
"""Patterns of tests by the reason."""

INTERNAL: tuple[ExplainedDifference, ...] = (
    difference(f"{FOLDER}test_elemwise.py::*multiout_inplace*", "assert {}", "it asks what is overwritten"),
)

EXPLAINED: tuple[ExplainedDifference, ...] = (
    difference(
        "tests/tensor/*", "check_stack_trace", "no variable knows the line that made it (decision 0173)"
    ),
    *(
        OtherForm(RUN, f"{FOLDER}{tests}", "", reason)
        for reason, patterns in FORMS.items()
        for tests in patterns
    ),
)
