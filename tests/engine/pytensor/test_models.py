"""PyMC models of many kinds: density, gradient and draws by the engine beside those of other modes."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import pytensor
import pytest

import engine.pytensor
from tests.engine.pytensor.comparing_models import (
    PYTHON,
    density,
    difference,
    draws,
    error_of,
    left_of,
    points,
)
from tests.engine.pytensor.exact import compute
from tests.engine.pytensor.models import MODELS
from tests.engine.pytensor.models.packages import OF_PACKAGES

LEFT: dict[str, set[str]] = {}
"""The Ops of a density and its gradient that PyTensor computes, by model. In all others there is none."""

NO_DRAWS = {
    "robust_regression": "a flat variable has no draws",
    "neighbours": "an ICAR variable has no draws",
}
LOST_BY_THE_FORMULA = {
    "hidden_states": "a sum, 3e108, is divided by the square of the noise, 5e-209, before it is multiplied by "
    "the noise: it overflows. numba's code, which may regroup divisions, does not form that quotient",
    "grid_process": "the derivative of eigenvectors divides by differences of eigenvalues, of which three are "
    "1.0 to the last bit: covariances of 3e-78 are left of a kernel",
    "latent_process": "the derivative of distances between points, divided by a length of 8e-52, is a sum that "
    "cancels: what is left are its rounding errors, which are larger than the prior's part",
}
"""Models with points at which numba's code alone has the digits of a gradient, and why the formula that PyTensor's
rewrites make loses them. There its own performs, which compute that formula one Op after the other, have no
more digits than the engine."""

LOST = [
    ("hidden_states", 100.0, 15, 9, 4.3199041705954524e212),
    ("grid_process", 10.0, 1, 1, 0.9999777548703005),
    ("latent_process", 100.0, 5, 1, 1.2731551825245059e51),
]
"""A point of each: model, scale, number of the point, place in the gradient, and the exact number."""

SMALL = ("regression", "ordinal", "garch", "correlated", "shares")
FULL = os.environ.get("CACHEGRAPH_STRESS") == "full"
"""numba compiles for 5 to 30 seconds a model, PyMC draws for 2 to 5; performs and exact numbers take 3 to 10."""
IN_PYTHON = list(MODELS) if FULL else list(MODELS)[::2]
IN_NUMBA = list(MODELS) if FULL else ["garch"]


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    engine.pytensor.register()
    # PyMC makes initial points by functions that would be compiled by the C compiler.
    with pytensor.config.change_flags(cxx=""):
        yield


@pytest.mark.parametrize("name", SMALL)
def test_a_small_model_has_the_density_and_gradient_of_pytensors_own_performs(name: str) -> None:
    model = MODELS[name]()
    found, expected = density(model, "ENGINE"), density(model, PYTHON)
    assert left_of(found) == LEFT.get(name, set())
    for point in (*points(model, 0.0, 1), *points(model, 0.5, 4), *points(model, 10.0, 2)):
        assert difference(model, found, expected, point) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "mode"),
    [(name, "python") for name in IN_PYTHON] + [(name, "numba") for name in IN_NUMBA],
)
def test_density_and_gradient_are_those_of_the_mode_or_as_exact(name: str, mode: str) -> None:
    model = MODELS[name]()
    found = density(model, "ENGINE")
    expected = density(model, "NUMBA" if mode == "numba" else PYTHON)
    assert left_of(found) == LEFT.get(name, set())
    for scale, count in ((0.0, 1), (0.5, 8), (10.0, 8), (100.0, 16)):
        for point in points(model, scale, count):
            wrong = difference(model, found, expected, point)
            if wrong and mode == "numba" and name in LOST_BY_THE_FORMULA:
                wrong = difference(model, found, density(model, PYTHON), point)
            assert wrong is None


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_PACKAGES)
def test_a_model_that_a_package_builds_has_pytensors_density_gradient_and_draws(name: str) -> None:
    package, make = OF_PACKAGES[name]
    pytest.importorskip(package)
    model = make()
    found, expected = density(model, "ENGINE"), density(model, PYTHON)
    assert left_of(found) == LEFT.get(name, set())
    for point in (*points(model, 0.0, 1), *points(model, 0.5, 4), *points(model, 3.0, 2)):
        assert difference(model, found, expected, point) is None
    drawn, left = draws(make(), "ENGINE")
    assert all(op.endswith("RV") for op in left), left
    for variable, due in draws(make(), PYTHON)[0].items():
        np.testing.assert_allclose(drawn[variable], due, 1e-7, 1e-12, err_msg=variable)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "scale", "number", "place", "due"), LOST)
def test_where_numba_alone_is_right_the_formula_has_lost_the_digits(
    name: str, scale: float, number: int, place: int, due: float
) -> None:
    model = MODELS[name]()
    point = points(model, scale, 16)[number]
    [truth] = compute(dict(zip(model.value_vars, point, strict=True)), [model.dlogp()])
    assert float(truth[place]) == due
    with np.errstate(all="ignore"):
        performed, found = density(model, PYTHON)(*point)[1], density(model, "ENGINE")(*point)[1]
    assert error_of(performed[place], truth[place]) >= 1
    others = np.delete(np.arange(len(truth)), place)
    assert error_of(found[others], truth[others]) < 1e-9


@pytest.mark.parametrize("name", ["change_point", "eight_schools"])
def test_draws_are_those_of_pytensors_own_performs_bit_for_bit(name: str) -> None:
    found, left = draws(MODELS[name](), "ENGINE")
    expected, _ = draws(MODELS[name](), PYTHON)
    assert all(op.endswith("RV") for op in left)
    for variable in expected:
        assert found[variable].tobytes() == expected[variable].tobytes(), variable


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in MODELS if name not in NO_DRAWS][:: 1 if FULL else 3])
def test_draws_are_those_of_pytensors_own_performs_but_for_rounding(name: str) -> None:
    found, left = draws(MODELS[name](), "ENGINE")
    expected, _ = draws(MODELS[name](), PYTHON)
    assert all(op.endswith("RV") for op in left), left
    for variable in expected:
        np.testing.assert_allclose(found[variable], expected[variable], 1e-7, 1e-12, err_msg=variable)
