import numpy as np
import pytest

import engine.tensor as pt

X = np.arange(12.0).reshape(4, 3) - 5
A, B = X[:2] * 1.5, X[1:3] - 0.25


@pytest.fixture
def parts():
    return pt.dmatrix("x"), pt.dmatrix("a"), pt.dmatrix("b"), pt.lscalar("n")


def test_the_last_write_of_a_part_is_the_one_that_counts(rewritten, parts):
    x, a, b, n = parts
    graph = rewritten([x, a, b, n], pt.set_subtensor(pt.set_subtensor(x[:n], a)[:n], b))
    assert graph.check_values(X, A, B, 2, exact=True).ops == ["SetSubtensor{:b}"]


def test_an_addition_to_what_was_written_is_written_at_once(rewritten, parts):
    x, a, b, n = parts
    graph = rewritten([x, a, b, n], pt.inc_subtensor(pt.set_subtensor(x[:n], a)[:n], b))
    assert graph.check_values(X, A, B, 2, exact=True).ops == ["add", "SetSubtensor{:b}"]


def test_sums_keep_their_order(rewritten, parts):
    x, a, b, n = parts
    graph = rewritten([x, a, b, n], pt.inc_subtensor(pt.inc_subtensor(x[:n], a)[:n], b))
    huge = np.full((2, 3), 1.5e308)
    assert graph.check_values(-np.ones((4, 3)) * 1.5e308, huge, huge, 2, exact=True).ops.count("add") == 0


def test_writes_of_other_parts_and_writes_that_are_read_stay(rewritten, parts):
    x, a, b, n = parts
    first = pt.set_subtensor(x[:n], a)
    other = rewritten([x, a, b, n], pt.set_subtensor(first[n:], b))
    assert len(other.check_values(X, A, B, 2, exact=True).ops) == 2
    both = rewritten([x, a, b, n], [first, pt.set_subtensor(first[:n], b)])
    assert len(both.check_values(X, A, B, 2, exact=True).ops) == 2


def test_the_part_that_was_added_to_is_a_sum(rewritten, parts):
    x, a, _, n = parts
    graph = rewritten([x, a, n], pt.inc_subtensor(x[:n], a)[:n])
    assert graph.check_values(X, A, 2, exact=True).ops == ["Subtensor{:b}", "add"]


@pytest.mark.parametrize("index", [np.s_[:], np.s_[:, :], np.s_[:, ::-1], np.s_[::-1, ::-1]])
def test_a_tensor_written_as_a_whole_is_what_is_written(rewritten, parts, index):
    x, y = parts[:2]
    written = rewritten([x, y], pt.set_subtensor(x[index], y)).check_values(X, X[::-1] + 1, exact=True)
    added = rewritten([x, y], pt.inc_subtensor(x[index], y)).check_values(X, X[::-1] + 1, exact=True)
    assert "IncSubtensor" not in " ".join([*written.ops, *added.ops])


def test_one_row_written_to_all_keeps_the_shape(rewritten):
    x, row = pt.dmatrix("x"), pt.drow("row")
    graph = rewritten([x, row], pt.set_subtensor(x[:], row)).check_values(X, X[:1], exact=True)
    assert graph.ops == ["second"]


def test_zeros_with_zeros_written_are_zeros(rewritten, parts):
    x, a = parts[:2]
    zeros, none = pt.zeros_like(x), pt.zeros_like(a)
    for change in (pt.set_subtensor, pt.inc_subtensor):
        for place in (zeros[:2], zeros[np.array([0, 3])]):
            graph = rewritten([x, a], change(place, none)).check_values(X, A, exact=True)
            assert graph.ops == ["second"]
    assert rewritten([x, a], pt.set_subtensor(zeros[:2], none.T)).check_values(X, A.T, exact=True).ops == [
        "second"
    ]


def test_zeros_of_the_other_sign_and_other_numbers_are_written(rewritten, parts):
    x = parts[0]
    minus = np.full_like(X, -0.0)
    for changed in (pt.set_subtensor(pt.zeros_like(x)[:2], -0.0), pt.inc_subtensor(x[:2], 0.0)):
        graph = rewritten(x, changed).check_values(minus, exact=True)
        assert "Subtensor" in " ".join(graph.ops)
    nan = pt.set_subtensor((pt.zeros_like(x) + np.nan)[:2], np.nan)
    rewritten(x, nan).check_values(X, exact=True)


def test_nothing_added_to_whole_numbers_is_nothing(rewritten):
    n = pt.lvector("n")
    assert rewritten(n, pt.inc_subtensor(n[1:], 0)).check_values(np.arange(4)).ops == []
