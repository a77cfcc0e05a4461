"""The budgets of the comparison, and the results that must agree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import geometric_mean
from typing import Any

import numpy as np

RATIOS = {
    "cold_cpu_ms": {"jax": 1.5, "pytensor": 0.1},
    "warm_cpu_ms": {"jax": 1 / 3},
    "call_us": {"jax": 1.0, "pytensor": 1.0},
}
"""The most that the engine may take of each framework's time, on every model."""
MEAN_RATIO = 1.0
"""The most for the geometric mean, over the models, of the engine's cold start to JAX's."""

Row = Mapping[str, Any]


def missed(models: Mapping[str, Mapping[str, Row]]) -> Iterator[str]:
    """Yield each budget that is missed, and which framework computes other numbers than this engine.

    A framework that cannot run a model is compared on the others.
    """
    for model, rows in models.items():
        yield from (f"{model}: {miss}" for miss in missed_by(model, rows))
    cold = [_ratio(rows, "cold_cpu_ms", "jax") for rows in models.values()]
    ratios = [ratio for ratio in cold if ratio is not None]
    if ratios and geometric_mean(ratios) > MEAN_RATIO:
        yield f"cold_cpu_ms: {geometric_mean(ratios):.2f} of JAX's in the mean; at most {MEAN_RATIO} is due"


def missed_by(model: str, rows: Mapping[str, Row]) -> Iterator[str]:
    """Yield what one model misses."""
    own = rows["engine"]
    if "failure" in own:
        yield f"the engine cannot: {own['failure']}"
        return
    for name, row in rows.items():
        if "failure" not in row and not _agree(model, own["results"], row["results"]):
            yield f"{name} computes other numbers"
    for what, frameworks in RATIOS.items():
        for name, most in frameworks.items():
            ratio = _ratio(rows, what, name)
            if ratio is not None and ratio > most:
                yield f"{what} {own[what]}, {ratio:.2f} of {name}'s; at most {most:.2f} is due"


def _ratio(rows: Mapping[str, Row], what: str, framework: str) -> float | None:
    """Return the engine's share of another framework's time; None if one of them cannot run the model."""
    own, other = rows["engine"], rows[framework]
    return None if "failure" in own or "failure" in other else float(own[what] / other[what])


def _agree(model: str, first: list[list[float]], second: list[list[float]]) -> bool:
    """Return True if two frameworks computed the same numbers, up to rounding or a search's tolerance."""
    tolerance = 1e-4 if model == "minimize" else 1e-9
    return all(np.allclose(a, b, rtol=tolerance, atol=tolerance) for a, b in zip(first, second, strict=True))
