"""Several variables at once: `x, y = several(maker)("x", "y")`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def several(maker: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that makes a variable for each name it is given, alone or in a list.

    Of a single name it makes one for each letter; of a number, a list of as many.
    """

    def make(*names: Any) -> Any:
        if len(names) == 1 and isinstance(names[0], int):
            return [maker() for _ in range(names[0])]
        wanted = names[0] if len(names) == 1 and isinstance(names[0], str | list | tuple) else names
        return maker(wanted[0]) if len(wanted) == 1 else [maker(name) for name in wanted]

    return make
