"""Thirteen models as PyTensor and PyMC users write them, each with its gradient and a point to call it at.

Each function of MODELS returns a CompiledModel; its graph is built by then, so that what `compile(mode)`
takes is `pytensor.function` alone (or what PyMC does around it). What `compile` returns is called
with the values of `point`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.compile.builders import OpFromGraph
from pytensor.graph.traversal import ancestors

Variable = Any


@dataclass(frozen=True)
class CompiledModel:
    """A model to compile; `nodes` counts the Apply nodes before any rewrite (an inner graph is one)."""

    compile: Callable[[str], Callable[..., Any]]
    point: list[Any]
    nodes: int


def hierarchical() -> CompiledModel:
    """Return a hierarchical regression: 12 groups, two slopes, 240 observations."""
    return density_of(hierarchical_model())


def hierarchical_model() -> Any:
    """Return the model of `hierarchical`, which `sample` samples from."""
    import pymc as pm

    random = np.random.default_rng(1)
    group, predictors = np.repeat(np.arange(12), 20), random.normal(size=(240, 2))
    observed = predictors @ [0.5, -0.3] + 0.1 * group + random.normal(size=240)
    with pm.Model() as model:
        mean = pm.Normal("mean", 0.0, 2.0, shape=3)
        spread = pm.HalfNormal("spread", 1.0, shape=3)
        offset = pm.Normal("offset", 0.0, 1.0, shape=(12, 3))
        effect = pm.Deterministic("effect", mean + spread * offset)
        noise = pm.Exponential("noise", 1.0)
        predicted = (
            effect[group, 0] + effect[group, 1] * predictors[:, 0] + effect[group, 2] * predictors[:, 1]
        )
        pm.StudentT("observed", nu=5.0, mu=predicted, sigma=noise, observed=observed)
    return model


def eight_schools() -> CompiledModel:
    """Return the eight schools, centered: little is compiled, so the adapter's own work weighs most."""
    import pymc as pm

    with pm.Model() as model:
        mean, spread = pm.Normal("mean", 0.0, 5.0), pm.HalfCauchy("spread", 5.0)
        effect = pm.Normal("effect", mean, spread, shape=8)
        errors = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
        seen = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
        pm.Normal("observed", effect, errors, observed=seen)
    return density_of(model)


def many_variables() -> CompiledModel:
    """Return a model of forty-four free variables of eight distributions, and eleven observed vectors."""
    return density_of(many_variables_model())


def many_variables_model() -> Any:
    """Return the model of `many_variables`, from which `from_the_model` goes to a function."""
    import pymc as pm

    random = np.random.default_rng(2)
    with pm.Model() as model:
        for number in range(11):
            location = pm.Normal(f"location_{number}", 0.0, 1.0 + number)
            scale = (pm.HalfNormal, pm.Exponential)[number % 2](f"scale_{number}", 1.0)
            shape = (
                pm.Gamma(f"shape_{number}", 2.0, 1.0 + number)
                if number % 3
                else pm.InverseGamma(f"shape_{number}", 3.0, 1.0)
            )
            share = (
                pm.Beta(f"share_{number}", 2.0, 2.0)
                if number % 2
                else pm.Uniform(f"share_{number}", 0.0, 1.0)
            )
            mean = share * location + (1 - share) * pt.log1p(shape)
            pm.StudentT(
                f"observed_{number}",
                nu=3.0 + number,
                mu=mean,
                sigma=scale,
                observed=random.normal(size=20 + number),
            )
    return model


def from_the_model() -> CompiledModel:
    """Return the function that `pm.sample` makes of `many_variables`: PyMC derives its density, too."""
    from pymc.blocking import DictToArrayBijection

    model = many_variables_model()
    start = model.initial_point(0)
    point = DictToArrayBijection.map({v.name: start[v.name] for v in model.continuous_value_vars})
    return CompiledModel(
        lambda mode: model.logp_dlogp_function(ravel_inputs=True, mode=mode),
        [point],
        nodes_of([model.logp(), model.dlogp()]),
    )


