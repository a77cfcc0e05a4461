"""Log densities, rewritten graphs and gradients come from the cache, and are what PyMC and PyTensor make."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pymc as pm
import pymc.model.core
import pytensor
import pytensor.tensor as pt
import pytest
from pymc.logprob.abstract import _logprob
from pymc.logprob.transforms import Transform
from pymc.pytensorf import rewrite_pregrad
from pymc.sampling import mcmc
from pytensor.compile.builders import OpFromGraph
from pytensor.graph.basic import Apply, equal_computations
from pytensor.graph.op import Op

import cachegraph.pytensor
from tests.cachegraph.pytensor.making.deriving import (
    Made,
    installed_anew,
    looked_up,
    small,
    without_cache,
)
from tests.cachegraph.pytensor.making.deriving_process import bits_of
from tests.engine.pytensor.models import MODELS

SHORT = ("regression", "correlated", "hidden_states")
"""Models with nothing unusual, with tags of triangular matrices, and with gradients of graphs within Ops."""


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with installed_anew(tmp_path / "points", monkeypatch):
        yield


def terms(model: Any) -> list[Any]:
    """The terms of a log density, the density rewritten (PyTensor changes the nodes), and its gradient."""
    cost = rewrite_pregrad(model.logp())
    return [
        *model.logp(sum=False),
        cost,
        *pytensor.grad(cost, model.continuous_value_vars, disconnected_inputs="ignore"),
    ]


@pytest.mark.parametrize(
    "name", [*SHORT, *(pytest.param(name, marks=pytest.mark.slow) for name in MODELS if name not in SHORT)]
)
def test_what_is_found_is_the_graph_that_pymc_makes(name: str) -> None:
    """Where PyTensor rewrites one graph in two ways, what is found is one of them."""
    model = MODELS[name]()
    due, again = (without_cache(lambda: terms(model)) for _ in range(2))
    made = terms(model)
    found, hits, misses = looked_up(lambda: terms(model))
    assert hits >= misses
    assert [(v.type, v.name) for v in found] == [(v.type, v.name) for v in made]
    assert [v.type for v in found] == [v.type for v in due]
    is_one = [equal_computations([one], [other]) for one, other in zip(due, again, strict=True)]
    assert is_one[0]
    for graphs in zip(is_one, due, made, found, strict=True):
        if graphs[0]:
            assert equal_computations([graphs[2]], [graphs[1]])
            assert equal_computations([graphs[3]], [graphs[1]])
    if all(is_one):
        assert bits_of(model) == without_cache(lambda: bits_of(model))


def test_names_are_those_of_the_model_in_hand() -> None:
    def named(first: str) -> Any:
        with pm.Model() as model:
            pm.Normal("y", pm.Normal(first), observed=[1.0])
        return model.logp(sum=False)

    assert [v.name for v in named("a")] == ["a_logprob", "y_logprob"]
    found, hits, _ = looked_up(lambda: named("b"))
    assert hits == 1
    assert [v.name for v in found] == ["b_logprob", "y_logprob"]


def test_terms_are_found_by_which_are_asked_for_and_with_or_without_jacobians() -> None:
    model = small()
    mu, scale = model.free_RVs
    for asked in ({}, {"vars": [mu]}, {"vars": [scale]}, {"vars": [scale, mu]}, {"jacobian": False}):
        found, hits, _ = looked_up(lambda asked=asked: model.logp(sum=False, **asked))
        assert hits == 0
        due = without_cache(lambda asked=asked: model.logp(sum=False, **asked))
        assert equal_computations(found, due)


class Doubled(Transform):
    name = "doubled"

    def forward(self, value: Any, *inputs: Any) -> Any:
        return value * 2

    def backward(self, value: Any, *inputs: Any) -> Any:
        return value / 2

    def log_jac_det(self, value: Any, *inputs: Any) -> Any:
        return -np.log(2.0) * pt.ones_like(value)


def transformed() -> Any:
    with pm.Model() as model:
        pm.Normal("mu", default_transform=Doubled())
    return model


def custom() -> Any:
    with pm.Model() as model:
        pm.CustomDist("mu", 0.5, logp=lambda value, mu: -((value - mu) ** 2))
    return model


@pytest.mark.parametrize("made", [transformed, custom])
def test_densities_with_code_of_users_are_derived_each_time(made: Made) -> None:
    model = made()
    for _ in range(2):
        found, hits, misses = looked_up(lambda: model.logp(sum=False))
        assert (hits, misses) == (0, 0)
    assert equal_computations(found, without_cache(lambda: model.logp(sum=False)))


def test_densities_of_pymc_that_others_replace_are_derived_each_time() -> None:
    model, op_class = small(), type(pm.Normal.dist().owner.op)
    model.logp()
    own = _logprob.registry[op_class]
    _logprob.register(op_class, lambda op, values, *inputs, **kwargs: values[0] * 3)
    try:
        found, hits, misses = looked_up(lambda: model.logp(vars=[model["mu"]], sum=False))
        assert (hits, misses) == (0, 0)
        assert pytensor.function([model.value_vars[0]], found[0])(2.0) == 6.0
    finally:
        _logprob.register(op_class, own)
    assert looked_up(model.logp)[1] == 1


def test_graphs_with_tags_of_users_are_derived_each_time() -> None:
    x = pt.dscalar("x")
    for _ in range(2):
        tagged = pt.exp(x)
        tagged.tag.mine = 1
        found, hits, misses = looked_up(lambda tagged=tagged: rewrite_pregrad(tagged * 2))
        assert (hits, misses) == (0, 0)
        assert pytensor.function([x], found)(0.0) == 2.0


def test_gradients_that_were_given_are_not_lost() -> None:
    x = pt.dscalar("x")
    odd = OpFromGraph([x], [pt.exp(x)], pullback=lambda inputs, outputs, gradients: [gradients[0] * 7])
    for _ in range(2):
        cost, hits, _ = looked_up(lambda: rewrite_pregrad(odd(x) * 2))
        assert hits == 0
        (slope,) = pytensor.grad(cost, [x])
        assert pytensor.function([x], slope)(1.0) == 14.0


def test_two_graphs_within_ops_have_each_its_own_gradient() -> None:
    x, y = pt.dscalar("x"), pt.dvector("y")
    scalar, vector = OpFromGraph([x], [pt.exp(x)]), OpFromGraph([y], [pt.sqr(y)])
    for _ in range(2):
        cost = rewrite_pregrad(scalar(x) + vector(y).sum())
        function = pytensor.function([x, y], pytensor.grad(cost, [x, y]))
        slopes = function(1.0, [1.0, 2.0])
        np.testing.assert_allclose(slopes[0], np.exp(1.0))
        np.testing.assert_allclose(slopes[1], [2.0, 4.0])


def test_other_gradients_and_rewritings_are_left_alone() -> None:
    x = pt.dvector("x")
    cost = pt.sum(pt.exp(x))
    _, hits, misses = looked_up(lambda: [pytensor.grad(cost, x), pytensor.grad(cost, [x])])
    assert (hits, misses) == (0, 0)
    with pytest.raises(pytensor.gradient.DisconnectedInputError):
        pytensor.grad(rewrite_pregrad(cost), [pt.dscalar("other")])


def test_a_sampler_asks_for_one_gradient_by_all_variables() -> None:
    model = small()
    cost = model.logp()
    found, _, misses = looked_up(lambda: [mcmc.tg.grad(cost, v) for v in model.value_vars])
    assert misses == 1
    due = [pytensor.gradient.grad(cost, v) for v in model.value_vars]
    assert equal_computations(found, due)
    again = model.logp()
    found, hits, _ = looked_up(lambda: [mcmc.tg.grad(again, v) for v in model.value_vars])
    assert hits == 1
    assert equal_computations(found, [pytensor.gradient.grad(again, v) for v in model.value_vars])


class Rounded(Op):
    """An Op of a user's that has no gradient."""

    def make_node(self, x: Any) -> Apply:
        return Apply(self, [x], [x.type()])

    def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
        outputs[0][0] = np.round(inputs[0])


