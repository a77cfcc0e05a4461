"""Comparing two compiled functions: they do the same with their arguments, or the difference is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cachegraph.pytensor.code.code_verification import difference

X = np.array([1.0, np.nan, 3.0])


def raising(error: Exception) -> Callable[..., Any]:
    def raise_(*_: Any) -> Any:
        raise error

    return raise_


def overwriting(x: Any) -> Any:
    x[:] = 0.0
    return (1.0,)


def drawing(rng: np.random.Generator) -> Any:
    return rng, rng.normal()


@pytest.mark.parametrize(
    ("stored", "compiled"),
    [
        (lambda x: (x * 2,), lambda x: (x + x,)),
        (lambda x: (x * (1 + 1e-13),), lambda x: (x,)),
        (lambda x: (x[2] - 3.0 + 1e-16,), lambda x: (x[2] - 3.0,)),
        (lambda x: (np.float32([1.0]) + np.float32(1e-6),), lambda x: (np.float32([1.0]),)),
        (raising(ValueError("no")), raising(ValueError("no"))),
        (overwriting, overwriting),
        (lambda x: [], lambda x: []),
        (lambda x: (x, None, [x]), lambda x: (x, None, [x])),
    ],
)
def test_the_same_is_no_difference(stored: Any, compiled: Any) -> None:
    before = X.copy()
    assert difference(stored, compiled, [X]) is None
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize(
    ("stored", "compiled"),
    [
        (lambda x: (x * 3,), lambda x: (x * 2,)),
        (lambda x: (x * (1 + 1e-8),), lambda x: (x,)),
        (lambda x: (np.nan_to_num(x),), lambda x: (x,)),
        (lambda x: (x.astype("float32"),), lambda x: (x,)),
        (lambda x: (x[:, None],), lambda x: (x,)),
        (lambda x: (x, x), lambda x: (x,)),
        (lambda x: (np.int64(3),), lambda x: (np.int64(4),)),
        (lambda x: (np.inf,), lambda x: (-np.inf,)),
        (raising(ValueError("no")), raising(ValueError("yes"))),
        (raising(ValueError("no")), raising(TypeError("no"))),
        (raising(ValueError("no")), lambda x: (x,)),
        (lambda x: (1.0,), overwriting),
    ],
)
def test_what_differs_is_said(stored: Any, compiled: Any) -> None:
    assert "with the arguments of a call it gives" in str(difference(stored, compiled, [X]))


def test_small_numbers_differ_as_large_ones_do() -> None:
    assert difference(lambda x: (x * 3,), lambda x: (x * 2,), [X * 1e-30])


def test_generators_are_drawn_from_apart_and_compared_by_their_states() -> None:
    rng = np.random.default_rng(3)
    before = rng.bit_generator.state
    assert difference(drawing, drawing, [rng]) is None
    assert difference(lambda rng: (rng, drawing(rng)[1] + 0 * rng.normal()), drawing, [rng])
    assert rng.bit_generator.state == before


def test_copies_lie_in_memory_as_the_arguments_do() -> None:
    matrix = np.arange(12.0).reshape(3, 4)
    seen: list[Any] = []
    difference(lambda *given: seen.extend(given), lambda *_: None, [matrix.T, matrix])
    assert [item.flags.f_contiguous for item in seen] == [True, False]


def test_what_does_not_repeat_itself_tells_nothing() -> None:
    rng = np.random.default_rng(3)
    assert difference(lambda x: (rng.normal(),), lambda x: (rng.normal(),), [X]) is None
