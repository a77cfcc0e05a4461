import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.graph import equal_computations
from engine.rewriting import rewrite_graph

X = np.arange(6.0).reshape(2, 3)


@pytest.fixture
def fixed():
    return pt.tensor("fixed", dtype="float64", shape=(2, 3))


@pytest.mark.parametrize(
    "index", [np.s_[:2], np.s_[0:2, 0:3], np.s_[0:, :13], np.s_[0:7:1], np.s_[:, 0:], np.s_[::1, ::1]]
)
def test_slices_of_everything_go(rewritten, fixed, index):
    assert rewritten(fixed, fixed[index]).check_values(X, exact=True).ops == []
    assert rewritten(fixed, pt.exp(fixed)[index]).check_values(X, exact=True).ops == ["exp"]


@pytest.mark.parametrize(
    "index", [np.s_[:1], np.s_[:, :-1], np.s_[1:2], np.s_[:, :2], np.s_[::-1], np.s_[:2:-1]]
)
def test_slices_of_a_part_stay(rewritten, fixed, index):
    assert len(rewritten(fixed, fixed[index]).check_values(X, exact=True).ops) == 1


def test_the_own_length_is_the_end(rewritten):
    x = pt.dmatrix("x")
    assert rewritten(x, pt.exp(x)[: x.shape[0]]).check_values(X).ops == ["exp"]
    assert rewritten(x, x[0 : x.shape[0], : x.shape[1]]).check_values(X).ops == []
    for other in (x[: x.shape[1]], x[:, : x.shape[0]], x[: x.shape[0] : -1]):
        assert "Subtensor" in " ".join(rewritten(x, other).check_values(X, exact=True).ops)


def test_indices_and_written_parts_keep_what_they_need(rewritten, fixed):
    y = pt.dvector("y")
    assert rewritten(fixed, fixed[0:2, 1]).check_values(X, exact=True).ops == ["Subtensor{:, i}"]
    graph = rewritten([fixed, y], pt.inc_subtensor(fixed[0:2, 1:2], y[:, None]))
    assert graph.check_values(X, np.array([1.0, 2.0]), exact=True).ops[-1] == "IncSubtensor{:, a:b}"


STEPS = {
    "a step over the end": (pt.tensor("a", shape=(5,)), (1, 5, 2), (1, None, 2)),
    "a step from the first": (pt.tensor("a", shape=(5,)), (0, 9, 2), (None, None, 2)),
    "back from the last": (pt.tensor("a", shape=(5,)), (-1, -6, -1), (None, None, -1)),
    "back from behind the last": (pt.tensor("a", shape=(5,)), (9, None, -2), (None, None, -2)),
    "back to the first": (pt.tensor("a", shape=(5,)), (3, 0, -1), (3, 0, -1)),
    "back from the last of an unknown length": (pt.vector("a"), (-1, -9, -1), (None, -9, -1)),
    "a step of an unknown length": (pt.vector("a"), (0, 5, 2), (None, 5, 2)),
}


@pytest.mark.parametrize("name", STEPS)
def test_bounds_that_a_step_reaches_are_left_out(name):
    a, written, due = STEPS[name]
    assert equal_computations([rewrite_graph(a[slice(*written)])], [a[slice(*due)]])
    np.testing.assert_array_equal(
        engine.function([a], a[slice(*written)])(np.arange(5.0)), np.arange(5.0)[slice(*written)]
    )
