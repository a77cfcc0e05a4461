"""`Print`: values that functions print."""

from __future__ import annotations

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.printing import Print

pytestmark = pytest.mark.usefixtures("kernels_once")


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
def test_a_value_is_printed_in_each_call_and_passes(mode: str, capsys: pytest.CaptureFixture[str]) -> None:
    x = pt.dvector("x")
    printed = Print("the sum", attrs=("__str__", "shape"))(pt.sum(x))
    f = engine.function([x], [printed * 2, engine.grad(printed, x)], mode=mode)
    for _ in range(2):
        doubled, gradient = f(np.ones(2))
        assert doubled == 4
        assert gradient.tolist() == [1, 1]
    assert capsys.readouterr().out == 2 * "the sum __str__ = 2.0\nthe sum shape = ()\n"


def test_somebodys_function_prints_and_two_messages_are_two_ops() -> None:
    seen: list[float] = []
    x = pt.dscalar("x")
    op = Print(global_fn=lambda op, value: seen.append(float(value)))
    assert engine.function([x], op(x) + 1)(3.0) == 4
    assert seen == [3.0]
    assert Print("a") != Print("b")
    assert Print("a") == Print("a")