def mixture() -> CompiledModel:
    """Return a mixture of three normal distributions, 200 observations."""
    import pymc as pm

    with pm.Model() as model:
        weights = pm.Dirichlet("weights", np.ones(3))
        means, spreads = pm.Normal("means", 0.0, 3.0, shape=3), pm.HalfNormal("spreads", shape=3)
        seen = np.random.default_rng(6).normal(size=200)
        pm.NormalMixture("observed", weights, means, spreads, observed=seen)
    return density_of(model)


def correlated() -> CompiledModel:
    """Return a normal distribution of four variables with a prior on their correlations, 50 observations."""
    import pymc as pm

    with pm.Model() as model:
        factor, _, _ = pm.LKJCholeskyCov("factor", n=4, eta=2.0, sd_dist=pm.Exponential.dist(1.0))
        seen = np.random.default_rng(7).normal(size=(50, 4))
        pm.MvNormal("observed", pm.Normal("means", shape=4), chol=factor, observed=seen)
    return density_of(model)


def process() -> CompiledModel:
    """Return a Gaussian process at 40 points, its values summed out."""
    import pymc as pm

    with pm.Model() as model:
        points = np.linspace(0.0, 1.0, 40)[:, None]
        kernel = pm.HalfNormal("scale") ** 2 * pm.gp.cov.Matern52(1, pm.Gamma("length", 2.0, 1.0))
        pm.gp.Marginal(cov_func=kernel).marginal_likelihood(
            "observed", X=points, y=np.sin(6.0 * points[:, 0]), sigma=pm.HalfNormal("noise")
        )
    return density_of(model)


def volatility() -> CompiledModel:
    """Return a stochastic volatility along 200 days."""
    import pymc as pm

    with pm.Model() as model:
        start = pm.Normal.dist(0.0, 1.0)
        path = pm.GaussianRandomWalk("path", sigma=pm.Exponential("step", 10.0), init_dist=start, shape=200)
        degrees = pm.Exponential("degrees", 0.1)
        seen = np.random.default_rng(8).normal(size=200)
        pm.StudentT("observed", degrees, lam=pm.math.exp(-2.0 * path), observed=seen)
    return density_of(model)


def density_of(model: Any) -> CompiledModel:
    """Return the log density of a PyMC model and its gradient, compiled as PyMC compiles."""
    import pymc as pm

    inputs, outputs = model.value_vars, [model.logp(), model.dlogp()]
    start = model.initial_point()
    point = [np.asarray(start[variable.name]) for variable in inputs]
    return CompiledModel(
        lambda mode: pm.pytensorf.compile(inputs, outputs, mode=mode), point, nodes_of(outputs)
    )


def kalman() -> CompiledModel:
    """Return a Kalman filter: 100 steps of a matrix and a vector in a scan, and its gradient."""
    series = np.random.default_rng(3).normal(size=100).cumsum()
    theta = pt.vector("theta", shape=(3,))
    moves, seen_as = pt.as_tensor(np.array([[1.0, 1.0], [0.0, 1.0]])), pt.as_tensor(np.array([1.0, 0.0]))
    step, noise = pt.diag(pt.exp(theta[:2])), pt.exp(theta[2])

    def filtered(seen: Variable, mean: Variable, spread: Variable, step: Variable, noise: Variable) -> Any:
        mean, spread = moves @ mean, moves @ spread @ moves.T + step
        surprise, common = seen - seen_as @ mean, spread @ seen_as
        total = seen_as @ common + noise
        density = -0.5 * (pt.log(total) + pt.sqr(surprise) / total)
        return mean + common * surprise / total, spread - pt.outer(common, common) / total, density

    _, _, densities = pytensor.scan(
        filtered,
        sequences=[pt.as_tensor(series)],
        outputs_info=[pt.zeros(2), 10.0 * pt.eye(2), None],
        non_sequences=[step, noise],
        return_updates=False,
    )
    return function_of([theta], [densities.sum()], [np.array([0.1, -1.0, 0.2])])


def layers() -> CompiledModel:
    """Return a chain of fifty equal layers, each an OpFromGraph."""
    state, weights = pt.vector("state"), pt.matrix("weights")
    layer = OpFromGraph([state, weights], [pt.tanh(pt.dot(weights, state)) + 0.5 * state])
    out = state
    for _ in range(50):
        out = layer(out, weights)
    random = np.random.default_rng(4)
    return function_of(
        [state, weights], [pt.sqr(out).sum()], [random.normal(size=16), 0.25 * random.normal(size=(16, 16))]
    )


