"""Large constants as data: other data is the same function, and no rewrite reads their numbers."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

import cachegraph.pytensor
from cachegraph.pytensor import explain
from cachegraph.pytensor.stored.large_constants import data_inputs

FIRST = np.arange(40.0)
SECOND = np.linspace(-3.0, 5.0, 40)


@pytest.fixture(autouse=True)
def installed() -> Iterator[None]:
    cachegraph.pytensor.install(large_constants=True)
    yield
    cachegraph.pytensor.uninstall()


def regression(observed: np.ndarray, group: np.ndarray | None = None, scale: float = 2.0) -> Any:
    """Return a likelihood of `observed` in groups, its gradient, and a constant output."""
    mu = pt.vector("mu")
    data = pt.constant(observed, name="observed")
    picked = mu[np.arange(40) % 4 if group is None else group]
    loss = ((data - picked) ** 2).sum() * scale + data.sum()
    return pytensor.function([mu], [loss, pytensor.grad(loss, mu), data])


def check(function: Any, observed: np.ndarray, group: np.ndarray | None = None) -> None:
    mu = np.array([1.0, 2.0, 3.0, 4.0])
    index = np.arange(40) % 4 if group is None else group
    loss, gradient, data = function(mu)
    residual = observed - mu[index]
    np.testing.assert_allclose(loss, (residual**2).sum() * 2.0 + observed.sum())
    np.testing.assert_allclose(gradient, np.bincount(index, -4.0 * residual, minlength=4))
    assert data.tolist() == observed.tolist()
    assert data is not observed


def test_other_data_is_the_same_function() -> None:
    first, second = regression(FIRST), regression(SECOND)
    assert [explain(f).outcome for f in (first, second)] == ["miss", "hit"]
    assert second.maker._fgraph is None
    check(first, FIRST)
    check(second, SECOND)
    check(first, FIRST)


def test_indices_are_data_too() -> None:
    other = np.arange(40) % 3
    first, second = regression(FIRST), regression(FIRST, other)
    assert explain(second).outcome == "hit"
    check(first, FIRST)
    check(second, FIRST, other)


def test_other_lengths_types_and_small_constants_are_other_functions() -> None:
    regression(FIRST)
    assert explain(regression(FIRST, scale=3.0)).outcome == "miss"
    assert explain(regression(FIRST.astype("float32"))).outcome == "miss"


@pytest.mark.parametrize("values", [np.zeros(40), np.ones(40), np.full(40, np.nan)])
def test_what_a_rewrite_would_fold_is_not_folded(values: np.ndarray) -> None:
    def scaled(constant: np.ndarray) -> Any:
        x = pt.vector("x")
        return pytensor.function([x], [x * pt.constant(constant), pt.exp(pt.constant(constant)) + x])

    folding, other = scaled(values), scaled(SECOND)
    assert explain(other).outcome == "hit"
    x = np.arange(40.0) + 1.0
    for function, constant in ((folding, values), (other, SECOND)):
        product, total = function(x)
        np.testing.assert_allclose(product, x * constant)
        np.testing.assert_allclose(total, np.exp(constant) + x)


def test_data_is_not_overwritten_and_not_given() -> None:
    function = regression(FIRST)
    before = FIRST.copy()
    for _ in range(3):
        check(function, FIRST)
    assert FIRST.tolist() == before.tolist()
    for given in (np.ones(40), np.ones(40, int)):
        with pytest.raises(TypeError):
            function(np.ones(4), given, given)
    function.trust_input = True
    with pytest.raises(TypeError, match="a large constant cannot be given"):
        function(np.ones(4), np.ones(40, int))
    check(function, FIRST)
    check(function.copy(), FIRST)


def test_copies_and_pickles_have_their_data() -> None:
    regression(FIRST)
    function = regression(SECOND)
    check(function.copy(), SECOND)
    check(pickle.loads(pickle.dumps(function)), SECOND)


def test_it_is_off_unless_it_is_asked_for() -> None:
    cachegraph.pytensor.uninstall()
    cachegraph.pytensor.install()
    regression(FIRST)
    other = regression(SECOND)
    assert explain(other).outcome == "miss"
    assert other.get_shared() == []
    check(other, SECOND)


def test_what_cannot_be_linked_on_data_is_linked_as_it_was_written(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from pytensor.link.numba.linker import NumbaLinker

    convert = NumbaLinker.fgraph_convert

    def refusing(self: Any, fgraph: Any, **options: Any) -> Any:
        if len(fgraph.inputs) > 1:
            raise NotImplementedError("not on data")
        return convert(self, fgraph, **options)

    monkeypatch.setattr(NumbaLinker, "fgraph_convert", refusing)
    function = regression(FIRST)
    assert explain(function).outcome == "bypass"
    check(function, FIRST)
    assert [r.message for r in caplog.records if "not on data" in r.message]


@pytest.mark.parametrize("order", ["C", "F", "A"])
def test_a_function_keeps_the_data_that_it_was_made_with(order: str) -> None:
    table = np.linspace(0.0, 1.0, 80).reshape(10, 8)
    table = table[:, ::2] if order == "A" else np.array(table[:, :4], order=order)
    b = pt.vector("b")
    function = pytensor.function([b], pt.exp(pt.constant(table) * b).sum(axis=0))
    before = function(np.ones(4))
    np.testing.assert_allclose(before, np.exp(table).sum(axis=0))
    table[:] = 100.0
    assert function(np.ones(4)).tolist() == before.tolist()


@pytest.mark.parametrize("keep_layout", [True, False])
def test_rows_of_data_are_contiguous_unless_the_layout_is_compiled_for(keep_layout: bool) -> None:
    columns = np.arange(80.0).reshape(40, 2)
    constant = pt.constant(columns[:, 1])
    assert not constant.data.flags.c_contiguous
    [spec] = data_inputs([constant], keep_layout)
    copied = spec.value.storage[0]
    assert copied.flags.c_contiguous != keep_layout
    columns[:] = 0.0
    assert copied.tolist() == [2.0 * number + 1.0 for number in range(40)]
