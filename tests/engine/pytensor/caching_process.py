"""A process that makes functions on the engine, and prints how and what they compute, as JSON.

python -m tests.engine.pytensor.caching_process [first observation [number of observations [dtype]]]

With --forbidden, PyTensor must rewrite nothing, nothing must be translated, and numba must not be imported.
With --killed=N the process is killed when it is about to store its Nth entry.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from itertools import count
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.raise_op import Assert

import cachegraph.pytensor
import engine.pytensor
from cachegraph.hit_modules import KeptLoader


def observed(first: float, count: int = 100, dtype: str = "float64") -> np.ndarray:
    return (np.arange(count) + first).astype(dtype)


def density(data: np.ndarray) -> Any:
    """A function of a parameter, whose data are a constant. A part of it needs the data alone."""
    mu, seen = pt.dscalar("mu"), pt.constant(data)
    alone = pt.sum(pt.cast(seen, "float64") ** 2)
    return pytensor.function([mu], [-0.5 * pt.sum((seen - mu) ** 2) + alone, pt.exp(-(mu**2))])


def mixed() -> Any:
    """A function with an update, draws, a node of PyTensor's, a scalar and constants among its results."""
    x, total = pt.dvector("x"), pytensor.shared(np.array(1.0), "total")
    rng = pytensor.shared(np.random.default_rng(3), "rng")
    following, draw = pt.random.normal(0.0, 1.0, size=(3,), rng=rng, return_next_rng=True)
    outputs = [pt.erfcx(x) * 2, draw + x.sum(), total, x, pt.constant(np.arange(2.0)), x.shape[0]]
    return pytensor.function([x], outputs, updates={total: total + x.sum(), rng: following})


def checked() -> Any:
    """A function that raises where a condition does not hold."""
    x = pt.dvector("x")
    return pytensor.function([x], Assert("must be small")(x * 2, pt.all(x < 5)))


def refuse(*arguments: Any, **options: Any) -> Any:
    """Fail: the process was told to do without."""
    raise AssertionError("a hit rewrites and translates nothing")


def forbid() -> None:
    """Have PyTensor's rewriting and the translation fail."""
    from pytensor.compile.maker import FunctionMaker

    import engine.pytensor.prologue

    FunctionMaker.prepare_fgraph = refuse
    engine.pytensor.prologue.cut = refuse


def die_at(number: int) -> None:
    """Have this process killed when it stores the entry of that number, the first of which is 1."""
    from cachegraph.store.local.store import LocalStore

    put, numbers = LocalStore.put, count(1)

    def counted(self: LocalStore, *arguments: Any) -> None:
        if next(numbers) == number:
            os.kill(os.getpid(), signal.SIGKILL)
        put(self, *arguments)

    LocalStore.put = counted  # type: ignore[method-assign]


def error_of(function: Any, *arguments: Any) -> list[str]:
    """The class and the first line of the error that a call raises."""
    try:
        function(*arguments)
    except Exception as error:
        return [type(error).__name__, str(error).splitlines()[0]]
    return []


def main() -> None:
    arguments = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    data = observed(float(arguments[0]) if arguments else 0.0, *map(int, arguments[1:2]), *arguments[2:])
    cachegraph.pytensor.install(backend="engine")
    if "--forbidden" in sys.argv:
        forbid()
    for argument in sys.argv:
        if argument.startswith("--killed="):
            die_at(int(argument.removeprefix("--killed=")))
    functions = density(data), mixed(), checked()
    found = {
        "outcomes": [cachegraph.pytensor.explain(f).outcome for f in functions],
        "hits": cachegraph.counters().levels["function"]["hits"],
        "rewrites": sum(cachegraph.pytensor.explain(f).rewrites for f in functions),
        "computed": [engine.pytensor.explain(f).splitlines() for f in functions],
        "density": [float(v) for v in functions[0](0.5)],
        "mixed": [[np.asarray(v).tolist() for v in functions[1](np.array([0.25, 0.5]))] for _ in range(2)],
        "checked": functions[2](np.ones(2)).tolist(),
        "numba": "numba" in sys.modules,
        "kept": [
            name for name in sys.modules if type(vars(sys.modules[name]).get("__loader__")) is KeptLoader
        ],
    }
    if "--forbidden" not in sys.argv:
        found["error"] = error_of(functions[2], np.full(2, 7.0))
        found["nodes"] = [len(f.maker.fgraph.apply_nodes) for f in functions]
    print(json.dumps(found))


if __name__ == "__main__":
    if "--wait" in sys.argv:
        sys.stdin.readline()
    main()
