"""The operations in JAX, on arrays that it has already; its results are waited for and stay with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
from jax import nn
from jax.scipy import special

from operations import OPERATIONS

jax.config.update("jax_enable_x64", True)

SAME = (
    "exp log log1p expm1 tanh sin sqrt sum mean max prod cumsum clip where concatenate argmax dot sort ravel"
).split()
FUNCTIONS = SimpleNamespace(
    **{name: getattr(jnp, name) for name in SAME},
    sigmoid=nn.sigmoid,
    softplus=nn.softplus,
    erf=special.erf,
    softmax=lambda m: nn.softmax(m, axis=-1),
    logsumexp=lambda m: special.logsumexp(m, axis=-1),
    scatter_add=lambda x, index, y: x.at[index].add(y),
)


def build(name: str, arrays: Sequence[Any]) -> tuple[Callable[..., Any], list[Any]]:
    """Return the operation `name`, which JAX compiles at its first call, and its arguments."""
    compute = OPERATIONS[name].compute
    compiled = jax.jit(lambda *arguments: compute(FUNCTIONS, *arguments))
    return lambda *arguments: compiled(*arguments).block_until_ready(), [jnp.asarray(a) for a in arrays]
