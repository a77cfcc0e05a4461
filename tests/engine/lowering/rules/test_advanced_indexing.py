"""A gather from a vector runs in the loops that read it, and a scatter in those that compute what it adds,
behind one check of the index."""

from __future__ import annotations

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.compiling.mode import NO_REWRITES, Mode
from engine.lowering.rules.advanced_indexing import MANY
from tests.engine.lowering.test_joining import joined

AS_WRITTEN = Mode(optimizer=NO_REWRITES)
RANDOM = np.random.default_rng(5)
X, Y, K, J = pt.vector("x"), pt.vector("y"), pt.lvector("i"), pt.ivector("j")
VALUES = {
    "x": RANDOM.normal(size=37),
    "y": RANDOM.normal(size=5000),
    "i": RANDOM.integers(-37, 37, 5000),
    "j": RANDOM.integers(-37, 37, 5000).astype(np.int32),
}


def added(base, index, values):
    return pt.inc_subtensor(base[index], values)


RESIDUES = pt.sum(pt.sqr(Y - X[K]))
GRAPHS = {
    "sum": ([X, K], [pt.sum(X[K])]),
    "narrow index": ([X, J], [pt.sum(X[J])]),
    "elementwise": ([X, Y, K], [X[K] * Y + 1.0]),
    "log density": ([X, Y, K], [pt.sum(pt.sqr(Y - X[K])), pt.sum(X[K] * Y)]),
    "two vectors": ([X, Y, K], [pt.sum(X[K] + pt.exp(X)[K] * Y)]),
    "two indices": ([X, Y, K, J], [X[K] * X[J] - Y]),
    "a gather of what the loop computes": ([Y, K], [(Y + 1.0)[K] * (Y + 1.0)]),
    "a gather that is a result as well": ([X, K], [X[K], pt.sum(X[K])]),
    "a maximum": ([X, K], [pt.max(X[K])]),
    "bools": ([X, K], [pt.sum(pt.switch((X > 0)[K], 1.5, 0.5))]),
    "a gather of a gather": ([X, K], [pt.sum(pt.sqr(X[K])[K])]),
    "an index that changes": ([X, K], [pt.sum(X[K]), pt.sum(X[pt.set_subtensor(K[3:9], -2)])]),
    "an inner index that is computed": ([X, K], [pt.sum(X[(K * 7) % 37])]),
    "a gradient": ([X, Y, K], [RESIDUES, engine.grad(RESIDUES, X)]),
    "sums at one index": ([Y, K], [added(pt.zeros(37), K, pt.exp(Y)), added(pt.zeros(37), K, pt.sin(Y))]),
    "sums at two indices": ([X, Y, K, J], [added(X, K, pt.exp(Y)), added(X, J, pt.exp(Y))]),
    "sums at two indices of one array": ([X, Y, K, J], [added(added(X, K, pt.exp(Y)), J, pt.sin(Y))]),
    "sums at one index of arrays of two lengths": (
        [X, Y, K],
        [added(X, K % 37, pt.exp(Y)), added(Y, K % 37, pt.sin(Y)), added(pt.exp(X), K % 37, Y * 2.0)],
    ),
    "negative sums at one index of arrays of two lengths": (
        [X, Y, K],
        [added(X, K, pt.exp(Y)), added(Y, K, pt.sin(Y))],
    ),
    "sums to many arrays": ([X, Y, K], [added(X * float(n), K, pt.exp(Y) * float(n)) for n in range(12)]),
    "sums at positions": ([X, Y, K], [added(X, K % 37, pt.exp(Y))]),
    "sums at a narrow index": ([X, Y, J], [added(X, J, pt.exp(Y)), pt.sum(pt.exp(Y))]),
    "sums of one number": ([X, Y, K], [added(X, K, pt.zeros_like(Y) + pt.sum(Y))]),
    "sums onto what was computed": ([X, Y, K], [added(pt.exp(X), K, pt.exp(Y))]),
    "sums onto what the loop reads": ([X, Y, K], [added(X, K, X[K] * Y)]),
    "sums of results": ([X, Y, K], [pt.exp(Y), added(X, K, pt.exp(Y)), pt.sum(pt.exp(Y))]),
    "sums that the loop could read": ([Y, K], [pt.sum(added(Y, K, pt.exp(Y)) * Y)]),
    "sums of integers": ([K], [added(pt.zeros(37, "int64"), K, K * 2)]),
    "a part": ([X, Y, K], [pt.sum(X[5:][K[:3] % 30] * Y[:3])]),
}


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("mode", [AS_WRITTEN, "FAST_RUN"])
def test_what_is_gathered_in_loops_is_numpys(name, mode):
    inputs, outputs = GRAPHS[name]
    values = [VALUES[variable.name] for variable in inputs]
    due = engine.function(inputs, outputs, mode="NUMPY")(*values)
    for found, expected in zip(engine.function(inputs, outputs, mode=mode)(*values), due, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_gather_is_in_no_memory():
    found, table = joined([X, Y, K], [pt.sum(pt.sqr(Y - X[K]))])
    assert found == ["check", "sum and 0 arrays of cast, take, sub, sqr"]
    assert sum(buffer.result is None for step in table.steps for buffer in step.writes) == 1


def test_an_index_is_checked_once_for_a_length():
    found, _ = joined([X, Y, K], [pt.sum(X[K] + pt.exp(X)[K]), pt.sum(X[K] * Y)])
    assert found.count("check") == 1
    found, _ = joined([X, Y, K], [pt.sum(X[K] * Y[K])])
    assert found.count("check") == 2


def test_few_elements_are_gathered_as_ever():
    x, i = pt.tensor("x", "float64", (9,)), pt.tensor("i", "int64", (MANY - 1,))
    assert joined([x, i], [pt.sum(x[i])])[0][0] == "gather"
    i = pt.tensor("i", "int64", (MANY,))
    assert joined([x, i], [pt.sum(x[i])])[0][0] == "check"


def test_what_a_loop_computes_is_added_by_it_and_is_in_no_memory():
    residues = Y - X[K]
    found, table = joined([X, Y, K], [pt.sum(pt.sqr(residues)), added(X, K, residues * 2.0)])
    assert found == [
        "check",
        "elementwise copy",
        "sum, addition and 0 arrays of cast, take, sub, sqr, mul",
    ]
    assert sum(buffer.result is None for step in table.steps for buffer in step.writes) == 1


def test_what_is_not_computed_is_added_by_a_kernel_of_its_own():
    assert joined([X, Y, K], [added(X, K, Y)])[0] == ["scatter_add"]
    assert joined([X, Y, K], [pt.set_subtensor(X[K], pt.exp(Y))])[0][-1] == "scatter_set"


def test_sums_follow_the_order_of_the_index_bit_for_bit():
    f = engine.function([X, Y, K], added(X, K, Y / 3.0))
    due = VALUES["x"].copy()
    np.add.at(due, VALUES["i"], VALUES["y"] / 3.0)
    assert f(VALUES["x"], VALUES["y"], VALUES["i"]).tobytes() == due.tobytes()
    positive = VALUES["i"] % 37
    assert f(VALUES["x"], VALUES["y"], positive).tobytes() == due.tobytes()


@pytest.mark.parametrize("number", [37, -38, 2**40])
@pytest.mark.parametrize("position", [0, 1023, 1024, 4999])
def test_nothing_is_added_where_an_index_is_out_of_range(number, position):
    base = pt.exp(X)
    total = engine.shared(np.zeros(37))
    f = engine.function([X, Y, K], added(base, K, pt.exp(Y)), updates={total: added(total, K, pt.exp(Y))})
    index = VALUES["i"].copy()
    index[position] = number
    with pytest.raises(IndexError, match=f"index {number}, at position {position}"):
        f(VALUES["x"], VALUES["y"], index)
    assert not total.get_value().any()


@pytest.mark.parametrize("dtype", ["int64", "int32"])
@pytest.mark.parametrize("size", [0, 1, 37])
def test_any_index_out_of_range_is_refused(dtype, size):
    i = pt.tensor("i", dtype, (None,))
    f = engine.function([X, i], pt.sum(X[i] * 2.0))
    limits = np.iinfo(dtype)
    values = np.ones(size)
    wrong = [size, -size - 1, limits.max, limits.min, limits.max - size, limits.min + max(size, 1) - 1]
    for number in wrong:
        for position in (0, 1, 4998, 4999):
            index = np.zeros(5000, dtype) if size else np.zeros(position + 1, dtype)
            index[position] = number
            at = position if size else 0
            with pytest.raises(IndexError, match=f"index {index[at]}, at position {at}"):
                f(values, index)
    assert f(values, np.zeros(0, dtype)) == 0.0
    if size:
        assert f(values, np.full(5000, size - 1, dtype)) == f(values, np.full(5000, -size, dtype)) == 10000.0


def test_nothing_is_read_before_the_check():
    total = engine.shared(np.zeros(5000))
    loops = pt.exp(Y) + 1.0
    f = engine.function([X, Y, K], pt.sum(loops * X[K]), updates={total: total + loops})
    index = VALUES["i"].copy()
    index[4000] = 2**40
    with pytest.raises(IndexError, match="at position 4000"):
        f(VALUES["x"], VALUES["y"], index)
    assert not total.get_value().any()
    np.testing.assert_allclose(
        f(VALUES["x"], VALUES["y"], VALUES["i"]),
        ((np.exp(VALUES["y"]) + 1.0) * VALUES["x"][VALUES["i"]]).sum(),
    )
