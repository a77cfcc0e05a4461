"""Draws of distributions for which PyTensor's numba mode takes other numbers than `perform` from a generator.

numba's mode is PyTensor's default, so one seed must give the same draws in it and on the engine. For most
distributions both take numpy's. For those here `perform` calls SciPy, which inverts the distribution
function; the numba mode has the definitions that are written below. Last digits may differ: numba is allowed
to round a product and a sum once.

The numba mode's choice without replacement is left out: without weights it permutes as many numbers as it
draws, so it never takes any but the first ones, and with weights it sorts them (PyTensor 3.3.7).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from pytensor.compile.inner_function import HasInnerFunction
from pytensor.graph.basic import Apply
from pytensor.tensor.random.basic import BernoulliRV, CauchyRV, GumbelRV

Size = tuple[int, ...] | None
"""The shape of the draws; None for that of the parameters together."""


class _Bernoulli(BernoulliRV):
    @classmethod
    def rng_fn(cls, rng: np.random.Generator, p: Any, size: Size) -> Any:
        """Return which of uniform numbers are not above `p`; all of them where it is NaN, as for numba."""
        return ~(p < rng.random(np.shape(p) if size is None else size))


class _Cauchy(CauchyRV):
    @classmethod
    def rng_fn(cls, rng: np.random.Generator, loc: Any, scale: Any, size: Size) -> Any:
        shape = np.broadcast_shapes(np.shape(loc), np.shape(scale)) if size is None else size
        return loc + scale * rng.standard_cauchy(shape)


class _Gumbel(GumbelRV):
    @classmethod
    def rng_fn(cls, rng: np.random.Generator, loc: Any, scale: Any, size: Size) -> Any:
        return rng.gumbel(loc, scale, size)


_DRAWN: dict[type, type] = {BernoulliRV: _Bernoulli, CauchyRV: _Cauchy, GumbelRV: _Gumbel}
"""By PyTensor's class; a subclass of a user's has a `rng_fn` of its own."""


def drawing_as_numba(node: Any) -> Any:
    """Return a node that does what `node` does, but draws as the numba mode; `node` if it does so already."""
    if not _draws_otherwise(node.op):
        return node
    op = _with_inner_draws(node.op) if isinstance(node.op, HasInnerFunction) else _drawn(node.op)
    return Apply(op, node.inputs, [output.clone() for output in node.outputs])


def _draws_otherwise(op: Any) -> bool:
    """Return True if `op`, or an Op in its graph, is one of those whose `perform` draws other numbers."""
    if isinstance(op, HasInnerFunction):
        return any(_draws_otherwise(node.op) for node in op.fgraph.toposort())
    return type(op) in _DRAWN


def _drawn(op: Any) -> Any:
    found: Any = object.__new__(_DRAWN[type(op)])
    vars(found).update(vars(op))
    return found


def _with_inner_draws(op: Any) -> Any:
    """Return a copy of `op` whose inner graph draws as the numba mode."""
    inner = op.fgraph.unfreeze()
    for node in inner.toposort():
        found = drawing_as_numba(node)
        if found is not node:
            inner.replace_all(zip(node.outputs, found.outputs, strict=True), import_missing=True)
    return op.clone_with_inner_graph(inner)
