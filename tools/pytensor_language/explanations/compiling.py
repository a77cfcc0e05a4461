"""Tests of functions, loops, gradients and random variables that differ for a reason."""

from __future__ import annotations

from explanations.difference import difference
from pytensor_tests.explained import ExplainedDifference

_MEMORY = "it asks which arrays a function overwrites or shares; here none of a caller's"
_BRANCHES = "it counts the IfElse nodes of a compiled graph"

INTERNAL: tuple[ExplainedDifference, ...] = (
    difference("tests/compile/test_maker.py::TestFunctionIn::test_in_mutable", "array_equal", _MEMORY),
    difference("tests/compile/test_maker.py::TestFunction::test_shared_mutable", "assert np.False_", _MEMORY),
    difference("tests/compile/test_maker.py::TestAliasingRules::test_no_aliasing_2*", "", _MEMORY),
    difference("tests/compile/test_mode.py::test_NoOutputFromInplace", "destroy_map", _MEMORY),
    difference("tests/scan/rewriting/test_inplace.py::*", "destroy_map", _MEMORY),
    difference("tests/scan/rewriting/test_inplace.py::*", "Right contains", _MEMORY),
    difference("tests/test_ifelse.py::*", "assert 0 == ", _BRANCHES),
    difference("tests/test_ifelse.py::*", "'IfElse{n_outs=", _BRANCHES),
)

EXPLAINED: tuple[ExplainedDifference, ...] = (
    difference(
        "tests/compile/test_builders.py::*", "it must be a variable, no constant", "an input is no constant"
    ),
    difference(
        "tests/compile/test_builders.py::*", "destroy_map", "no Op with a graph overwrites its inputs"
    ),
    difference(
        "tests/compile/test_builders.py::*test_valid_input", "DID NOT RAISE", "a tuple of inputs will do"
    ),
    difference("tests/compile/test_executor.py::*", "persistent_id", "it changes a pickler of CPython's"),
    difference(
        "tests/compile/test_executor.py::*copy_delete_updates", "DID NOT WARN", "a copy warns of nothing"
    ),
    difference("tests/compile/test_maker.py::*floatX", "DID NOT RAISE", "a Python float may be rounded"),
    difference("tests/compile/test_mode.py::*", "NoneType", "a Mode has no databases of rewrites of its own"),
    difference(
        "tests/compile/test_builders.py::TestOpFromGraph::test_equality_callable_overrides",
        "OpFromGraph",
        "overrides are equal if they are one function; PyTensor compares their code",
    ),
    difference(
        "tests/scan/test_basic.py::test_return_updates_api_change",
        "DID NOT WARN",
        "scan has one way to return updates, so nothing is deprecated",
    ),
    difference(
        "tests/scan/test_basic.py::TestScan::test_hash_equality_after_inner_optimization",
        "assert Scan == Scan",
        "an Op is immutable: compiling a function changes no Op that a user holds",
    ),
)
