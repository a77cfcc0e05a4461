"""Tests of loops and random variables that differ for a reason."""

from __future__ import annotations

from explanations.difference import difference
from pytensor_tests.explained import ExplainedDifference

_COUNTS = "it counts the loops of a compiled graph, or their outputs"
_STORED = "it looks into the data structures behind PyTensor's Scan"
_MERGE = "a truncated gradient does not keep loops apart that compute the same"

INTERNAL: tuple[ExplainedDifference, ...] = (
    difference("tests/scan/*", "pytensor.scan.rewriting.", "it asks for one of PyTensor's own rewrites"),
    difference("tests/scan/rewriting/test_trace.py::*", "array(20) == 11", _STORED),
    difference("tests/scan/rewriting/test_trace.py::*", "isinstance(10, Constant)", _STORED),
    difference("tests/scan/rewriting/test_trace.py::*", "not enough values to unpack", _STORED),
    difference("tests/scan/rewriting/test_trace.py::*test_while_scan_map", "assert array([0.])", _STORED),
    difference("tests/scan/rewriting/test_push_out.py::*", "inner_outputs", _STORED),
    difference(
        "tests/scan/rewriting/test_inplace.py::*", "output 0 has inplace", "it asks what is overwritten"
    ),
    difference(
        "tests/scalar/test_loop.py::test_elemwise_inplace*", "assert {}", "it asks what is overwritten"
    ),
    difference("tests/scan/test_basic.py::test_single_step_untraced_sit_sot", "'used'", _STORED),
    difference("tests/scan/test_basic.py::*test_oinp_iinp_iout_oout_mappings", "{5: []}", _STORED),
    difference("tests/scan/rewriting/*", "= ScanInfo(", _STORED),
)

EXPLAINED: tuple[ExplainedDifference, ...] = (
    difference("tests/scan/rewriting/test_merge.py::*test_basic", "count_scans", _MERGE),
    difference("tests/scan/rewriting/test_push_out.py::*", "assert", _COUNTS),
    difference(
        "tests/scan/rewriting/test_inplace.py::*",
        "is needed: found",
        "a state has no buffer of all its steps",
    ),
    difference(
        "tests/scan/rewriting/test_io.py::*", "steps are to be done", "too few rows are refused at once"
    ),
    difference("tests/scan/test_basic.py::*connection_pattern*", "", "a loop has no inputs for its buffers"),
    difference(
        "tests/scan/test_basic.py::test_inconsistent_broadcast_error", "", "the engine has that gradient"
    ),
    difference(
        "tests/scan/test_basic.py::test_missing_input_error", "", "the function refuses it, not the loop"
    ),
    difference("tests/scalar/test_loop.py::test_same_out_as_inp_error", "", "a state may become another one"),
)