def deep() -> CompiledModel:
    """Return a graph of about 2,000 nodes: 40 rounds of elementwise operations, products, slices and sums."""
    state, weights = pt.vector("state", shape=(8,)), pt.matrix("weights", shape=(8, 8))
    out = state
    for number in range(40):
        turned = pt.dot(weights, out) if number % 3 == 0 else pt.concatenate([out[1:], out[:1]])
        out = pt.tanh(turned * (1.0 + 0.01 * number)) + 0.5 * out - 0.1 * pt.sigmoid(out).mean()
    random = np.random.default_rng(5)
    return function_of(
        [state, weights], [pt.sqr(out).sum()], [random.normal(size=8), 0.3 * random.normal(size=(8, 8))]
    )


class FirstDraw(Exception):
    """Ends PyMC's sampler at its first draw, which is at `point`."""

    def __init__(self, point: dict[str, Any]) -> None:
        super().__init__()
        self.point = point


def sample() -> CompiledModel:
    """Return `pm.sample`, by PyMC's own sampler, of the hierarchical regression until its first draw."""

    def stop(trace: Any, draw: Any) -> None:
        raise FirstDraw(draw.point)

    def first_draw(mode: str) -> list[Any]:
        try:
            sampled("pymc", compile_kwargs={"mode": mode}, callback=stop)
        except FirstDraw as first:
            return [first.point["mean"], first.point["offset"]]
        raise AssertionError("the sampler made no draw")

    return sampler(first_draw)


def sample_by_nutpie() -> CompiledModel:
    """Return `pm.sample` by nutpie, which PyMC takes by itself where it is installed, for one draw.

    It compiles in the default mode, and calls nothing back: what PyMC makes of the draw is in its time.
    nutpie is imported first, as PyMC is: two seconds, most of them ArviZ's and SciPy's.
    """
    import nutpie  # noqa: F401

    def one_draw(_mode: str) -> list[Any]:
        found = sampled("nutpie")
        return [found.posterior["mean"].values, found.posterior["effect"].values]

    return sampler(one_draw)


def sampled(name: str, **asked: Any) -> Any:
    """Sample one draw of one chain by the sampler of that name."""
    import pymc as pm

    few = {"draws": 1, "tune": 1, "chains": 1, "cores": 1, "random_seed": 1}
    quiet = {"progressbar": False, "compute_convergence_checks": False}
    return pm.sample(nuts_sampler=name, **few, **quiet, **asked)


def sampler(draw: Callable[[str], list[Any]]) -> CompiledModel:
    """Return the hierarchical regression, from which `draw` samples in a mode."""
    model = hierarchical_model()

    def within(mode: str) -> list[Any]:
        with model:
            return draw(mode)

    return CompiledModel(lambda mode: lambda: within(mode), [], nodes_of([model.logp(), model.dlogp()]))


def function_of(inputs: list[Variable], outputs: list[Variable], point: list[Any]) -> CompiledModel:
    """Return the function of `outputs` and of the gradient of the first by all inputs."""
    outputs = [*outputs, *pytensor.grad(outputs[0], inputs)]
    return CompiledModel(lambda mode: pytensor.function(inputs, outputs, mode=mode), point, nodes_of(outputs))


def nodes_of(outputs: list[Variable]) -> int:
    """Return the number of Apply nodes that compute `outputs`."""
    return len({variable.owner for variable in ancestors(outputs) if variable.owner is not None})


MODELS: dict[str, Callable[[], CompiledModel]] = {
    "eight-schools": eight_schools,
    "hierarchical": hierarchical,
    "44-variables": many_variables,
    "kalman": kalman,
    "50-layers": layers,
    "2000-nodes": deep,
    "mixture": mixture,
    "correlated": correlated,
    "gaussian-process": process,
    "volatility": volatility,
    "pm.logp-dlogp": from_the_model,
    "pm.sample": sample,
    "pm.sample-nutpie": sample_by_nutpie,
}
