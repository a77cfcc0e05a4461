"""`Type`: what values a variable may take, and which classes represent such variables."""

from __future__ import annotations

from typing import Any, ClassVar

from engine.graph.props import ByProps
from engine.graph.variables import Constant, Variable


class Type(ByProps):
    """The set of values that a variable may take; equal by class and `__props__`.

    Subclasses implement `filter` and name their variable classes.
    """

    variable_type: ClassVar[type[Variable]] = Variable
    constant_type: ClassVar[type[Constant]] = Constant

    def filter(self, value: Any, strict: bool = False, allow_downcast: bool | None = None) -> Any:
        """`value`, converted if need be and allowed; refuses (TypeError) what this type does not hold."""
        raise NotImplementedError(f"{type(self).__name__} must implement filter()")

    def is_valid_value(self, value: Any) -> bool:
        """Whether `value` is of this type as it stands."""
        try:
            self.filter(value, strict=True)
        except (TypeError, ValueError):
            return False
        return True

    def data_key(self, value: Any) -> tuple[Any, ...]:
        """What makes two constants of this type one: a hashable made from all the bits of `value`."""
        raise NotImplementedError(f"{type(self).__name__} must implement data_key()")

    def same_data(self, first: Any, second: Any) -> bool:
        """Whether two values are the same bit for bit (a `data_key` may be a digest)."""
        raise NotImplementedError(f"{type(self).__name__} must implement same_data()")

    def is_super(self, other: Type) -> bool:
        """Whether every value of `other` is a value of this type."""
        return self == other

    def intersection(self, other: Type) -> Type | None:
        """The type of the values that are of this type and of `other`; None if there is none."""
        return self if self == other else None

    def filter_variable(self, variable: Any) -> Variable:
        """`variable` as a variable of this type; refuses (TypeError) one that may hold other values."""
        if isinstance(variable, Variable) and self.is_super(variable.type):
            return variable
        raise TypeError(
            f"Using a variable where {self} is needed: found {variable!r} of type "
            f"{getattr(variable, 'type', type(variable).__name__)}; convert it first"
        )

    def make_variable(self, name: str | None = None) -> Variable:
        """A new variable of this type that nothing computes."""
        return self.variable_type(self, None, None, name)

    def make_constant(self, value: Any, name: str | None = None) -> Constant:
        """A new constant of this type that holds `value`."""
        return self.constant_type(self, self.filter(value), name)

    def __call__(self, name: str | None = None) -> Variable:
        return self.make_variable(name)

    def __repr__(self) -> str:
        properties = ", ".join(f"{name}={value!r}" for name, value in self.props_dict().items())
        return f"{type(self).__name__}({properties})"
