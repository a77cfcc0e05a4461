"""A gather from a vector runs in the loops that read it, behind one check of its index."""

from __future__ import annotations

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.compiling.mode import NO_REWRITES, Mode
from engine.lowering.rules.advanced_indexing import MANY_TAKEN
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
    x, i = pt.tensor("x", "float64", (9,)), pt.tensor("i", "int64", (MANY_TAKEN - 1,))
    assert joined([x, i], [pt.sum(x[i])])[0][0] == "gather"
    i = pt.tensor("i", "int64", (MANY_TAKEN,))
    assert joined([x, i], [pt.sum(x[i])])[0][0] == "check"


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
