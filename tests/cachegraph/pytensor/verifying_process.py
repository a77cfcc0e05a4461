"""A process that makes functions of PyTensor and calls each twice, and prints what happened as JSON.

    python tests/cachegraph/pytensor/verifying_process.py (call | swap | poison-exp) NAME [NAME ...]

NAME is a function below that makes a function and its arguments. With `swap`, the code of each is then
replaced in the store by that of the next, with good sums; with `poison-exp`, what PyTensor compiles for
`exp` is a sine. Printed: of each function results by call, and hits and misses of its code; then what was
counted and logged.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[3]


def doubled() -> Any:
    return _of_vector(lambda x, pt: x * 2)


def tripled() -> Any:
    return _of_vector(lambda x, pt: x * 3)


def exponential() -> Any:
    return _of_vector(lambda x, pt: pt.exp(x))


def shifted_exponential() -> Any:
    return _of_vector(lambda x, pt: pt.exp(x + 1) + 3)


def several() -> Any:
    return _of_vector(lambda x, pt: [x.sum(), pt.log(x), x > 1, pt.log(-x), (x**2).astype("float32")])


def counted() -> Any:
    """Return a function with a shared value that each call increases in place."""
    import pytensor
    import pytensor.tensor as pt

    total, x = pytensor.shared(np.zeros(3), borrow=True), pt.vector("x")
    return _function([x], total.sum(), updates={total: total + x}), [np.arange(3.0)]


def drawn() -> Any:
    import pytensor
    import pytensor.tensor as pt

    rng = pytensor.shared(np.random.default_rng(1))
    following, x = pt.random.normal(0, 1, size=(3,), rng=rng).owner.outputs
    return _function([], x, updates={rng: following}), []


def overwritten() -> Any:
    """Return a function that overwrites its argument; the second call's result shows it."""
    import pytensor
    import pytensor.tensor as pt

    x = pt.vector("x")
    f = _function([pytensor.In(x, mutable=True, borrow=True)], pytensor.Out(x * 2 + 1, borrow=True))
    return f, [np.arange(3.0)]


def refused() -> Any:
    from pytensor.raise_op import Assert

    return _of_vector(lambda x, pt: Assert("must be below 1")(x, (x < 1).all()))


def _of_vector(expression: Any) -> Any:
    import pytensor.tensor as pt

    x = pt.vector("x")
    return _function([x], expression(x, pt)), [np.array([0.5, 1.0, 2.0])]


def _function(*given: Any, **also: Any) -> Any:
    import pytensor

    return pytensor.function(*given, mode="NUMBA", **also)


def called(function: Any, arguments: list[Any]) -> Any:
    try:
        found = function(*arguments)
    except Exception as error:
        return [type(error).__name__, str(error).partition("\n")[0]]
    several = found if isinstance(found, list) else [found]
    return [str(each.dtype) + " " + str(np.asarray(each, float).tolist()) for each in several]


def swap(functions: list[Any]) -> None:
    """Store the code of each function but the last under the key of the one before it."""
    from cachegraph.cache import default_cache

    for (first, _), (second, _) in pairwise(functions):
        wanted, other = first.vm.jit_fn, second.vm.jit_fn
        [arguments] = wanted.overloads
        key = wanted._key(arguments)
        compiled = other._compile_by_pytensor(arguments)
        assert default_cache().store(key, wanted._entries.artifact(key, compiled, 1.0, "swapped"))


def main(way: str, *names: str) -> None:
    said: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("cachegraph").addHandler(handler)
    import cachegraph.pytensor

    cachegraph.pytensor.install()
    if way == "poison-exp":
        from pytensor.scalar.basic import Exp

        Exp.nfunc_spec = ("sin", 1, 1)
    functions = [globals()[name]() for name in names]
    results = [[called(function, arguments) for _ in range(2)] for function, arguments in functions]
    tallies = [function.vm.jit_fn.tally for function, _ in functions]
    if way == "swap":
        swap(functions)
    misses = dict(cachegraph.counters().misses)
    print(json.dumps({"results": results, "code": tallies, "misses": misses, "said": said}))


def in_fresh_process(way: str, *names: str, **environment: str) -> Any:
    done = subprocess.run(
        [sys.executable, __file__, way, *names],
        env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
