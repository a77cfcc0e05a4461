"""Several input variables at once: `x, y = vectors("x", "y")`, `a, b, c = dscalars(3)`.

The name of a function is that of a maker of one variable (engine.tensor.makers) and "s"; of `matrix` it is
`matrices`. Prefixes are d, f, i and l.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.tensor import makers

_PLURALS = {"matrix": "matrices"}
_KINDS = ("scalar", "vector", "matrix", "row", "col", *(f"tensor{ndim}" for ndim in range(3, 8)))


def several(maker: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that makes a variable for each name it is given, or for each letter of a single one;
    or a list of as many as a number says.
    """

    def make(*names: Any) -> Any:
        if len(names) == 1 and isinstance(names[0], int):
            return [maker() for _ in range(names[0])]
        wanted = names[0] if len(names) == 1 and isinstance(names[0], str) else names
        return maker(wanted[0]) if len(wanted) == 1 else [maker(name) for name in wanted]

    return make


MAKERS = {
    f"{prefix}{_PLURALS.get(kind, kind + 's')}": several(getattr(makers, prefix + kind))
    for prefix in ("", "d", "f", "i", "l")
    for kind in _KINDS
}
"""The functions by their names."""


def __getattr__(name: str) -> Any:
    if name not in MAKERS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return MAKERS[name]
