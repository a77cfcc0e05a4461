"""`Generic`: the type of any Python object, which programs do not hold."""

from __future__ import annotations

from typing import Any

from engine.graph.types import Type


class Generic(Type):
    """The set of all Python objects.

    Shared variables of this type keep objects for users. Programs hold tensors and generators: no Op takes
    such a variable, and no function returns it.
    """

    __props__ = ()

    def filter(self, value: Any, strict: bool = False, allow_downcast: bool | None = None) -> Any:
        """Return `value`."""
        return value

    def __str__(self) -> str:
        return "Generic"

    __repr__ = __str__


generic = Generic()
