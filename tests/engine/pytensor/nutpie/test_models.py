"""Models that nutpie samples on the engine: what its threads get, and what goes nutpie's own way."""

from __future__ import annotations

import gc
import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import nutpie
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.raise_op import Assert
from scipy.special import gammaln
from scipy.stats import norm

import cachegraph.pytensor
import engine.pytensor
import engine.pytensor.nutpie
from engine.compiling.c_entry import DENSITY, CEntry, EntryRefused
from engine.pytensor.nutpie.entries import entry_of
from tests.cachegraph.pytensor.entry_points import declared
from tests.engine.pytensor.nutpie.calling import DENSITY_FUNCTION, assert_same, call, points

pytestmark = pytest.mark.usefixtures("kernels_once")
ROOT = Path(__file__).parents[4]


@pytest.fixture(autouse=True)
def on_engine() -> Iterator[None]:
    engine.pytensor.register()
    engine.pytensor.nutpie.patch()
    with pytensor.config.change_flags(mode="ENGINE"):
        yield
    engine.pytensor.nutpie.unpatch()


def eight_schools() -> pm.Model:
    effects, errors = np.array([28.0, 8, -3, 7, -1, 1, 18, 12]), np.array([15.0, 10, 16, 11, 9, 11, 10, 18])
    with pm.Model(coords={"school": list("abcdefgh")}) as model:
        mean, spread = pm.Normal("mean", 0, 5), pm.HalfCauchy("spread", 5)
        raw = pm.Normal("raw", dims="school")
        effect = pm.Deterministic("effect", mean + spread * raw, dims="school")
        pm.Normal("y", effect, errors, observed=effects)
    return model


def with_data() -> pm.Model:
    rng = np.random.default_rng(1)
    with pm.Model() as model:
        covariates, seen = (
            pm.Data("covariates", rng.normal(size=(30, 2))),
            pm.Data("seen", rng.normal(size=30)),
        )
        slope = pm.Normal("slope", shape=2)
        pm.Normal("y", (covariates * slope).sum(axis=1), pm.Exponential("noise", 1), observed=seen)
        pm.Deterministic("first", slope[0] * covariates[0, 0])
    return model


def walk() -> pm.Model:
    with pm.Model() as model:
        path = pm.GaussianRandomWalk("path", sigma=0.5, steps=9, init_dist=pm.Normal.dist())
        weights = pm.Dirichlet("weights", np.ones(3))
        pm.Poisson("y", pm.math.exp(path), observed=np.arange(10) % 3)
        pm.Deterministic("total", weights * pt.cumsum(path)[-1])
    return model


def one_variable() -> pm.Model:
    with pm.Model() as model:
        pm.Normal("x", shape=3)
    return model


def nothing_in_one() -> pm.Model:
    with pm.Model() as model:
        pm.Normal("empty", shape=0)
        pm.Normal("x", pm.Normal("mean"), shape=2)
    return model


MODELS: tuple[Callable[[], pm.Model], ...] = (eight_schools, with_data, walk, one_variable, nothing_in_one)


def compiled_by_numba(model: pm.Model, **options: Any) -> Any:
    with pytensor.config.change_flags(mode="NUMBA"):
        compiled = nutpie.compile_pymc_model(model, **options)
    assert not isinstance(compiled.compiled_logp_func, CEntry)
    return compiled


def compiled_on_engine(model: pm.Model, **options: Any) -> Any:
    compiled = nutpie.compile_pymc_model(model, **options)
    assert isinstance(compiled.compiled_logp_func, CEntry)
    assert isinstance(compiled.compiled_expand_func, CEntry)
    return compiled


