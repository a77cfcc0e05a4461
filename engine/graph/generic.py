"""`Generic`: the type of any Python object, of which programs hold a copy."""

from __future__ import annotations

import pickle
from typing import Any, ClassVar

import numpy as np

from engine.graph.represented import RepresentedType
from engine.graph.types import Type
from engine.graph.variables import Constant


class Generic(RepresentedType):
    """The set of all Python objects that can be pickled: programs hold the pickle, as a vector of bytes.

    So an Op gets an object that is equal to the one that was given, and may change it. Nothing that is held
    so is stored, and no shared variable is updated to such an object.
    """

    constant_type: ClassVar[type[Constant]] = Constant
    dtype = "uint8"
    shape = (None,)
    stored_name = "object"
    data_key = Type.data_key
    same_data = Type.same_data

    def filter(self, value: Any, strict: bool = False, allow_downcast: bool | None = None) -> Any:
        """Return `value`."""
        return value

    def make_constant(self, value: Any, name: str | None = None) -> Constant:
        """Return a constant whose `data` is `value` itself."""
        return self.constant_type(self, value, name)

    def is_array(self, value: Any) -> bool:
        """Return False: an array is an object as any other, and is pickled."""
        return False

    def to_array(self, value: Any) -> np.ndarray[Any, Any]:
        """Return the bytes of the pickle of `value`; refuse (TypeError) what cannot be pickled."""
        try:
            pickled = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
        except Exception as error:
            raise TypeError(f"Holding {value!r} in a program: it cannot be pickled ({error})") from error
        return np.frombuffer(pickled, self.dtype).copy()

    def from_array(self, array: np.ndarray[Any, Any]) -> Any:
        """Return a new object, equal to the one that was pickled."""
        return pickle.loads(array.tobytes())

    def __str__(self) -> str:
        return "Generic"

    __repr__ = __str__


generic = Generic()
