"""Loops that do the same steps become one, unless one needs another or a step is more than elements."""

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.inner import Scan

X, Y = np.array([1.0, -0.5, 2.0, 0.25]), np.array([0.5, 3.0, -1.0, 7.0])
x, y, a, n = pt.dvector("x"), pt.dvector("y"), pt.dscalar("a"), pt.lscalar("n")


def rows(*arguments, **options):
    return engine.scan(*arguments, **options, return_updates=False)


def scans(graph):
    return [node for node in graph.fgraph.toposort() if isinstance(node.op, Scan)]


def running(sequence, n_steps=n, factor=a):
    """Return a recurrence over `sequence`."""
    return rows(lambda row, past: factor * past + row, sequence, [np.float64(0.5)], n_steps=n_steps)


def test_loops_of_one_length_become_one(rewritten):
    outs = [running(x), pt.sum(running(y)), running(y, factor=2.0)[-2:], rows(pt.exp, x, n_steps=n)]
    graph = rewritten([x, y, a, n], outs).check_values(X, Y, 0.3, 3).check_values(X, Y, 0.3, 0)
    (node,) = scans(graph)
    assert (node.op.info.n_seqs, node.op.info.n_states, node.op.info.n_mapped) == (2, 3, 1)
    assert graph.applied["scan_merge"] == 1


def test_a_constant_number_of_steps_is_one_length(rewritten):
    assert len(scans(rewritten([x, y, a], [running(x, 4), running(y, 4)]).check_values(X, Y, 0.3))) == 1
    assert len(scans(rewritten([x, y, a], [running(x, 4), running(y, 3)]).check_values(X, Y, 0.3))) == 2


def test_a_loop_over_the_results_of_another_stays_behind_it(rewritten):
    first = running(x)
    graph = rewritten([x, y, a, n], [running(first), running(pt.exp(y))]).check_values(X, Y, 0.3, 4)
    assert len(scans(graph)) == 2


def test_two_groups_that_need_each_other_are_not_both_merged(rewritten):
    long, short = running(x, 4), running(y, 3)
    over_short, over_long = running(pt.concatenate([short, y[:1]]), 4), running(long[:-1], 3)
    graph = rewritten([x, y, a], [over_short[-1] + over_long[-1]]).check_values(X, Y, 0.3)
    assert len(scans(graph)) == 3


def until_above(change, sequence, watched, bound):
    def step(row, seen, limit):
        return change(row), engine.until(seen > limit)

    return rows(step, [sequence, watched], non_sequences=[bound], n_steps=n)


def test_loops_that_end_on_one_condition_become_one(rewritten):
    outs = [until_above(pt.exp, x, y, a), until_above(pt.sin, y, y, a)]
    graph = rewritten([x, y, a, n], outs).check_values(X, Y, 2.0, 4).check_values(X, Y, 9.0, 3)
    (node,) = scans(graph)
    assert node.op.info.is_while


@pytest.mark.parametrize(("watched", "bound"), [(-y, a), (y, 2 * a), (x, a)])
def test_loops_that_end_on_other_conditions_stay_apart(rewritten, watched, bound):
    outs = [until_above(pt.exp, x, y, a), until_above(pt.sin, x, watched, bound)]
    assert len(scans(rewritten([x, y, a, n], outs).check_values(X, Y, 1.5, 4))) == 2


def test_loops_that_end_on_their_states_stay_apart(rewritten):
    def sums(sequence):
        return rows(lambda row, s: (s + row, engine.until(s + row > a)), sequence, [np.float64(0.0)])

    assert len(scans(rewritten([x, a], [sums(x), sums(x[::-1])]).check_values(X, 2.0))) == 2


def test_products_of_matrices_stay_in_loops_of_their_own(rewritten):
    A = pt.dmatrix("A")
    outs = [rows(lambda p, A=A: A @ p, None, [start], n_steps=n) for start in (x, y)]
    assert len(scans(rewritten([A, x, y, n], outs).check_values(np.eye(4) / 2, X, Y, 3))) == 2


def test_a_merged_step_has_a_limited_size(rewritten):
    outs = [running(x, factor=float(number)) for number in range(2, 52)]
    graph = rewritten([x, n], outs).check_values(X, 4)
    assert [node.op.info.n_states for node in scans(graph)] == [32, 18]


def test_loops_over_what_is_made_of_one_tensor_become_one(rewritten):
    outs = [pt.sum(rows(lambda row, past: a * past + row, [x * k], [np.float64(0.5)])) for k in (1.0, 2.0)]
    assert len(scans(rewritten([x, a], outs).check_values(X, 0.3))) == 1


@pytest.mark.parametrize(("width", "count"), [(64, 1), (65, 2), (None, 2)])
def test_loops_over_long_rows_stay_apart(rewritten, width, count):
    wide = pt.tensor("wide", dtype="float64", shape=(None, width))
    start = pt.zeros(wide.shape[1])
    outs = [rows(lambda row, past: a * past + row, [wide * k], [start]) for k in (1.0, 2.0)]
    graph = rewritten([wide, a], outs).check_values(np.ones((3, width or 5)), 0.3)
    assert len(scans(graph)) == count
