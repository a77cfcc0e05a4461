"""`subgraph_grad`: gradients of a part of a graph, to be continued from where they end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.gradient.reverse import grad
from engine.graph.variables import Variable
from engine.tensor.math import add


def subgraph_grad(
    wrt: Sequence[Variable],
    end: Sequence[Variable],
    start: Mapping[Variable, Any] | None = None,
    cost: Any = None,
    details: bool = False,
) -> tuple[list[Any], ...]:
    """Return the gradients for the variables `wrt`, and those for the variables `end`, behind which nothing
    is differentiated.

    They are those of `cost`, a 0-d real number, plus what follows from known gradients, `start`, by
    variable: with the gradients for `end` as the next `start`, a network is differentiated layer by layer.
    What does not depend on a variable counts as 0. With `details`, the gradients for `wrt` and `end` that
    come from `start`, and those that come from `cost`, follow as two more lists, or None.

    Raises ValueError if there is neither a `start` nor a `cost`, and TypeError unless `wrt` and `end` are
    lists and `start` a dictionary.
    """
    if cost is None and start is None:
        raise ValueError("Taking a gradient of a part of a graph: give a cost, or a start")
    if not (isinstance(wrt, list) and isinstance(end, list) and isinstance(start, Mapping | None)):
        raise TypeError(
            f"Taking a gradient of a part of a graph: wrt is {wrt!r}, end is {end!r} and start is {start!r}; "
            "they must be two lists and a dictionary"
        )
    targets = list(dict.fromkeys([*wrt, *end]))

    def gradients(cost: Any, known: Mapping[Variable, Any] | None) -> list[Any]:
        return grad(cost, targets, end, "ignore", known_grads=known)

    of_start = None if start is None else gradients(None, start)
    of_cost = None if cost is None else gradients(cost, None)
    given = [found for found in (of_start, of_cost) if found is not None]
    total = dict(
        zip(targets, [add(*g) if len(g) > 1 else g[0] for g in zip(*given, strict=True)], strict=True)
    )
    found = [total[variable] for variable in wrt], [total[variable] for variable in end]
    return (*found, of_start, of_cost) if details else found  # type: ignore[return-value]
