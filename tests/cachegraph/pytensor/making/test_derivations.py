"""Log densities, rewritten graphs and gradients come from the cache, and are what PyMC and PyTensor make."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pymc as pm
import pymc.model.core
import pytensor
import pytensor.tensor as pt
import pytest
from pymc.logprob.abstract import _logprob
from pymc.logprob.transforms import PowerTransform, Transform
from pymc.pytensorf import rewrite_pregrad
from pymc.sampling import mcmc
from pytensor.compile.builders import OpFromGraph
from pytensor.graph.basic import Apply, equal_computations
from pytensor.graph.op import Op

import cachegraph.pytensor
from cachegraph.pytensor.describe import derived
from cachegraph.pytensor.making import derivations, derived_lookup
from cachegraph.pytensor.stored import derived_graph
from cachegraph.pytensor.stored.externals import Context
from tests.cachegraph.pytensor.entry_points import declared
from tests.cachegraph.pytensor.making.deriving_process import bits_of, counts
from tests.engine.pytensor.models import MODELS

ROOT = Path(__file__).resolve().parents[4]
SHORT = ("regression", "correlated", "hidden_states")
"""Models with nothing unusual, with tags of triangular matrices, and with gradients of graphs within Ops."""

Made = Callable[[], Any]

HAS_ENGINE = tuple(map(int, pytensor.__version__.split(".")[:3])) >= (3, 3, 7)


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(declared(tmp_path / "points"))
    derived_lookup._stored.clear()
    # Older ones are not for the engine; numba would compile for minutes.
    with pytensor.config.change_flags(cxx="", **({} if HAS_ENGINE else {"linker": "py"})):
        cachegraph.pytensor.install(backend="engine" if HAS_ENGINE else None)
        yield
        cachegraph.pytensor.uninstall()


def looked_up(step: Made) -> tuple[Any, int, int]:
    """What `step` returns, and how many derived graphs it found and made."""
    before = counts()["op"]
    result = step()
    hits, misses = (now - then for now, then in zip(counts()["op"], before, strict=True))
    return result, hits, misses


def terms(model: Any) -> list[Any]:
    """The terms of a log density, the density rewritten (PyTensor changes the nodes), and its gradient."""
    cost = rewrite_pregrad(model.logp())
    return [
        *model.logp(sum=False),
        cost,
        *pytensor.grad(cost, model.continuous_value_vars, disconnected_inputs="ignore"),
    ]


def without_cache(step: Made) -> Any:
    derivations.unpatch()
    try:
        return step()
    finally:
        derivations.patch()


def small(observed: Any = (0.5, 1.0), sigma: float = 1.0, upper: float = 2.0) -> Any:
    with pm.Model() as model:
        mu, scale = pm.Normal("mu", 0.0, sigma), pm.Uniform("scale", 0.0, upper)
        pm.Normal("y", mu, scale, observed=np.asarray(observed))
    return model


def in_fresh_process(name: str) -> Any:
    script = Path(__file__).parent / "deriving_process.py"
    command = [sys.executable, "-W", "ignore", str(script), name]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTENSOR_FLAGS": "cxx="}
    return json.loads(subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE).stdout)


@pytest.mark.skipif(not HAS_ENGINE, reason="the engine needs PyTensor 3.3.7")
def test_a_second_process_finds_all_of_them_and_the_function_that_is_made_of_them() -> None:
    first, second = in_fresh_process("eight_schools"), in_fresh_process("eight_schools")
    assert first["counts"]["op"] == [0, 3]
    assert second["counts"]["op"] == [3, 0]
    assert second["counts"]["function"][1] == 0
    assert second["bits"] == first["bits"]


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


@pytest.mark.parametrize(
    "other",
    [
        lambda: small(observed=(0.5, 1.5)),
        lambda: small(observed=(0.5, 1.0, 1.0)),
        lambda: small(sigma=2.0),
        lambda: small(upper=3.0),
    ],
    ids=["data", "shape", "prior", "transform"],
)
def test_another_model_is_a_miss_and_has_its_own_numbers(other: Made) -> None:
    bits_of(small())
    found, hits, misses = looked_up(lambda: bits_of(other()))
    assert (hits, misses) == (0, 3)
    assert found == without_cache(lambda: bits_of(other()))


def test_terms_are_found_by_which_are_asked_for_and_with_or_without_jacobians() -> None:
    model = small()
    mu, scale = model.free_RVs
    for asked in ({}, {"vars": [mu]}, {"vars": [scale]}, {"vars": [scale, mu]}, {"jacobian": False}):
        found, hits, _ = looked_up(lambda asked=asked: model.logp(sum=False, **asked))
        assert hits == 0
        due = without_cache(lambda asked=asked: model.logp(sum=False, **asked))
        assert equal_computations(found, due)


def test_data_that_is_overwritten_between_two_calls_counts_as_it_is_then() -> None:
    seen = np.array([0.5, 1.0])
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu"), observed=pt.constant(seen))
    bits_of(model)
    seen[0] = 7.0
    found, hits, _ = looked_up(lambda: bits_of(model))
    assert hits == 0
    assert found == without_cache(lambda: bits_of(model))


def test_data_that_changes_while_a_graph_is_derived_is_not_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = np.array([0.5, 1.0])
    x = pt.dvector("x")
    own = derived_graph.pack_derived

    def pack_and_overwrite(*arguments: Any) -> bytes:
        seen[0] += 1
        return own(*arguments)

    monkeypatch.setattr(derived_graph, "pack_derived", pack_and_overwrite)
    rewrite_pregrad(pt.sum(x + pt.constant(seen)))
    seen[0] -= 1
    _, hits, misses = looked_up(lambda: rewrite_pregrad(pt.sum(x + pt.constant(seen))))
    assert (hits, misses) == (0, 1)


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


def test_what_pytensor_warns_of_is_derived_and_warned_of_each_time(caplog: pytest.LogCaptureFixture) -> None:
    """PyTensor skips a rewrite that fails, with an error in its log."""
    with pm.Model() as model:
        pm.Normal("x", transform=PowerTransform(2))
    for _ in range(2):
        caplog.clear()
        _, hits, misses = looked_up(lambda: model.logp(sum=False))
        assert (hits, misses) == (0, 1)
        assert "Rewrite failure" in caplog.text


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


def test_the_signs_of_zeros_are_kept() -> None:
    x = pt.dscalar("x")
    found = [pt.arctan2(zero, x) for zero in (0.0, -0.0)]
    hand = derived_graph.InHand((x,), (x,), Context())
    read = derived_graph.unpack_derived(derived_graph.pack_derived(found, hand), hand)
    zeros = [[v.owner.inputs[0].data for v in graph] for graph in (found, read)]
    assert np.signbit(zeros).tolist() == [[False, True], [False, True]]


def test_many_numbers_that_were_computed_from_data_are_not_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derived_graph, "MOST_BYTES", 3000)
    x, data = pt.dscalar("x"), pt.constant(np.arange(1000.0))
    for _ in range(2):
        _, hits, misses = looked_up(lambda: rewrite_pregrad(pt.sum(x * pt.gammaln(data + 1))))
        assert (hits, misses) == (0, 1)


def test_of_graphs_that_differ_in_their_data_alone_a_process_stores_some(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(derived_lookup, "MOST_ALIKE", 2)
    models = [small(observed=(0.5, float(number))) for number in range(4)]
    for expected in (0, 2):
        hits = [looked_up(lambda model=model: model.logp(sum=False))[1] for model in models]
        assert sum(hits) == expected
    assert bits_of(models[3]) == without_cache(lambda: bits_of(models[3]))


def test_graphs_with_much_data_are_derived_each_time() -> None:
    x, data = pt.dscalar("x"), pt.constant(np.zeros(derived.MOST_DATA // 8 + 1))
    _, hits, misses = looked_up(lambda: rewrite_pregrad(pt.sum(pt.exp(x * data))))
    assert (hits, misses) == (0, 0)


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


def test_a_damaged_entry_is_a_miss(monkeypatch: pytest.MonkeyPatch) -> None:
    model = small()
    due = bits_of(model)
    for damage in (
        lambda content: content[: len(content) // 2],
        lambda content: b"",
        lambda content: b"\x07" + content[1:],
        lambda content: content[:-3] + b"abc",
        lambda content: content[:40] + bytes(40) + content[80:],
    ):
        load = derived_graph.unpack_derived
        monkeypatch.setattr(
            derived_graph,
            "unpack_derived",
            lambda content, hand, damage=damage, load=load: load(damage(content), hand),
        )
        found, hits, _ = looked_up(lambda: bits_of(model))
        assert (found, hits) == (due, 0)
        monkeypatch.setattr(derived_graph, "unpack_derived", load)


def test_a_cache_that_cannot_be_used_derives_as_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*arguments: Any) -> Any:
        raise RuntimeError("no description")

    model = small()
    due = bits_of(model)
    for module, name in ((derived, "describe_derived"), (derived_lookup, "default_cache")):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, failing)
            assert bits_of(model) == due
    monkeypatch.setenv("CACHEGRAPH_MODE", "off")
    assert bits_of(model) == due


def test_uninstalling_restores_what_was_there() -> None:
    hooked = pymc.model.core.transformed_conditional_logp, pm.pytensorf.rewrite_graph, pytensor.grad
    cachegraph.pytensor.uninstall()
    restored = pymc.model.core.transformed_conditional_logp, pm.pytensorf.rewrite_graph, pytensor.grad
    assert all(hook.__wrapped__ is own for hook, own in zip(hooked, restored, strict=True))
    assert pytensor.grad is pytensor.gradient.grad
    assert mcmc.tg is pytensor.gradient