def test_a_variable_without_a_gradient_is_the_only_one_without() -> None:
    with pm.Model() as model:
        free, rounded, whole = pm.Normal("free"), pm.Normal("rounded"), pm.Poisson("whole", 2.0)
        pm.Potential("p", free * Rounded()(rounded) * whole)
    cost = model.logp()
    names = [v.name for v in model.value_vars if v.dtype == "float64" and has_gradient(cost, v)]
    assert names == ["free"]
    chosen = methods_of(model)
    assert chosen == {"free": "NUTS", "rounded": "Slice", "whole": "Metropolis"}
    assert chosen == without_cache(lambda: methods_of(model))


def has_gradient(cost: Any, variable: Any) -> bool:
    try:
        mcmc.tg.grad(cost, variable)
    except (NotImplementedError, mcmc.tg.NullTypeGradError):
        return False
    return True


def methods_of(model: Any) -> dict[str, str]:
    _, selected = mcmc.assign_step_methods(model)
    return {v.name: method.__name__ for method, variables in selected.items() for v in variables}


def test_other_calls_of_the_samplers_gradients_are_pytensors_own() -> None:
    x, y = pt.dscalar("x"), pt.dscalar("y")
    with pytest.raises(pytensor.gradient.DisconnectedInputError):
        mcmc.tg.grad(pt.exp(x), y)
    [found] = mcmc.tg.grad(pt.exp(x), [x])
    assert equal_computations([found], [pytensor.gradient.grad(pt.exp(x), x)])
    assert mcmc.tg.jacobian is pytensor.gradient.jacobian


def test_uninstalling_restores_what_was_there() -> None:
    hooked = pymc.model.core.transformed_conditional_logp, pm.pytensorf.rewrite_graph, pytensor.grad
    cachegraph.pytensor.uninstall()
    restored = pymc.model.core.transformed_conditional_logp, pm.pytensorf.rewrite_graph, pytensor.grad
    assert all(hook.__wrapped__ is own for hook, own in zip(hooked, restored, strict=True))
    assert pytensor.grad is pytensor.gradient.grad
    assert mcmc.tg is pytensor.gradient
