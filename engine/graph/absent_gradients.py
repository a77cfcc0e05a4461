"""Types of what a user Op's derivatives give where there is no gradient, under PyTensor's names."""

from __future__ import annotations

from typing import Any, NoReturn

from engine.graph.types import Type
from engine.graph.variables import Variable


class DisconnectedType(Type):
    """The type of the gradient of what does not depend on a variable: it is 0, and known to be."""

    __props__ = ()

    def filter(self, value: Any, strict: bool = False, allow_downcast: bool | None = None) -> NoReturn:
        raise TypeError(f"Using {value!r} as a value of {self}: it has none; it stands for no dependence")

    def filter_variable(self, variable: Any, allow_convert: bool = True) -> NoReturn:
        raise AssertionError(
            f"Using {variable!r} as a variable of DisconnectedType: it has no values; it stands for no "
            "dependence"
        )


class NullType(Type):
    """The type of a gradient that is not defined, or not implemented; `why_null` says why."""

    __props__ = ()

    def __init__(self, why_null: str = "(no explanation given)") -> None:
        self.why_null = why_null

    def filter(self, value: Any, strict: bool = False, allow_downcast: bool | None = None) -> NoReturn:
        raise TypeError(f"Using {value!r} as a value of {self}: it has none; {self.why_null}")

    def filter_variable(self, variable: Any, allow_convert: bool = True) -> NoReturn:
        raise TypeError(f"Using {variable!r} as a variable of {self}: it has no values; {self.why_null}")


disconnected_type = DisconnectedType()
null_type = NullType()


def grad_undefined(op: Any, x_pos: int, x: Variable, comment: str = "") -> Variable:
    """Return the gradient of `op` for its input `x` at `x_pos` if mathematics has none."""
    return _null(op, x_pos, x, comment, "it is not defined")


def grad_not_implemented(op: Any, x_pos: int, x: Variable, comment: str = "") -> Variable:
    """Return the gradient of `op` for its input `x` at `x_pos` if nobody has written it."""
    return _null(op, x_pos, x, comment, "it is not implemented")


def _null(op: Any, x_pos: int, x: Variable, comment: str, why: str) -> Variable:
    message = f"The gradient of {op} for its input {x_pos}, {x}: {why}"
    return NullType(f"{message}: {comment}" if comment else message).make_variable()
