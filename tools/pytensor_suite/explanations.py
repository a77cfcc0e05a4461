"""The differences that are explained, of runs with the adapter and with the engine's mode."""

from __future__ import annotations

from pytensor_tests.explained import ExplainedDifference

COUNTED = (
    "it counts how often an inner graph is converted for numba, and expects 2: where the function is found, "
    "none is"
)
NOTHING_IS_OVERWRITTEN = (
    "it asks that an Op, a loop or an update writes into its input: the engine decides itself which of its "
    "own buffers are written again, and overwrites no argument, no shared value and no constant"
)
STEPS_OF_PYTENSOR = "it measures the memory of single nodes, and the engine's function is one step"
FUSED_LATER = "it counts the nodes that PyTensor's fusion leaves: the engine fuses later, in its own graph"
NOT_THERE = "it is left out where the default linker is numba's, and its Op is gone from PyTensor 3.3.7"
LINKERS_COUNTED = "it counts the classes of the linkers of all modes: the engine's is one more"
TAKES_MORE = "it asks for an error where the engine converts the argument, with the right result"
NOT_SORTED = (
    "it searches in numbers that are not sorted: which place a search finds is not said, by numpy either"
)

EXPLAINED = (
    ExplainedDifference(
        "warm", "tests/link/numba/test_compile_ops.py::test_ofg_inner_compilation_reused", "", COUNTED
    ),
    *(
        ExplainedDifference("engine", f"tests/{tests}", message, NOTHING_IS_OVERWRITTEN)
        for tests, message in (
            ("compile/test_executor.py::TestFunction::test_copy_delete_updates", "DID NOT WARN"),
            ("compile/test_maker.py::TestFunctionIn::test_in_mutable", "assert not True"),
            ("compile/test_maker.py::TestFunction::test_shared_mutable", "[0, 1, 2, 3, 4]) == array([0, 2,"),
            ("compile/test_maker.py::TestAliasingRules::test_no_aliasing_2b", "-0.5]]) > 5"),
            ("compile/test_mode.py::test_NoOutputFromInplace", "destroy_map"),
            ("scan/rewriting/test_inplace.py::TestScanInplaceOptimizer::*", "destroy_map"),
            ("scan/rewriting/test_inplace.py::TestScanInplaceOptimizer::*", "assert {} == {"),
            ("scan/test_printing.py::test_debugprint_compiled_fn", "inplace=all"),
            ("tensor/test_blockwise.py::TestInplace::*", "assert {} == {"),
            ("tensor/test_elemwise.py::TestAddInplaceBroadcast::test_good", "inplace_check"),
            ("tensor/test_elemwise.py::test_XOR_inplace", "array([0, 0, 1, 1], dtype=int8)"),
            ("tensor/test_elemwise.py::test_inplace_dtype_changed", "assert {} == {"),
            ("tensor/random/rewriting/test_basic.py::test_inplace_rewrites*", "'inplace': False"),
            ("tensor/rewriting/test_elemwise.py::TestFusion::test_add_mul_fusion_inplace", "inplace_pattern"),
            ("tensor/rewriting/test_subtensor.py::TestSubtensorIncSubtensor::test_inplace*", "assert False"),
            ("typed_list/test_rewriting.py::TestInplace::*", ".inplace"),
            ("sparse/test_basic.py::TestRemove0::test_remove0", "Inplace optimization should have been"),
            ("test_ifelse.py::TestIfelse::*", "'if{inplace}', 0, "),
        )
    ),
    # These compare an argument that may be overwritten with the result after the call.
    ExplainedDifference(
        "engine",
        "tests/tensor/linalg/test_decomposition/test_schur.py::*_decomposition*not_batched*",
        "[0, 0]: 0.05252846941832584",
        NOTHING_IS_OVERWRITTEN,
    ),
    ExplainedDifference(
        "engine",
        "tests/tensor/linalg/test_decomposition/test_schur.py::*_decomposition*not_batched*",
        "[0, 0]: (0.05252846941832584",
        NOTHING_IS_OVERWRITTEN,
    ),
    *(
        ExplainedDifference(
            "engine", f"tests/tensor/rewriting/test_elemwise.py::{tests}", message, FUSED_LATER
        )
        for tests, message in (
            ("TestFusion::*", "= len("),
            ("TestFusion::test_fuse_across_symbolic_op", "where False = isinstance(Add(), Composite)"),
            ("TestFusion::test_merge_inlined_symbolic_ops", "assert 0 == 1"),
            ("TestCompositeCodegen::test_nested_composite", "assert 2 == 1"),
            ("test_local_inline_composite_constants*", "not enough values to unpack (expected 1, got 0)"),
        )
    ),
    *(
        ExplainedDifference("engine", f"tests/tensor/rewriting/test_math.py::{tests}", message, FUSED_LATER)
        for tests, message in (
            ("TestLocalErfc::*", "= len({"),
            ("TestLocalSumProd::test_local_prod_of_div", "Composite'>"),
        )
    ),
    ExplainedDifference(
        "engine",
        "tests/tensor/rewriting/test_subtensor_lift.py::*::test_multinary_multiple_clients",
        "Composite",
        FUSED_LATER,
    ),
    ExplainedDifference(
        "engine", "tests/tensor/test_extra_ops.py::*::test_searchsortedOp_on_right_side", "", NOT_SORTED
    ),
    ExplainedDifference(
        "engine",
        "tests/tensor/rewriting/test_basic.py::TestLocalCanonicalizeAlloc::test_inconsistent_shared*",
        "SpecifyShape: Got shape (3, 7), expected (6, 7)",
        "the error is that of the Op's perform; the numba mode has another text",
    ),
    ExplainedDifference("engine", "tests/sparse/test_rewriting.py::*", "has no attribute", NOT_THERE),
    ExplainedDifference(
        "engine",
        "tests/compile/debug/test_profiling.py::TestProfiling::test_profiling",
        "CPU: 4112KB",
        STEPS_OF_PYTENSOR,
    ),
    ExplainedDifference(
        "engine", "tests/compile/test_mode.py::TestBunchOfModes::*", "assert 5 == 6", LINKERS_COUNTED
    ),
    ExplainedDifference(
        "engine",
        "tests/compile/test_executor.py::TestPicklefunction::test_deepcopy_trust_input",
        "DID NOT RAISE",
        TAKES_MORE,
    ),
)
