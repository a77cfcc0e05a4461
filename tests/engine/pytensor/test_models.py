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
    left_of,
    points,
)
from tests.engine.pytensor.models import MODELS

LEFT: dict[str, set[str]] = {
    "grid_process": {"Eigh"},
    "matrices": {"ArgSortOp"},
    "odd_densities": {"I0e", "I1e"},
}
"""The Ops of a density and its gradient that PyTensor computes, by model. In all others there is none."""

NO_DRAWS = {
    "robust_regression": "a flat variable has no draws",
    "neighbours": "an ICAR variable has no draws",
}
SMALL = ("regression", "ordinal", "garch", "correlated", "shares")
FULL = os.environ.get("CACHEGRAPH_STRESS") == "full"
"""numba compiles for 5 to 30 seconds a model, PyMC draws for 2 to 5; performs and exact numbers take 3 to 10."""
IN_PYTHON = list(MODELS) if FULL else list(MODELS)[::2]
IN_NUMBA = list(MODELS) if FULL else ["regression", "garch"]


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
            assert difference(model, found, expected, point) is None


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
