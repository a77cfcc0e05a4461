"""`In` and `Out`: inputs and outputs of a function with PyTensor's options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.graph.variables import Constant, Variable


class In:
    """An input of a function: `variable`, called `name` or like the variable.

    With a `value` the argument may be left out. With `strict` the argument is not converted; with
    `allow_downcast` it is cast even if digits are lost, and False refuses a Python float for a float32,
    too. `borrow`, `mutable`, `autoname` and `implicit` are PyTensor's and decide nothing: no argument is
    ever overwritten. Raises NotImplementedError for an `update`; a shared variable has one.
    """

    __slots__ = ("allow_downcast", "name", "strict", "value", "variable")

    def __init__(
        self,
        variable: Variable,
        name: str | None = None,
        value: Any = None,
        update: Any = None,
        mutable: bool | None = None,
        strict: bool = False,
        allow_downcast: bool | None = None,
        autoname: bool = True,
        implicit: bool | None = None,
        borrow: bool | None = None,
    ) -> None:
        if update is not None:
            raise NotImplementedError(
                f"Making an input of {variable}: inputs have no updates; make it a shared variable"
            )
        self.variable = variable
        self.name = name or variable.name
        self.value = value
        self.strict = strict
        self.allow_downcast = allow_downcast

    def of(self, variable: Variable) -> In:
        """Return an input of `variable` with these options."""
        return In(variable, self.name, self.value, strict=self.strict, allow_downcast=self.allow_downcast)

    @property
    def type(self) -> Any:
        """The type of the variable."""
        return self.variable.type

    def __repr__(self) -> str:
        return f"In({self.variable})"


class Out:
    """An output of a function: `variable`. `borrow` is PyTensor's: results never change after a call."""

    __slots__ = ("variable",)

    def __init__(self, variable: Variable, borrow: bool = False) -> None:
        self.variable = variable

    def __repr__(self) -> str:
        return f"Out({self.variable})"


def checked_inputs(inputs: Any) -> list[In]:
    """Return the inputs of a function as In.

    Refuses (TypeError) what is no list of variables, constants and shared variables, and (ValueError) a
    variable that comes twice.
    """
    if not isinstance(inputs, list | tuple):
        raise TypeError(
            f"Making a function: inputs must be a list of variables, {type(inputs).__name__} was given"
        )
    variables = [given.variable if isinstance(given, In) else given for given in inputs]
    for position, variable in enumerate(variables):
        if not isinstance(variable, Variable) or isinstance(variable, Constant):
            raise TypeError(
                f"Making a function: input {position} is {variable!r}; it must be a variable, no constant"
            )
        if hasattr(variable, "container"):
            raise TypeError(
                f"Making a function: input {position}, {variable}, is shared; it is an input already"
            )
    if len(set(variables)) != len(variables):
        raise ValueError("Making a function: a variable is among the inputs twice")
    return [given if isinstance(given, In) else In(given) for given in inputs]


def without_out(outputs: Any) -> Any:
    """Return `outputs` (one, a list, a dictionary or None) with each Out replaced by its variable."""
    if isinstance(outputs, Out):
        return outputs.variable
    if isinstance(outputs, list | tuple):
        return [without_out(output) for output in outputs]
    if isinstance(outputs, Mapping):
        return {key: without_out(output) for key, output in outputs.items()}
    return outputs
