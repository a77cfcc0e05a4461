"""Functions of each kind that PyTensor and PyMC make: name -> a function that returns inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.compile.builders import OpFromGraph

try:
    from pytensor.conditional.op import ifelse
except ImportError:  # before PyTensor 3.3.5
    from pytensor.ifelse import ifelse


def matrices() -> tuple[list[Any], list[Any]]:
    a, b = pt.matrix("a"), pt.tensor3("b")
    return [a, b], [pt.linalg.solve(a, a), pt.linalg.cholesky(b), pt.linalg.svd(a)[0], pt.linalg.det(a)]


def indices() -> tuple[list[Any], list[Any]]:
    x, n = pt.vector("x"), pt.lvector("n")
    return [x, n], [
        x[1:3],
        x[n],
        x[n].inc(1)[::2],
        pt.sort(x),
        pt.concatenate([x, x]),
        pt.all(x > 0),
        pt.special.softmax(x),
    ]


def loop() -> tuple[list[Any], list[Any]]:
    x, a = pt.vector("x"), pt.matrix("a")
    states = pytensor.scan(
        lambda item, before: pt.tanh(a @ before) + item,
        sequences=[x],
        outputs_info=[pt.zeros(3)],
        return_updates=False,
    )
    return [x, a], [states, pytensor.grad(states.sum(), a)]


def inner() -> tuple[list[Any], list[Any]]:
    x = pt.vector("x")
    op = OpFromGraph([x], [pt.exp(x) + 1])
    return [x], [op(op(x)), ifelse(x.sum() > 0, x, x + 1)]


def draws() -> tuple[list[Any], list[Any]]:
    rng = pt.random.shared_rng(seed=1)
    following, first = rng.normal(size=3)
    _, second = following.multivariate_normal(pt.zeros(2), pt.eye(2))
    return [], [first, second]


def sparse() -> tuple[list[Any], list[Any]]:
    import pytensor.sparse as ps

    s, a = ps.csr_matrix("s"), pt.matrix("a")
    return [s, a], [ps.dot(s, a)]


def regression() -> tuple[list[Any], list[Any]]:
    import pymc as pm

    generator = np.random.default_rng(0)
    with pm.Model() as model:
        mean, spread = pm.Normal("mean"), pm.HalfNormal("spread")
        effect = pm.Normal("effect", mean, spread, shape=8)
        groups = generator.integers(0, 8, 50)
        pm.Normal("y", effect[groups], pm.Exponential("noise", 1), observed=generator.normal(size=50))
        pm.Mixture("m", w=[0.3, 0.7], comp_dists=[pm.Normal.dist(0, 1), pm.Normal.dist(3, 1)])
        pm.LKJCholeskyCov("c", n=3, eta=2, sd_dist=pm.Exponential.dist(1))
    logp = model.logp()
    return model.value_vars, [logp, *pytensor.grad(logp, model.continuous_value_vars)]


MODELS: dict[str, Callable[[], tuple[list[Any], list[Any]]]] = {
    function.__name__: function for function in (matrices, indices, loop, inner, draws, sparse, regression)
}
