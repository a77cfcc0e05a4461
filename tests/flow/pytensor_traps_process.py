"""A process that compiles PyTensor functions, through the adapter or not, and prints what became of each.

    python tests/flow/pytensor_traps_process.py [--plain] CASE[:VARIANT]...

A case is a function of this module that returns the inputs, the outputs, values for the inputs, and more
arguments of `pytensor.function`; its variant says which of the graphs that look alike. Prints a line of
JSON: for each what was found, the results, bit for bit and as numbers, and how many files it left in the
temporary directory.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.ops import wrap_py
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.tensor.optimize import minimize

Case = tuple[list[Any], Any, list[Any], dict[str, Any]]
NOT_SYMMETRIC = np.array([[4.0, 1.0], [0.5, 3.0]])


def solve(variant: str) -> Case:
    """Solve equations whose matrix is tagged positive definite, or not: a hit must not mix the two up."""
    a, b = pt.dmatrix("a"), pt.dvector("b")
    if variant != "plain":
        setattr(a.tag, variant, True)
    return [a, b], pt.linalg.solve(a, b, b_ndim=1), [NOT_SYMMETRIC, np.array([1.0, 2.0])], {}


def zeros(variant: str) -> Case:
    """Divide by zero, by minus zero, or by both in either order."""
    x = pt.dvector("x")
    by = {"plus": [0.0], "minus": [-0.0], "both": [0.0, -0.0], "turned": [-0.0, 0.0]}[variant]
    return [x], [x / pt.constant(zero) for zero in by], [np.array([1.0, -1.0])], {}


def nans(variant: str) -> Case:
    """A NaN with a payload."""
    x = pt.dscalar("x")
    payload = np.array([0x7FF8000000000000 + int(variant)]).view(np.float64)[0]
    return [x], pt.switch(x > 0, pt.constant(payload), x), [np.array(1.0)], {}


class Factor(Op):
    """An Op whose factor PyTensor's equality does not see."""

    __props__ = ()

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def make_node(self, x: Any) -> Apply:
        return Apply(self, [x], [x.type()])

    def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
        outputs[0][0] = inputs[0] * self.factor


def taken_for_equal(second: str) -> Case:
    """Two Ops that PyTensor takes for equal, and that compute different things."""
    x, y = pt.dvectors("x", "y")
    values = np.array([1.0, -1.0])
    return [x, y], [Factor(2.0)(x), Factor(float(second))(y)], [values, values], {}


def inner(_: str) -> Case:
    """Equal inner graphs in Ops and in a loop, whose own hash and pickle differ between processes."""
    x, w = pt.dscalar("x"), pt.dscalar("w")
    op = OpFromGraph([x, w], [pt.tanh(w * x) + x])
    states = pytensor.scan(op, outputs_info=[op(x, w)], non_sequences=[w], n_steps=3, return_updates=False)
    return [x, w], op(states[-1], w), [np.array(0.5), np.array(0.3)], {}


def deep(variant: str) -> Case:
    """A chain that is deeper than Python's recursion limit lets it be pickled, before rewriting and after."""
    x = out = pt.dmatrix("x")
    for _ in range(400):
        out = out.T
    mode = pytensor.compile.mode.Mode(linker="numba", optimizer=None)
    return [x], out + float(variant), [np.arange(6.0).reshape(2, 3)], {"mode": mode}


def dispatched(variant: str) -> Case:
    """An Op of a user, implemented for numba in a file that is edited between two processes."""
    sys.path.insert(0, os.environ["USER_CODE"])
    from scaling import Scale

    x = pt.dvector("x")
    return [x], Scale()(x), [np.ones(2)], {}


def local(variant: str) -> Case:
    """An Op class made within a function: there are many of the same name."""
    factor = float(variant)

    class Times(Op):
        def make_node(self, x: Any) -> Any:
            return Apply(self, [x], [x.type()])

        def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
            outputs[0][0] = inputs[0] * factor

    x = pt.dvector("x")
    return [x], Times()(x) + 1.0, [np.ones(2)], {}


