"""The numbers that every framework computes the models on: name of a model -> its arguments, and the
data within it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path += [str(Path(__file__).resolve().parents[3] / "examples" / part) for part in ("grunfeld", "nile")]
from panel import Panel, read_panel
from river import read_flow

Vector = np.ndarray
FIRMS = 11
WIDTH = 16
"""Of a layer."""
STEPS = 50
"""Of the recurrent network, and of the scan that applies layers."""


def panel() -> Panel:
    """Return the data of the regression."""
    return read_panel()


def flow() -> Vector:
    """Return the data of the Kalman filter."""
    return read_flow()


def regression() -> list[Vector]:
    """Return the population's intercept and slopes, the logarithms of spreads and noise, and effects of
    each firm.
    """
    scalars = list(np.linspace(-0.4, 0.0, 7))
    return [*map(np.asarray, scalars), *np.linspace(-0.5, 0.5, 3 * FIRMS).reshape(3, FIRMS)]


def kalman() -> list[Vector]:
    """Return the logarithms of both variances."""
    return [np.array([8.0, 6.0])]


def recurrent() -> list[Vector]:
    """Return the inputs of each step, then the weights of inputs, state and bias."""
    random = np.random.default_rng(1)
    shapes = ((STEPS, 8), (8, WIDTH), (WIDTH, WIDTH), (WIDTH,))
    return [random.normal(size=shape) / np.sqrt(WIDTH) for shape in shapes]


def layers() -> list[Vector]:
    """Return what goes into the first layer, and the weights of all."""
    random = np.random.default_rng(2)
    return [random.normal(size=WIDTH), random.normal(size=(WIDTH, WIDTH)) / np.sqrt(WIDTH)]


def minimum() -> list[Vector]:
    """Return where the search starts, and the two parameters of the function that is minimised."""
    return [np.full(4, 0.5), np.array(1.0), np.array(5.0)]


ARGUMENTS = {
    "regression": regression,
    "kalman": kalman,
    "recurrent": recurrent,
    "layers-50": layers,
    "layers-100": layers,
    "layers-in-scan": layers,
    "minimize": minimum,
}
