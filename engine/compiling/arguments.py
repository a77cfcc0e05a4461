"""`In` and `Out`: inputs and outputs of a function with PyTensor's options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.errors import UnusedInputError
from engine.graph.variables import Constant, Variable
from engine.shared_variables import Container, SharedVariable, TensorSharedVariable, as_update
from engine.tensor.type import TensorType


class In:
    """An input of a function: `variable`, called `name` or like the variable.

    With a `value` the argument may be left out. With an `update`, an expression of the variable's type, the
    input is a state: each call replaces the value by what the update is, for the next call to use. A `value`
    may be the Container of another input or of a shared variable, or the shared variable itself; they then
    have one state. Such an input is `implicit` unless this is False: it is no argument.

    With `strict` the argument is not converted; with `allow_downcast` it is cast even if digits are lost, and
    False refuses a Python float for a float32, too. `borrow`, `mutable` and `autoname` are PyTensor's and
    decide nothing: no argument is ever overwritten. Raises TypeError for an update of another type, a name
    that is no string, and an implicit input without a value.
    """

    __slots__ = ("allow_downcast", "container", "implicit", "name", "strict", "update", "variable")

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
        if not isinstance(name, str | None):
            raise TypeError(f"Making an input of {variable}: its name is {name!r}; it must be a string")
        if implicit and value is None:
            raise TypeError(f"Making an input of {variable}: it is implicit, and has no value; give it one")
        self.variable = variable
        self.name = name or variable.name
        self.update = None if update is None else as_update(variable, update, "Making an input")
        self.strict = strict
        self.allow_downcast = allow_downcast
        has_container = isinstance(value, Container | SharedVariable)
        self.implicit = has_container if implicit is None else implicit
        self.container = self._container(value, has_container)

    def _container(self, value: Any, has_container: bool) -> Container | None:
        if has_container:
            return value if isinstance(value, Container) else value.container
        is_needed = value is not None or self.update is not None
        return Container(self.variable, [value]) if is_needed else None

    @property
    def value(self) -> Any:
        """The value for calls that give none; None if each must."""
        return None if self.container is None else self.container.value

    def of(self, variable: Variable) -> In:
        """Return an input of `variable` with these options and this container, without the update."""
        new = In(variable, self.name, strict=self.strict, allow_downcast=self.allow_downcast)
        new.container = self.container
        return new

    def shared(self) -> TensorSharedVariable:
        """Return a shared variable with the state of this input. Refuses (TypeError) all but tensors."""
        if not isinstance(self.variable.type, TensorType):
            raise TypeError(f"Making an implicit input of {self.variable}: only a tensor may be one")
        return TensorSharedVariable(self.variable.type, None, self.name, container=self.container)

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

    Refuses (TypeError) what is no list of variables, constants and shared variables, and (UnusedInputError)
    a variable that comes twice.
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
                f"Cannot use a shared variable ({variable}) as explicit input: it is input {position}; "
                "leave it out, a function reads the shared variables that it needs"
            )
    if len(set(variables)) != len(variables):
        twice = next(variable for variable in variables if variables.count(variable) > 1)
        raise UnusedInputError(f"Making a function: {twice} is used twice in inputs; give it once", twice)
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
