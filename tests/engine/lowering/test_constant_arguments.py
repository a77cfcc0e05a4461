"""Kernels that differ in constants alone are compiled once, and each call gets its own numbers."""

from __future__ import annotations

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.compiling.mode import NO_REWRITES, Mode
from engine.lowering.constant_arguments import share_kernels
from engine.lowering.loops import Number
from tests.engine.lowering.lowered import lower


def shared(inputs, outputs):
    """Lower a graph and share its kernels; return the kernels of its steps and the lowering."""
    lowering = lower(inputs, outputs)
    share_kernels(lowering)
    return [step.kernel for step in lowering.table.steps], lowering


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_kernels_with_other_constants_are_one(dtype):
    x = pt.vector("x", dtype=dtype)
    numbers = np.array([0.5, -0.0, np.inf, np.nan, 1e-30, 3.0], dtype=dtype)
    outputs = [x * number + numbers[j - 1] for j, number in enumerate(numbers)]
    f = engine.function([x], outputs, mode=Mode(optimizer=NO_REWRITES))
    kernels, _ = shared([x], outputs)
    assert len(set(kernels)) == 2  # one for the products, one for the sums
    value = np.array([1.0, -0.0, np.inf, np.nan], dtype=dtype)
    for j, found in enumerate(f(value)):
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(found, value * numbers[j] + numbers[j - 1])


def test_constants_that_agree_stay_in_the_kernel():
    mask = pt.tensor("mask", dtype="bool", shape=(None,))
    [first, second], lowering = shared([mask], [pt.switch(mask, 2.5, 1.5), pt.switch(mask, 3.5, 1.5)])
    assert first is second
    assert [node.value for node in first.body if isinstance(node, Number) and node.dtype == "float64"]
    assert [constant.data.tolist() for _, constant in lowering.constants] == [[2.5], [3.5]]


def test_a_kernel_without_a_like_keeps_its_constants():
    x = pt.vector("x")
    _, lowering = shared([x], [x * 2.5, x * 2.5, pt.exp(x)])
    assert lowering.constants == []


def test_exponents_and_integers_stay_in_kernels():
    x, n = pt.vector("x"), pt.lvector("n")
    kernels, lowering = shared([x, n], [x**2.5, x**3.5, n * 2, n * 3])
    assert len(set(kernels)) == 4
    assert lowering.constants == []


def test_a_hit_computes_with_the_same_constants(cache_directory):
    x = pt.vector("x")
    outputs = [pt.exp(x * (j + 0.5)) for j in range(20)]
    value = np.linspace(0, 1, 7)
    first = engine.function([x], outputs)
    again = engine.function([x], outputs)
    assert (first.cache_info.outcome, again.cache_info.outcome) == ("miss", "hit")
    assert first.cache_info.compilations <= 4  # the machine, and at most two sizes of joined loops
    for j, (a, b) in enumerate(zip(first(value), again(value), strict=True)):
        np.testing.assert_allclose(a, np.exp(value * (j + 0.5)), rtol=1e-14)
        assert a.tobytes() == b.tobytes()
