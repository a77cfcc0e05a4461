"""Tests of indexing that differ for a reason."""

from __future__ import annotations

from explanations.difference import difference
from pytensor_tests.explained import ExplainedDifference

INTERNAL: tuple[ExplainedDifference, ...] = ()

EXPLAINED: tuple[ExplainedDifference, ...] = (
    difference("tests/tensor/test_subtensor.py::*test_ellipsis*", "= len([", "it counts Ops"),
    difference("tests/tensor/test_subtensor.py::*test_boolean", "= len([", "it counts Ops"),
    difference("tests/tensor/test_subtensor.py::*index_w_int_and_vec", "= len([", "it counts Ops"),
    difference("tests/tensor/test_subtensor.py::*adv_sub1_broadcast", "AssertionError: ([", "it counts Ops"),
    difference("tests/tensor/test_subtensor.py::*shape_i_scalar", "AssertionError: ([", "it counts Ops"),
    difference("tests/tensor/test_variable.py::test__getitem__Subtensor", "elemwise", "it counts Ops"),
    difference(
        "tests/tensor/test_subtensor.py::TestAdvancedSubtensor::test_inc_adv_subtensor*_with_broadcasting*",
        "",
        "the gradient counts a repeated place once, as the value does (decision 0125)",
    ),
    difference(
        "tests/tensor/test_subtensor.py::*",
        "does not fit what is indexed: found lengths",
        "an axis broadcasts only if its length is known to be 1 (decision 0111)",
    ),
    difference(
        "tests/tensor/test_subtensor.py::TestSubtensor::test_grad_?d",
        "assert 4 == 6",
        "it counts the Ops of a compiled graph",
    ),
    difference(
        "tests/tensor/rewriting/test_subtensor.py::test_slice_read_of_write",
        "Shape_i{i=0}",
        "lengths that types have are asked of tensors until a function is made (decision 0214)",
    ),
)
