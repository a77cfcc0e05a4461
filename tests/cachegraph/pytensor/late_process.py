"""A process that changes what a function was made of before its first call, and prints the results as JSON.

python tests/cachegraph/pytensor/late_process.py (plain | adapter) (late | never)

Printed: results by name, and the counts of bypasses.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.link.numba.dispatch.basic import numba_njit, register_funcify_default_op_cache_key

FACTOR = 2.0


class Plain(Op):
    __props__ = ()

    def make_node(self, x: Any, *others: Any) -> Apply:
        return Apply(self, [x, *map(pt.as_tensor_variable, others)], [x.type()])

    def perform(self, node: Any, inputs: Any, storage: Any) -> None:
        raise NotImplementedError


class Scaled(Plain):
    """An Op that multiplies by a global which numba's function reads."""


class Registered(Plain):
    """An Op that adds the number with which its implementation was made."""


@register_funcify_default_op_cache_key(Scaled)
def scaled(op: Any, **kwargs: Any) -> Any:
    @numba_njit
    def times_factor(x: Any) -> Any:
        return x * FACTOR

    return times_factor


class Summed(Plain):
    """An Op that multiplies by the sum of a constant, which its implementation reads from the graph."""


@register_funcify_default_op_cache_key(Summed)
def summed(op: Any, node: Any = None, **kwargs: Any) -> Any:
    total = float(node.inputs[1].data.sum())

    @numba_njit
    def times_total(x: Any, table: Any) -> Any:
        return x * total

    return times_total


def register(term: float) -> None:
    @register_funcify_default_op_cache_key(Registered)
    def registered(op: Any, **kwargs: Any) -> Any:
        @numba_njit
        def plus_term(x: Any) -> Any:
            return x + term

        return plus_term


def overwritten(length: int) -> tuple[Any, Callable[[], object]]:
    """Return a function of an array, of its view and of a folded result, and what overwrites the array."""
    data, x = np.linspace(0.0, 1.0, 3 * length).reshape(3, length), pt.vector("x")
    table = pt.constant(data)
    f = pytensor.function([x], pt.exp(table.T * x).sum(axis=0) + table[:2, 1].sum())
    return f, lambda: np.multiply(data, 2.0, out=data)


def another_global() -> None:
    global FACTOR
    FACTOR = 5.0


def functions() -> Iterator[tuple[str, Any, Callable[[], object]]]:
    yield "frozen", *overwritten(40)
    yield "too large to freeze", *overwritten(50_000)
    x = pt.vector("x")
    yield "global", pytensor.function([x], Scaled()(x)), another_global
    yield "registered", pytensor.function([x], Registered()(x)), lambda: register(7.0)
    for value in (1.0, 2.0):
        yield f"table {value:.0f}", pytensor.function([x], Summed()(x, np.full(50, value))), lambda: None


def main(way: str, when: str) -> None:
    if way == "adapter":
        import cachegraph.pytensor

        cachegraph.pytensor.install()
    register(1.0)
    x = np.array([0.1, 0.2, 0.3])
    found = {}
    for name, f, change in functions():
        if when == "late":
            change()
        found[name] = np.asarray(f(x)).ravel().tolist()
    import cachegraph

    print(json.dumps([found, dict(cachegraph.counters().bypasses)]))


if __name__ == "__main__":
    main(*sys.argv[1:])
