"""The type of None, for inputs of Ops that may be left out, such as the size of a draw."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.graph.represented import RepresentedType
from engine.graph.variables import Constant


class NoneTypeT(RepresentedType):
    """The set whose only value is None; programs hold an empty array."""

    dtype = "bool"
    shape = (0,)
    stored_name = "none"

    def filter(self, value: Any, strict: bool = False, allow_downcast: bool | None = None) -> None:
        """Return None; refuse (TypeError) anything else."""
        if value is not None:
            raise TypeError(f"Using {value!r} ({type(value).__name__}) where None is due")

    def make_constant(self, value: Any, name: str | None = None) -> Constant:
        """Return the constant None, whose `data` is None, too."""
        self.filter(value)
        return self.constant_type(self, None, name)

    def to_array(self, value: Any) -> np.ndarray[Any, Any]:
        """Return an empty array."""
        return np.zeros(0, "bool")

    def from_array(self, array: np.ndarray[Any, Any]) -> None:
        """Return None."""


none_type_t = NoneTypeT()
NoneConst = none_type_t.make_constant(None, "NoneConst")
