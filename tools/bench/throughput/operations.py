"""The operations that are compared, written once for every framework.

Each takes the functions of a framework (`f`: numpy's names where numpy has them) and arrays. Numbers in
them are exact in float32, so that no framework computes in float64 what is asked for in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Array = Any


@dataclass(frozen=True)
class Operation:
    """`compute(f, *arrays)`, for `arguments`: names of values.py."""

    compute: Callable[..., Array]
    arguments: tuple[str, ...]


def of(*arguments: str) -> Callable[[Callable[..., Array]], Operation]:
    """Return what makes a function an Operation of `arguments`."""
    return lambda compute: Operation(compute, arguments)


@of("normal", "other")
def chain(f: Any, x: Array, y: Array) -> Array:
    """A chain of arithmetic that reads each element once."""
    return (x * y + 0.5) / (1.0 + x * x) - 0.25 * y * (x - y) + f.sqrt(y * y + 2.0)


@of("normal", "other")
def normal_density(f: Any, x: Array, mean: Array) -> Array:
    """The log density of independent normals, but for a constant."""
    return f.sum(-0.5 * ((x - mean) * 1.25) ** 2 - 0.25)


@of("normal", "other")
def student_density(f: Any, x: Array, mean: Array) -> Array:
    """The log density of independent Student's t with four degrees of freedom, but for a constant."""
    return f.sum(-2.5 * f.log1p(((x - mean) * 1.25) ** 2 * 0.25))


@of("true", "normal")
def bernoulli_density(f: Any, event: Array, logit: Array) -> Array:
    """The log density of events, given the logits of their probabilities."""
    return f.sum(f.where(event, -f.softplus(-logit), -f.softplus(logit)))


OPERATIONS: dict[str, Operation] = {
    "exp": Operation(lambda f, x: f.exp(x), ("normal",)),
    "log": Operation(lambda f, x: f.log(x), ("positive",)),
    "log1p": Operation(lambda f, x: f.log1p(x), ("positive",)),
    "expm1": Operation(lambda f, x: f.expm1(x), ("normal",)),
    "tanh": Operation(lambda f, x: f.tanh(x), ("normal",)),
    "sigmoid": Operation(lambda f, x: f.sigmoid(x), ("normal",)),
    "softplus": Operation(lambda f, x: f.softplus(x), ("normal",)),
    "erf": Operation(lambda f, x: f.erf(x), ("normal",)),
    "sin": Operation(lambda f, x: f.sin(x), ("normal",)),
    "pow": Operation(lambda f, x, y: x**y, ("positive", "normal")),
    "sum": Operation(lambda f, m: f.sum(m), ("matrix",)),
    "sum-columns": Operation(lambda f, m: f.sum(m, axis=0), ("matrix",)),
    "sum-rows": Operation(lambda f, m: f.sum(m, axis=1), ("matrix",)),
    "mean-columns": Operation(lambda f, m: f.mean(m, axis=0), ("matrix",)),
    "max": Operation(lambda f, m: f.max(m), ("matrix",)),
    "max-columns": Operation(lambda f, m: f.max(m, axis=0), ("matrix",)),
    "max-rows": Operation(lambda f, m: f.max(m, axis=1), ("matrix",)),
    "prod-rows": Operation(lambda f, m: f.prod(m, axis=1), ("near-one",)),
    "softmax": Operation(lambda f, m: f.softmax(m), ("matrix",)),
    "logsumexp": Operation(lambda f, m: f.logsumexp(m), ("matrix",)),
    "transpose": Operation(lambda f, m: f.ravel(m.T), ("matrix",)),
    "add-transposed": Operation(lambda f, m: m.T + m, ("matrix",)),
    "gather": Operation(lambda f, x, index: x[index], ("normal", "index")),
    "gather-sum": Operation(lambda f, x, index: f.sum(x[index]), ("normal", "index")),
    "gather-rows": Operation(lambda f, m, index: m[index], ("matrix", "row-index")),
    "scatter-add": Operation(
        lambda f, x, index, y: f.scatter_add(x, index, y), ("few", "few-index", "other")
    ),
    "mask": Operation(lambda f, x: x[x > 0.0], ("normal",)),
    "masked-sum": Operation(lambda f, x, y: f.sum(f.where(x > 0.0, x, y)), ("normal", "other")),
    "cumsum": Operation(lambda f, x: f.cumsum(x), ("positive",)),
    "normal-density": normal_density,
    "student-density": student_density,
    "bernoulli-density": bernoulli_density,
    "chain": chain,
    "clip": Operation(lambda f, x: f.clip(x, -0.5, 0.5), ("normal",)),
    "where": Operation(lambda f, mask, x, y: f.where(mask, x, y), ("true", "normal", "other")),
    "column-plus-row": Operation(lambda f, column, row: column + row, ("column", "row")),
    "matrix-row-column": Operation(lambda f, m, row, column: (m - row) * column, ("matrix", "row", "column")),
    "concatenate": Operation(lambda f, x, y: f.concatenate([x, y]), ("normal", "other")),
    "argmax-rows": Operation(lambda f, m: f.argmax(m, axis=1), ("matrix",)),
    "matrix-vector": Operation(lambda f, m, x: f.dot(m, x), ("matrix", "vector")),
    "vector-vector": Operation(lambda f, x, y: f.dot(x, y), ("normal", "other")),
    "sort": Operation(lambda f, x: f.sort(x), ("normal",)),
}