def wrapped(variant: str) -> Case:
    """A function of Python as an Op."""
    factor = float(variant)

    @wrap_py(itypes=[pt.dvector], otypes=[pt.dvector])
    def times(x: Any) -> Any:
        return x * factor

    x = pt.dvector("x")
    return [x], times(x) + 1.0, [np.ones(2)], {}


def fallback(variant: str) -> Case:
    """A search for a minimum, which numba can only call Python for."""
    x, a = pt.dscalar("x"), pt.dscalar("a")
    cost = (x - a) ** 2 * float(variant) + a
    found, _ = minimize(cost, x, method="BFGS")
    return [x, a], [found, pytensor.grad(found, a)], [np.array(0.0), np.array(3.0)], {}


def large(variant: str) -> Case:
    """A constant of more bytes than numba caches."""
    x = pt.dscalar("x")
    data = pt.constant(np.linspace(0.0, float(variant), 200_000))
    return [x], pt.exp(-((data - x) ** 2)).sum(), [np.array(0.5)], {}


def regression(_: str) -> Case:
    """A PyMC model, whose variables carry local functions in their tags."""
    import pymc as pm

    with pm.Model() as model:
        slope = pm.Normal("slope", 0.0, 1.0, shape=2)
        noise = pm.HalfNormal("noise", 1.0)
        data = pm.Data("data", [0.1, 0.4, 0.7])
        pm.Normal("observed", np.arange(6.0).reshape(3, 2) @ slope, noise, observed=data)
    point = model.initial_point()
    inputs = model.value_vars
    return inputs, [model.logp(), model.dlogp()], [point[each.name] for each in inputs], {}


def density(variant: str) -> Case:
    """A density through given points: an Op of PyMC's around a spline of SciPy's."""
    import pymc as pm

    points = np.linspace(-3.0, 3.0, 7)
    interpolated = pm.Interpolated.dist(points, np.exp(-(points**2) * float(variant)))
    x = pt.dvector("x")
    logp = pm.logp(interpolated, x).sum()
    return [x], [logp, pytensor.grad(logp, x)], [np.array([0.3, -1.2])], {}


COMPILED = (solve, zeros, nans, inner, deep, dispatched, local, wrapped, large, regression)
RUN_IN_PYTHON = (fallback, taken_for_equal, density)
CASES = {case.__name__: case for case in (*COMPILED, *RUN_IN_PYTHON)}


def main() -> None:
    """Print a line per case."""
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", nargs="+")
    parser.add_argument("--plain", action="store_true")
    arguments = parser.parse_args()
    if not arguments.plain:
        import cachegraph.pytensor

        cachegraph.pytensor.install()
    print(json.dumps({case: report(case, arguments.plain) for case in arguments.cases}))


def report(case: str, plain: bool) -> dict[str, Any]:
    """Return the outcome of one case."""
    name, _, variant = case.partition(":")
    inputs, outputs, values, options = CASES[name](variant)
    before = left_behind()
    f = pytensor.function(inputs, outputs, **({"mode": "NUMBA"} | options))
    results = f(*values)
    results = [np.asarray(result) for result in (results if isinstance(results, list) else [results])]
    row: dict[str, Any] = {
        "bits": [result.tobytes().hex() for result in results],
        "values": [result.tolist() for result in results],
        "files": left_behind() - before,
    }
    if not plain:
        from cachegraph.pytensor import explain

        info = explain(f)
        row |= {"outcome": info.outcome, "reason": info.reason, "key": info.key}
    return row


def left_behind() -> int:
    """Return the number of files in the temporary directory."""
    return sum(path.is_file() for path in Path(os.environ["TMPDIR"]).rglob("*"))


if __name__ == "__main__":
    main()
