"""Several input variables at once: `x, y = vectors("x", "y")`, `a, b, c = dscalars(3)`.

The name of a function is that of a maker of one variable (engine.tensor.makers) and "s"; of `matrix` it is
`matrices`. Prefixes are d, f, i, l, c and z.
"""

from __future__ import annotations

from typing import Any

from engine.graph.several import several
from engine.tensor import makers

_PLURALS = {"matrix": "matrices"}
_KINDS = ("scalar", "vector", "matrix", "row", "col", *(f"tensor{ndim}" for ndim in range(3, 8)))

MAKERS = {
    f"{prefix}{_PLURALS.get(kind, kind + 's')}": several(getattr(makers, prefix + kind))
    for prefix in ("", "d", "f", "i", "l", "c", "z")
    for kind in _KINDS
}
"""The functions by their names."""


def __getattr__(name: str) -> Any:
    if name not in MAKERS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return MAKERS[name]
