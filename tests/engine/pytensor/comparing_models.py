"""PyMC models by the engine and by another mode: densities, gradients and draws, and which is right."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import numpy as np
import pymc as pm
from pymc.sampling import forward
from pytensor.compile.mode import Mode
from pytensor.graph.rewriting.db import RewriteDatabaseQuery
from pytensor.tensor.random.basic import BernoulliRV, CauchyRV, GumbelRV

from engine.pytensor.nodes import NodeStage
from tests.engine.pytensor.exact import compute, exact

PYTHON = Mode(
    "py", RewriteDatabaseQuery(include=["fast_run"], exclude=["cxx_only", "BlasOpt", "fusion", "inplace"])
)
"""PyTensor's rewritten graphs, each Op by its own `perform`: there is nothing to compile."""


def density(model: pm.Model, mode: Any) -> Any:
    """The function of the log density and of its gradient."""
    outputs = [model.logp(), model.dlogp()]
    return model.compile_fn(outputs, inputs=model.value_vars, mode=mode, point_fn=False)


def points(model: pm.Model, scale: float, count: int) -> list[list[np.ndarray]]:
    """Points around the initial one: whole numbers stay, the others are moved by `scale`."""
    rng, initial = np.random.default_rng(0), model.initial_point()
    found = []
    for _ in range(count):
        values = [initial[variable.name] for variable in model.value_vars]
        found.append([v + scale * rng.normal(size=v.shape) if v.dtype.kind == "f" else v for v in values])
    return found


def left_of(function: Any) -> set[str]:
    """The names of the Ops that PyTensor computes in a function."""
    stages = getattr(function, "f", function).vm.jit_fn.stages
    ops = [node.op for stage in stages if isinstance(stage, NodeStage) for node in stage.nodes]
    cores = [getattr(op, "core_op", op) for op in ops]
    return {type(getattr(op, "scalar_op", op)).__name__ for op in cores}


def difference(model: pm.Model, found: Any, expected: Any, point: list[np.ndarray]) -> str | None:
    """What is wrong with the engine's numbers at `point`, or None.

    They are equal to nine digits, or to twelve of the largest of the gradient. Where they are not, the
    other's are as far from the exact numbers, or have no digit of them.
    """
    with np.errstate(all="ignore"):
        results = list(zip(found(*point), expected(*point), strict=True))
    if all(is_near(one, other) for one, other in results):
        return None
    try:
        truth = compute(dict(zip(model.value_vars, point, strict=True)), [model.logp(), model.dlogp()])
    except (KeyError, NotImplementedError) as error:
        return f"{results}, and no exact numbers: {error!r}"
    for (one, other), due in zip(results, truth, strict=True):
        mine, theirs = error_of(one, due), error_of(other, due)
        is_lost = mine == np.inf > theirs
        if is_lost or (mine > max(1e-9, 16 * theirs) and theirs < 0.1):
            return f"{one} is not {other}: errors {mine:.1e} and {theirs:.1e}"
    return None


def is_near(one: Any, other: Any) -> bool:
    """True if all finite numbers of `other` are in `one`, and the rest is not finite in either."""
    finite = np.isfinite(other)
    largest = np.max(np.abs(other), initial=0.0, where=finite)
    with np.errstate(all="ignore"):
        near = np.abs(one - other) <= 1e-9 * np.abs(other) + 1e-12 * largest + 1e-300
    return bool(np.all(near | ~finite))


def error_of(result: Any, due: Any) -> float:
    """The largest error, as a part of the exact number; infinite where that is finite and `result` is not."""
    errors = [0.0]
    for one, number in zip(np.ravel(result), np.ravel(due), strict=True):
        if np.isfinite(float(number)):
            scale = max(abs(number), exact(1e-12)[()])
            errors.append(float(abs(exact(one)[()] - number) / scale) if np.isfinite(one) else np.inf)
    return max(errors)


DEFINITIONS = {
    BernoulliRV: lambda rng, p, size: np.where(p < rng.uniform(size=size or np.shape(p)), 0, 1),
    CauchyRV: lambda rng, loc, scale, size: loc + scale * rng.standard_cauchy(size or np.shape(loc + scale)),
    GumbelRV: lambda rng, loc, scale, size: rng.gumbel(loc, scale, size),
}
"""What PyTensor's numba mode draws where its performs draw something else (test_draws.py compares them)."""


@contextmanager
def performs_as_numba() -> Iterator[None]:
    """PyTensor's performs draw by DEFINITIONS within."""
    with ExitStack() as stack:
        for cls, draw in DEFINITIONS.items():
            stack.enter_context(mock.patch.object(cls, "rng_fn_scipy", staticmethod(draw)))
        yield


def draws(model: pm.Model, mode: Any) -> tuple[dict[str, np.ndarray], set[str]]:
    """Prior and posterior predictive draws by name, and the Ops that PyTensor computes if it is the engine.

    The posterior is made of the prior's draws.
    """
    functions = []

    def compiled(*args: Any, **kwargs: Any) -> Any:
        functions.append(compile_function(*args, **kwargs))
        return functions[-1]

    compile_function = forward.compile
    with model, mock.patch.object(forward, "compile", compiled), performs_as_numba(), quiet():
        prior = pm.sample_prior_predictive(3, random_seed=7, compile_kwargs={"mode": mode})
        found = {name: prior.prior[name].values for name in prior.prior.data_vars}
        if model.observed_RVs:
            after = pm.sample_posterior_predictive(
                prior.prior.dataset, random_seed=8, progressbar=False, compile_kwargs={"mode": mode}
            ).posterior_predictive
            found |= {f"after {name}": after[name].values for name in after.data_vars}
    left = set().union(*[left_of(function) for function in functions]) if mode == "ENGINE" else set()
    return found, left


def quiet() -> Any:
    """A context in which PyMC does not say what it samples."""
    return mock.patch.object(logging.getLogger("pymc"), "disabled", True)
