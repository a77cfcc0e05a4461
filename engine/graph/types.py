"""`Type`: the set of values that a variable may take, and the classes of such variables."""

from __future__ import annotations

from typing import Any, ClassVar

from engine.graph.props import ByProps, exact_or_identity
from engine.graph.variables import Constant, Variable


class Type(ByProps):
    """The set of values that a variable may take; equal by class and `__props__`.

    Subclasses implement `filter` and name their variable classes.
    """

    variable_type: ClassVar[type[Variable]] = Variable
    constant_type: ClassVar[type[Constant]] = Constant

    def filter(self, value: Any, strict: bool = False, allow_downcast: bool | None = None) -> Any:
        """Return `value`, converted if needed and allowed; refuse (TypeError) values outside this type."""
        raise NotImplementedError(f"{type(self).__name__} must implement filter()")

    def is_valid_value(self, value: Any) -> bool:
        """Return True if `value` is of this type without conversion."""
        try:
            self.filter(value, strict=True)
        except (TypeError, ValueError):
            return False
        return True

    def data_key(self, value: Any) -> tuple[Any, ...]:
        """Return a hashable of all bits of `value`: constants of one type and key are interned as one.

        By default of a value that can be compared bit for bit; any other is equal to itself only.
        """
        return (exact_or_identity(value),)

    def same_data(self, first: Any, second: Any) -> bool:
        """Return True if two values are the same bit for bit (a `data_key` may be a digest)."""
        return first is second or exact_or_identity(first) == exact_or_identity(second)

    def is_super(self, other: Type) -> bool | None:
        """Return True if every value of `other` is a value of this type, else None."""
        return True if self == other else None

    def intersection(self, other: Type) -> Type | None:
        """Return the type of the values that are of this type and of `other`, or None."""
        return self if self == other else None

    def in_same_class(self, other: Type) -> bool:
        """Return True if values of both types can be used in the same places; by default, if equal."""
        return bool(self.is_super(other))

    def convert_variable(self, variable: Variable) -> Variable | None:
        """Return `variable` as one of this type, or None if that is impossible.

        Raises NotImplementedError if it is possible for some values, and the class does not say how.
        """
        if self.is_super(variable.type):
            return variable
        if variable.type.is_super(self):
            raise NotImplementedError(f"{type(self).__name__} must implement convert_variable()")
        return None

    def filter_variable(self, variable: Any, allow_convert: bool = True) -> Variable:
        """Return `variable` as a variable of this type; refuse (TypeError) one that may hold other values.

        With `allow_convert`, which is PyTensor's default, it is converted if that is possible.
        """
        if isinstance(variable, Variable):
            found = self.convert_variable(variable) if allow_convert else None
            if found is not None or self.is_super(variable.type):
                return variable if found is None else found
        raise TypeError(
            f"Using a variable where {self} is needed: found {variable!r} of type "
            f"{getattr(variable, 'type', type(variable).__name__)}; convert it first"
        )

    def clone(self, *properties: Any, **named: Any) -> Type:
        """Return the type of this class with other properties."""
        return type(self)(*properties, **named)

    def make_variable(self, name: str | None = None) -> Variable:
        """Return a new variable of this type without an owner."""
        return self.variable_type(self, None, None, name)

    def make_constant(self, value: Any, name: str | None = None) -> Constant:
        """Return a new constant of this type with the data `value`."""
        return self.constant_type(self, self.filter(value), name)

    def __call__(self, name: str | None = None) -> Variable:
        return self.make_variable(name)

    def __repr__(self) -> str:
        properties = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__props__ or ())
        return f"{type(self).__name__}({properties})"
