"""Tests of graphs, types and printing that differ for a reason."""

from __future__ import annotations

from explanations.difference import difference
from pytensor_tests.explained import ExplainedDifference

_FG = "tests/graph/test_fg.py::"
_FEATURES = "tests/graph/test_features.py::"
_TEXT = "the text of a graph shows its own Ops, storage and assumptions (decision 0143)"
_METHODS = "a graph changes through its methods only (decision 0143)"

INTERNAL: tuple[ExplainedDifference, ...] = (
    difference("tests/graph/test_traversal.py::*", "fixture 'mocker' not found", "it spies on a function"),
    difference(
        "tests/graph/test_utils.py::test_stack_trace", "'trace'", "it reads PyTensor's own tracebacks"
    ),
    difference("tests/graph/*", "pytensor.graph.basic.AbstractApply", "it asks for the base of two classes"),
    difference(f"{_FEATURES}*", "ReplaceValidate.history", "it looks into the history of a Feature"),
)

EXPLAINED: tuple[ExplainedDifference, ...] = (
    difference(f"{_FG}TestFunctionGraph::test_remove_client", "remove_client", _METHODS),
    difference(f"{_FG}TestFunctionGraph::test_check_integrity", "remove", _METHODS),
    difference(f"{_FG}TestFunctionGraph::test_empty", "dict_keys", "an input is a variable of its graph"),
    difference(f"{_FG}TestFunctionGraph::test_remove_duplicates", "var2", "a graph has an input once"),
    difference(f"{_FG}TestFunctionGraph::test_replace_circular", "", "a cycle is refused at once"),
    difference(f"{_FG}TestFunctionGraph::test_import_node", "Apply.tag", "nodes have no tags"),
    difference(f"{_FG}*test_bind_constant_output", "", "bits identify a constant, not the object"),
    difference(f"{_FEATURES}*", "log", "log(softmax) is a log_softmax at once, in fewer steps"),
    difference("tests/test_printing.py::test_debugprint*", "", _TEXT),
    difference("tests/scan/test_printing.py::*", "assert", "loops are built of other Ops"),
    difference("tests/*test_printing.py::*", "pytensor_logger", "graphs are drawn as SVG, not by pydot"),
    difference("tests/test_printing.py::test_Print", "Print", "a result needs no copy"),
)