@pytest.mark.slow
@pytest.mark.parametrize("make", [eight_schools, walk])
def test_both_functions_give_what_numbas_give(make: Callable[[], pm.Model]) -> None:
    model = make()
    ours, numbas = compiled_on_engine(model), compiled_by_numba(model)
    assert (ours.n_dim, ours.n_expanded, ours.shapes, ours.dims) == (
        numbas.n_dim,
        numbas.n_expanded,
        numbas.shapes,
        numbas.dims,
    )
    for scale in (0.0, 0.1, 1.0, 5.0, 30.0, 1e3, 1e200):
        for point in points(ours.n_dim, 15, scale):
            assert_same(call(ours, point), call(numbas, point))
    odd = points(ours.n_dim, 1, 1.0)[0]
    odd[0] = np.nan
    assert_same(call(ours, odd), call(numbas, odd))


@pytest.mark.slow
def test_chains_begin_with_the_draws_of_numbas() -> None:
    model = eight_schools()
    options = {"draws": 5, "tune": 5, "chains": 3, "cores": 2, "seed": 1, "progress_bar": False}
    ours, numbas = compiled_on_engine(model), compiled_by_numba(model)
    found, expected = (nutpie.sample(one, save_warmup=True, **options) for one in (ours, numbas))
    for name in ("mean", "spread", "effect"):
        first = [trace.warmup_posterior[name].values[:, :3] for trace in (found, expected)]
        np.testing.assert_allclose(*first, rtol=1e-9, atol=1e-9)
    assert found.posterior["effect"].dims == expected.posterior["effect"].dims
    assert list(found.posterior["school"].values) == list("abcdefgh")


