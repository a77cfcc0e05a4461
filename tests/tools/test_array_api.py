"""The array API standard on the engine: eager calls, how results are compared, and what the tool prints."""

import subprocess
import sys

import numpy as np
import pytest

import engine.tensor as pt
from tests.tools.programs import TOOLS, load_program

TOOL = TOOLS / "array_api"

COMPARED = ("finfo", "unstack", "isin", "linalg.cross", "fft.ihfft", "linalg.eigh")


@pytest.fixture(scope="module")
def eager():
    return load_program("array_api/eager.py")


@pytest.fixture(scope="module")
def comparison():
    return load_program("array_api/comparison.py")


def test_a_graph_serves_all_arrays_of_the_same_dtypes_and_ranks(eager):
    built = []

    def twice(x, *, plus):
        built.append(x.type)
        return 2 * x + plus

    space = eager.EagerNamespace({"twice": twice})
    np.testing.assert_array_equal(space.twice(np.arange(3), plus=1), [1, 3, 5])
    np.testing.assert_array_equal(space.twice(np.arange(2), plus=1), [1, 3])
    assert len(built) == 1
    np.testing.assert_array_equal(space.twice(np.arange(2), plus=2), [2, 4])
    np.testing.assert_array_equal(space.twice(np.arange(2.0), plus=1), [1.0, 3.0])
    assert len(built) == 3


def test_arrays_in_lists_are_inputs_and_tuples_of_tensors_are_results(eager):
    space = eager.EagerNamespace(
        {"joined": lambda xs: (pt.concatenate(xs), xs[0] + 1), "pair": lambda: (1, 2)}
    )
    joined, more = space.joined([np.zeros(1), np.ones(2)])
    np.testing.assert_array_equal(joined, [0, 1, 1])
    np.testing.assert_array_equal(more, [1])
    assert space.pair() == (1, 2)
    with pytest.raises(AttributeError, match="has no function 'other'"):
        space.other  # noqa: B018


@pytest.mark.parametrize(
    ("name", "expected", "found", "says"),
    [
        ("exp", np.array([1.0, np.nan]), np.array([1.0 + 1e-15, np.nan]), ""),
        ("exp", np.array([1.0]), np.array([1.0 + 1e-13]), "1 elements"),
        ("exp", np.array([0.0]), np.array([-0.0]), "1 elements"),
        ("sum", np.array([1e9, 0.0]), np.array([1e9, 1e-8]), ""),
        ("exp", np.array([1.0]), np.array([1.0], "float32"), "float32, not float64"),
        ("exp", np.ones(2), np.ones((2, 1)), "shape (2, 1), not (2,)"),
        ("abs", np.array([3]), np.array([4]), "1 elements"),
        ("abs", ValueError("one"), TypeError("other"), ""),
        ("abs", np.ones(1), TypeError("other"), "the engine refuses: TypeError: other"),
        ("abs", ValueError("one"), np.ones(1), "array_api_strict refuses: ValueError: one"),
        ("iinfo", (8, "int8"), (16, "int8"), "result 0"),
        ("empty", np.ones(2), np.zeros(2), ""),
    ],
)
def test_a_difference_says_what_differs(comparison, name, expected, found, says):
    text = comparison.difference(name, expected, found)
    assert says in text if says else text == ""


def test_the_signs_of_eigenvectors_are_no_difference(comparison):
    values, vectors = np.linalg.eigh(np.array([[2.0, 1.0], [1.0, 3.0]]))
    pair = load_program("array_api/products.py").Eigenpairs
    assert comparison.difference("linalg.eigh", pair(values, vectors), pair(values, -vectors)) == ""
    assert "elements" in comparison.difference(
        "linalg.eigh", pair(values, vectors), pair(values, vectors[::-1])
    )


def test_the_engine_agrees_with_array_api_strict():
    pytest.importorskip("array_api_strict")
    command = [sys.executable, str(TOOL), *COMPARED, "--kernels", "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    table = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if line}
    assert {name: table[name][-1] for name in COMPARED} == dict.fromkeys(COMPARED, "0")
    assert int(table["isin"][1]) >= 300


def test_a_function_without_a_call_fails():
    pytest.importorskip("array_api_strict")
    command = [sys.executable, str(TOOL), "no_such_function"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Without a call: no_such_function" in done.stdout
