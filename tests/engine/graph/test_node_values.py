"""One node computed from values: arguments of `perform`, and ownership of its results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine.tensor as pt
from engine.graph import Apply, Op
from engine.graph.reference import run_node


class Giving(Op):
    """Returns the result of its function of the inputs."""

    __props__ = ("function",)
    itypes = (pt.dvector,)
    otypes = (pt.dvector, pt.dvector)

    def __init__(self, function: Any) -> None:
        self.function = function

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        for cell, result in zip(output_storage, self.function(inputs[0]), strict=True):
            cell[0] = result


def run(function: Any, value: np.ndarray[Any, Any]) -> list[Any]:
    return run_node(Giving(function).make_node(pt.vector("x")), [value])


def test_an_input_is_a_copy_of_its_own() -> None:
    value = np.arange(6.0)[::2]
    value.setflags(write=False)
    seen: list[Any] = []
    run(lambda x: seen.append(x) or (x + 1, x + 2), value)
    assert seen[0].flags.carray
    assert not np.shares_memory(seen[0], value)


def test_a_result_that_nobody_else_holds_is_not_copied() -> None:
    addresses: list[int] = []

    def make(x: Any) -> Any:
        results = [x + 1, x + 2]
        addresses.extend(result.ctypes.data for result in results)
        while results:
            yield results.pop(0)

    found = run(make, np.ones(3))
    assert [result.ctypes.data for result in found] == addresses


@pytest.mark.parametrize(
    "results",
    [
        lambda x, kept: (x, x + 1),
        lambda x, kept: (kept, kept + 1),
        lambda x, kept: (kept[:2], kept[1:]),
        lambda x, kept: [kept + 1] * 2,
    ],
    ids=["its input", "one that is kept", "parts", "one for both"],
)
def test_other_results_are_copied(results: Any) -> None:
    kept = np.arange(3.0)
    held: list[Any] = [kept]

    def give(x: Any) -> Any:
        held.append(x)
        return results(x, kept)

    first, second = run(give, np.ones(3))
    expected = results(np.ones(3), np.arange(3.0))
    assert not np.shares_memory(first, second)
    for found, due in zip((first, second), expected, strict=True):
        assert found.base is None
        assert not any(np.shares_memory(found, array) for array in held)
        np.testing.assert_array_equal(found, due)