@pytest.fixture
def with_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Large constants are data of functions that the adapter makes."""
    monkeypatch.syspath_prepend(declared(tmp_path / "points"))
    cachegraph.pytensor.install(backend="engine")
    yield
    cachegraph.pytensor.uninstall()


def counts(seen: np.ndarray) -> pm.Model:
    """A regression of counts, whose covariate can be changed."""
    with pm.Model() as model:
        slope, covariate = pm.Normal("slope"), pm.Data("covariate", np.linspace(-1, 1, len(seen)))
        pm.Poisson("y", pm.math.exp(slope * covariate), observed=pt.constant(seen, name="seen"))
    return model


def test_constants_are_where_c_finds_them_and_only_shared_variables_can_be_changed(with_cache: None) -> None:
    for seen in (np.arange(40), np.arange(40)[::-1].copy()):
        compiled = compiled_on_engine(counts(seen))
        assert compiled.logp_func.vm.jit_fn.data
        assert [variable.name for variable in compiled.shared_var_keys] == ["covariate"]
        with pytest.raises(KeyError):
            compiled.with_data(seen=seen)
        for slope in (1.0, 2.0):
            covariate = slope * np.linspace(-1, 1, 40)
            found = call(compiled.with_data(covariate=covariate), np.array([0.3]))
            mean = np.exp(0.3 * covariate)
            density = np.sum(seen * np.log(mean) - mean - gammaln(seen + 1)) + norm.logpdf(0.3)
            np.testing.assert_allclose(found.density, density)
            np.testing.assert_allclose(found.gradient, [np.sum((seen - mean) * covariate) - 0.3])


def test_c_gets_what_is_computed_of_data_alone(with_cache: None) -> None:
    seen = np.arange(1.0, 41.0)
    for data in (seen, seen[::-1].copy()):
        point = pt.dvector("point")
        parts = point[0] * pt.gammaln(pt.constant(data)) * np.arange(40.0)
        f = pytensor.function([point], [pt.sum(parts), pt.grad(pt.sum(parts), point)])
        assert f.vm.jit_fn.kept
        entry = entry_of(f, DENSITY, 1, 1, {})
        user, found = np.array([entry.context, 0], dtype=np.uint64), np.zeros(2)
        for value in (1.0, 3.0):
            given = np.array([value])
            arrays = [array.ctypes.data for array in (given, found[1:], found)]
            assert DENSITY_FUNCTION(entry.address)(1, *arrays, user.ctypes.data) == 0
            total = np.sum(gammaln(data) * np.arange(40.0))
            np.testing.assert_allclose(found, [value * total, total])


def test_a_check_of_data_that_fails_goes_nutpies_way(with_cache: None) -> None:
    point, data = pt.dvector("point"), pt.constant(np.arange(40.0))
    checked = Assert("must be large")(data, pt.all(data > 1))
    f = pytensor.function([point], [pt.sum(point[0] * pt.gammaln(checked)), point])
    with pytest.raises(EntryRefused, match=r"(?s)of its data alone fails.*must be large"):
        entry_of(f, DENSITY, 1, 1, {})


@pytest.mark.slow
def test_new_data_give_numbas_numbers_for_them() -> None:
    model = with_data()
    ours, numbas = compiled_on_engine(model), compiled_by_numba(model)
    point = points(ours.n_dim, 1, 1.0)[0]
    before = call(ours, point)
    assert_same(before, call(numbas, point))
    for rows in (30, 4, 300):
        new = {"covariates": np.linspace(-1, 1, 2 * rows).reshape(rows, 2), "seen": np.arange(float(rows))}
        found = call(ours.with_data(**new), point)
        assert found.density != before.density
        assert_same(found, call(numbas.with_data(**new), point))
    assert call(ours, point).density == before.density


def test_data_whose_lengths_disagree_give_a_code() -> None:
    compiled = compiled_on_engine(with_data())
    odd = compiled.with_data(seen=np.zeros(29))
    assert call(odd, np.zeros(compiled.n_dim)).status == 1


@pytest.mark.parametrize("make", MODELS)
def test_both_functions_give_what_pytensor_gives(make: Callable[[], pm.Model]) -> None:
    model = make()
    compiled = compiled_on_engine(model)
    variables = model.value_vars
    outputs = [model.logp(), model.dlogp(), *model.unobserved_value_vars]
    with pytensor.config.change_flags(cxx=""):
        expected = pytensor.function(variables, outputs, mode="FAST_COMPILE")
    for point in points(compiled.n_dim, 5, 1.0):
        found = call(compiled, point)
        pieces = np.split(point, np.cumsum([np.prod(compiled.shapes[v.name], dtype=int) for v in variables]))
        values = [piece.reshape(compiled.shapes[v.name]) for v, piece in zip(variables, pieces, strict=False)]
        density, gradient, *others = expected(*values)
        np.testing.assert_allclose(found.density, density, rtol=1e-9)
        np.testing.assert_allclose(found.gradient, gradient, rtol=1e-9, atol=1e-12)
        flat = {v.name: value for v, value in zip(model.unobserved_value_vars, others, strict=True)}
        names, slices, _ = compiled.shape_info
        for name, part in zip(names, slices, strict=True):
            np.testing.assert_allclose(found.values[part], flat[name].ravel(), rtol=1e-9)


def test_threads_at_once_get_the_bits_that_one_gets() -> None:
    compiled = compiled_on_engine(walk())
    given = points(compiled.n_dim, 16, 1.0)
    alone = [call(compiled, point) for point in given]
    with ThreadPoolExecutor(16) as threads:
        for _ in range(20):
            for one, found in zip(
                alone, threads.map(lambda point: call(compiled, point), given), strict=True
            ):
                assert found.density == one.density
                np.testing.assert_array_equal(found.gradient, one.gradient)
                np.testing.assert_array_equal(found.values, one.values)


def test_a_seed_gives_the_same_draws_for_any_number_of_threads() -> None:
    compiled = compiled_on_engine(eight_schools())
    options = {"draws": 30, "tune": 30, "chains": 4, "seed": 1, "progress_bar": False}
    traces = [nutpie.sample(compiled, cores=cores, **options) for cores in (1, 4)]
    np.testing.assert_array_equal(*[trace.posterior["effect"].values for trace in traces])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint32", "int64", "bool", "float32"])
def test_data_of_any_dtype_are_read_as_what_they_are(dtype: str) -> None:
    weights = pytensor.shared(np.array([0, 1, 1, 0, 1], dtype=dtype), name="weights", shape=(None,))
    with pm.Model() as model:
        places = pm.Data("places", np.array([2, 0, 1, 1, 2]))
        x = pm.Normal("x", shape=3)
        pm.Potential("fit", -(weights * (x[places] - 1.0) ** 2).sum())
    compiled = compiled_on_engine(model)
    (point,) = points(3, 1, 1.0)
    np.testing.assert_allclose(call(compiled, point).density, compiled.logp_func(point)[0], rtol=1e-14)
    new = {"weights": [1, 0, 0], "places": [1, 1, 0]}
    normal = -(point**2).sum() / 2 - 1.5 * np.log(2 * np.pi)
    found = call(compiled.with_data(**new), point)
    np.testing.assert_allclose(found.density, normal - (point[1] - 1.0) ** 2, rtol=1e-6)


def test_a_sampler_keeps_what_it_calls() -> None:
    options = {"draws": 300, "tune": 300, "chains": 4, "cores": 2, "seed": 1, "progress_bar": False}
    compiled = compiled_on_engine(with_data())
    expected = nutpie.sample(compiled, **options)
    sampler = nutpie.sample(compiled, **options, blocking=False)
    del compiled
    gc.collect()
    found = sampler.wait()
    np.testing.assert_array_equal(found.posterior["slope"].values, expected.posterior["slope"].values)


def test_an_explanation_shows_both_functions() -> None:
    lines = engine.pytensor.explain(compiled_on_engine(eight_schools())).splitlines()
    assert [line.partition(" nodes")[0].rstrip("0123456789") for line in lines] == [
        "density: the engine computes ",
        "all variables: the engine computes ",
    ]


def test_floats_of_32_bits_go_nutpies_way(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    compiler = nutpie.compile_pymc._compile_pymc_model_numba
    monkeypatch.setattr(compiler, "_own", lambda *args, **options: "compiled by numba")
    with pytensor.config.change_flags(floatX="float32"), caplog.at_level(logging.INFO, "engine"):
        assert nutpie.compile_pymc_model(one_variable()) == "compiled by numba"
    assert "float32" in caplog.text


def test_chosen_variables_and_frozen_data() -> None:
    model = with_data()
    frozen = compiled_on_engine(model, freeze_model=True, var_names=["first"])
    assert not frozen.shared_data
    point = points(frozen.n_dim, 1, 1.0)[0]
    found, other = call(frozen, point), call(compiled_on_engine(model), point)
    np.testing.assert_allclose(found.density, other.density, rtol=1e-12)
    assert frozen.n_expanded == frozen.n_dim + 1


def test_pymc_takes_nutpie_and_low_rank_adaptation_works() -> None:
    with eight_schools():
        options = {"draws": 20, "tune": 60, "chains": 2, "cores": 2, "random_seed": 1, "progressbar": False}
        trace = pm.sample(**options, nuts={"low_rank_modified_mass_matrix": True})
    assert trace.posterior.attrs["inference_library"] == "nutpie"
    assert trace.posterior["effect"].shape == (2, 20, 8)


def of_python(*, in_density: bool) -> pm.Model:
    """A model with an Op that the engine lacks."""
    with pm.Model() as model:
        shift = pm.Data("shift", np.array([1.0, 2.0, 3.0]))
        x = pm.Normal("x", shift, shape=3)
        values = pm.Deterministic("values", pt.linalg.svd(pt.outer(x, x + shift))[1])
        if in_density:
            pm.Potential("fit", values.sum())
    return model


@pytest.mark.slow
def test_a_density_that_needs_python_is_compiled_by_numba_with_the_reason(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = nutpie.compile_pymc._compile_pymc_model_numba
    monkeypatch.setattr(compiler, "_own", lambda *args, **options: "compiled by numba")
    with caplog.at_level(logging.INFO, "engine"):
        assert nutpie.compile_pymc_model(of_python(in_density=True)) == "compiled by numba"
    assert "SVD" in caplog.text


@pytest.mark.slow
def test_values_that_need_python_are_numbas_and_the_density_is_the_engines(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO, "engine"):
        compiled = nutpie.compile_pymc_model(of_python(in_density=False))
    assert isinstance(compiled.compiled_logp_func, CEntry)
    assert not isinstance(compiled.compiled_expand_func, CEntry)
    assert "SVD" in caplog.text
    assert "all variables: PyTensor computes it" in engine.pytensor.explain(compiled)
    for given, shift in (
        (compiled, [1.0, 2.0, 3.0]),
        (compiled.with_data(shift=[4.0, 0.0, 1.0]), [4.0, 0.0, 1.0]),
    ):
        for point in points(3, 5, 1.0):
            found = call(given, point)
            assert (found.status, found.expansion_status) == (0, 0)
            np.testing.assert_allclose(found.gradient, shift - point, rtol=1e-12, atol=1e-12)
            values = np.linalg.svd(np.outer(point, point + shift), compute_uv=False)
            np.testing.assert_allclose(found.values, [*point, *values], rtol=1e-9, atol=1e-9)
    options = {"draws": 30, "tune": 30, "chains": 3, "cores": 2, "seed": 1, "progress_bar": False}
    trace = nutpie.sample(compiled, **options).posterior
    last = trace["x"].values[-1, -1]
    values = np.linalg.svd(np.outer(last, last + [1.0, 2.0, 3.0]), compute_uv=False)
    np.testing.assert_allclose(trace["values"].values[-1, -1], values, rtol=1e-9, atol=1e-9)


def refuse(*args: Any) -> Any:
    """What a function of the engine does that does not compute what PyTensor computes."""
    raise ValueError("no increment broadcasts here")


def test_what_the_engine_refuses_and_pytensor_computes_goes_nutpies_way(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    compiler = nutpie.compile_pymc._compile_pymc_model_numba
    monkeypatch.setattr(compiler, "_own", lambda *args, **options: "compiled by numba")
    made = engine.function

    def refusing(*args: Any, **options: Any) -> Any:
        function = made(*args, **options)
        function.__call__ = refuse
        return function

    monkeypatch.setattr(engine, "function", refusing)
    with caplog.at_level(logging.INFO, "engine"):
        assert nutpie.compile_pymc_model(with_data()) == "compiled by numba"
    assert "what the engine refuses (no increment broadcasts here)" in caplog.text


def test_discrete_variables_are_refused_as_nutpie_does() -> None:
    with pm.Model() as model:
        pm.Poisson("count", 3)
    errors = []
    for mode in ("ENGINE", "NUMBA"):
        with pytensor.config.change_flags(mode=mode), pytest.raises(Exception) as refused:
            nutpie.compile_pymc_model(model)
        errors.append((type(refused.value), str(refused.value)))
    assert errors[0] == errors[1]


@pytest.mark.slow
def test_a_second_process_samples_from_the_store_and_numba_compiles_nothing(
    cache_directory: Path, tmp_path: Path
) -> None:
    answers = []
    paths = f"{ROOT}{os.pathsep}{declared(tmp_path)}"
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-m", "tests.engine.pytensor.nutpie.sampling_process"],
            cwd=ROOT,
            env={**os.environ, "CACHEGRAPH_DIR": str(cache_directory), "PYTHONPATH": paths},
            capture_output=True,
            text=True,
            check=True,
            timeout=600,
        )
        answers.append(json.loads(done.stdout.splitlines()[-1]))
    first, second = answers
    assert [answer["sampler"] for answer in answers] == ["nutpie", "nutpie"]
    assert [answer["compiled"] for answer in answers] == [[], []]
    assert set(second["outcomes"]) == {"hit"}
    assert first["first"] == second["first"]
