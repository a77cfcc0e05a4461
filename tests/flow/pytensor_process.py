"""What one process makes with PyTensor while the adapter is installed, for the tests of several processes.

python pytensor_process.py CASE...        prints a report of each case as JSON
"""

from __future__ import annotations

import json
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]

Calls = list[Callable[[], Any]]


def reports(*arguments: str, **environment: str) -> dict[str, Any]:
    """Return the report of a fresh process with these arguments; PyTensor's compile directory is in the
    cache's."""
    directory = environment.get("CACHEGRAPH_DIR", os.environ["CACHEGRAPH_DIR"])
    variables = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PYTENSOR_FLAGS": f"base_compiledir={directory}-pytensor",
        **environment,
    }
    command = [sys.executable, __file__, *arguments]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]
    report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    report["stderr"] = done.stderr
    return report


def elementwise() -> tuple[Any, Calls]:
    """Updates, two random generators, givens, a borrowed output and an input that is overwritten."""
    import numpy as np
    import pytensor
    import pytensor.tensor as pt

    x, y = pt.vector("x"), pt.vector("y")
    count = pytensor.shared(np.float64(2.0), name="count")
    rng = pt.random.shared_rng(seed=3)
    next_rng, draw = rng.normal(size=3)
    f = pytensor.function(
        [x, pytensor.In(y, mutable=True)],
        [pt.exp(x) * count + y, pytensor.Out(x.sum() * 2, borrow=True), draw, x],
        updates={count: count + x.sum(), rng: next_rng},
        givens={},
        name="elementwise",
    )
    values = np.array([1.0, 2.0, 0.5])

    def reseeded() -> Any:
        rng.set_value(np.random.default_rng(17))
        return f(values, values.copy())

    return f, [
        lambda: f(values, values.copy()),
        lambda: f(values, y=values.copy()),
        reseeded,
        lambda: [count.get_value(), rng.get_value().bit_generator.state["state"]["state"]],
    ]


def loop() -> tuple[Any, Calls]:
    """A Scan with its gradient."""
    import numpy as np
    import pytensor
    import pytensor.tensor as pt

    x = pt.vector("x")
    first = pt.as_tensor(np.float64(0.5))
    out = pytensor.scan(lambda a, b: a * b + 1, sequences=[x], outputs_info=[first], return_updates=False)
    f = pytensor.function([x], [out, pytensor.grad(out[-1], x)], name="loop")
    return f, [lambda: f(np.array([1.0, 2.0, 3.0])), lambda: f(np.array([0.25]))]


def layers() -> tuple[Any, Calls]:
    """OpFromGraph, one within another, with a gradient that its user wrote as a closure."""
    import numpy as np
    import pytensor
    import pytensor.tensor as pt
    from pytensor.compile.builders import OpFromGraph

    a, b = pt.vectors("a", "b")
    inner = OpFromGraph([a, b], [pt.exp(a) * b.sum()])
    factor = 3.0
    outer = OpFromGraph([a, b], [inner(a, b) + b], pullback=lambda i, o, g: [g[0] * factor, g[0] * i[0]])
    x = pt.vector("x")
    z = outer(x, outer(x, x))
    f = pytensor.function([x], [z, pytensor.grad(z.sum(), x)], name="layers")
    return f, [lambda: f(np.array([1.0, 2.0, 3.0]))]


def matrices() -> tuple[Any, Calls]:
    """Linear algebra that a tag decides, and constants of other layouts than C."""
    import numpy as np
    import pytensor
    import pytensor.tensor as pt

    a = pt.matrix("a")
    a.tag.psd = True
    fortran = pt.constant(np.asfortranarray(np.arange(50.0).reshape(5, 10)))
    strided = pt.constant(np.arange(40.0).reshape(4, 10)[:, ::2])
    solved = pt.linalg.solve(a @ a.T + pt.eye(5), fortran, assume_a="pos")
    f = pytensor.function([a], [solved, strided @ solved, pt.constant(3.0)], name="matrices")
    return f, [lambda: f(np.arange(25.0).reshape(5, 5))]


CASES = {case.__name__: case for case in (elementwise, loop, layers, matrices)}


def as_text(value: Any) -> Any:
    """Return `value` as text that shows its every bit."""
    import numpy as np

    if isinstance(value, list | tuple):
        return [as_text(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return [str(value.dtype), list(value.shape), value.tobytes().hex()]
    return str(value)


def report(case: str) -> dict[str, Any]:
    """Return the outcome for the function of `case`, the runs of a mode's rewrites, and its results."""
    from pytensor.compile.mode import _ActiveModeGraphRewriter

    import cachegraph.pytensor

    rewritten = []
    apply = _ActiveModeGraphRewriter.apply

    def counted(self: Any, fgraph: Any, *arguments: Any, **options: Any) -> Any:
        rewritten.append(fgraph)
        return apply(self, fgraph, *arguments, **options)

    _ActiveModeGraphRewriter.apply = counted
    try:
        function, calls = CASES[case]()
        results = [as_text(call()) for call in calls]
        rewrites = len(rewritten)
    finally:
        _ActiveModeGraphRewriter.apply = apply
    info = cachegraph.pytensor.explain(function)
    return {"info": vars(info), "rewrites": rewrites, "results": results, "graph": _printed(function)}


def _printed(function: Any) -> str:
    import pytensor

    # PyTensor 3.3.0 shows some Ops with the address of a function.
    return re.sub(r"at 0x\w+", "", str(pytensor.dprint(function, file="str", print_type=True)))


def pickled(file: str) -> dict[str, Any]:
    """Write a function that has been called to `file`; return the result of its next call here."""
    import cachegraph.pytensor

    cachegraph.pytensor.install()
    function, calls = elementwise()
    calls[0]()
    Path(file).write_bytes(pickle.dumps(function))
    return {"result": as_text(calls[0]())}


def unpickled(file: str) -> dict[str, Any]:
    """Return the result of the function in `file`, without the adapter, and its costs."""
    import numpy as np

    function = pickle.loads(Path(file).read_bytes())
    values = np.array([1.0, 2.0, 0.5])
    result = as_text(function(values, values.copy()))
    import cachegraph.pytensor

    numba_types = "pytensor.link.numba.dispatch" in sys.modules
    info = cachegraph.pytensor.explain(function)
    return {"result": result, "info": vars(info), "linked": numba_types, "graph": _printed(function)}


def main(arguments: list[str]) -> None:
    """Print the reports that the arguments ask for."""
    if arguments[0] in ("pickle", "unpickle"):
        print(json.dumps({"pickle": pickled, "unpickle": unpickled}[arguments[0]](arguments[1])))
        return
    import cachegraph
    import cachegraph.pytensor

    cachegraph.pytensor.install()
    found = {case: report(case) for case in arguments}
    counters = cachegraph.counters()
    print(json.dumps({**found, "bypasses": dict(counters.bypasses), "misses": dict(counters.misses)}))


if __name__ == "__main__":
    main(sys.argv[1:])
