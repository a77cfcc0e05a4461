"""SciPy's splines are what they were made of and what they compute from."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import interpolate

from cachegraph.errors import Unfingerprintable
from cachegraph.fingerprint import encode, fingerprint

ROOT = Path(__file__).resolve().parents[3]
X = np.linspace(-3.0, 3.0, 20)
Y = np.exp(-(X**2))

MADE: dict[str, Callable[[Any], Any]] = {
    "interpolating": lambda y: interpolate.InterpolatedUnivariateSpline(X, y, k=1),
    "interpolating, zero outside": lambda y: interpolate.InterpolatedUnivariateSpline(X, y, k=1, ext="zeros"),
    "interpolating, cubic": lambda y: interpolate.InterpolatedUnivariateSpline(X, y, k=3),
    "smoothing": lambda y: interpolate.UnivariateSpline(X, y, s=0.01),
    "smoothing less": lambda y: interpolate.UnivariateSpline(X, y, s=0.005),
    "of least squares": lambda y: interpolate.LSQUnivariateSpline(X, y, [0.0]),
    "derivative": lambda y: interpolate.InterpolatedUnivariateSpline(X, y).derivative(),
    "basis": lambda y: interpolate.make_interp_spline(X, y),
    "basis, inside only": lambda y: interpolate.BSpline(*interpolate.make_interp_spline(X, y).tck, False),
    "cubic": lambda y: interpolate.CubicSpline(X, y),
    "natural": lambda y: interpolate.CubicSpline(X, y, bc_type="natural"),
    "monotone": lambda y: interpolate.PchipInterpolator(X, y),
    "akima": lambda y: interpolate.Akima1DInterpolator(X, y),
    "polynomials": lambda y: interpolate.PPoly(np.stack([y[:-1], y[1:]]), X),
}

PROGRAM = """
import numpy as np
scattered = [np.random.default_rng(number).normal(size=number) for number in range(200)]
del scattered
from cachegraph.fingerprint import fingerprint
from tests.cachegraph.fingerprint.test_splines import MADE, Y
print([fingerprint(made(Y)).hex() for made in MADE.values()])
"""


def test_splines_are_told_apart_by_kind_data_and_how_they_go_on_outside() -> None:
    encodings = [encode(made(data)) for made in MADE.values() for data in (Y, Y + 0.1)]
    assert len(set(encodings)) == len(encodings)
    assert [encode(made(data)) for made in MADE.values() for data in (Y, Y + 0.1)] == encodings


def test_splines_are_the_same_in_another_process() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str([fingerprint(made(Y)).hex() for made in MADE.values()])


def test_a_spline_with_something_else_in_it_is_refused() -> None:
    for made in MADE.values():
        spline = made(Y)
        spline.scale = 2.0
        with pytest.raises(Unfingerprintable, match="'scale'"):
            encode(spline)


def test_a_class_derived_from_a_spline_is_none() -> None:
    class Spline(interpolate.CubicSpline):
        pass

    with pytest.raises(Unfingerprintable):
        encode(Spline(X, Y))
