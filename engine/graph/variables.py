"""Variables: the edges of a graph. Each is an output of its `owner`, an input or a constant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from itertools import count
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from engine.graph.apply import Apply
    from engine.graph.types import Type


class Variable:
    """A value of `type` in a graph: output number `index` of `owner`, or, without an owner, an input.

    Compared and hashed by identity.
    """

    __slots__ = (
        "__weakref__",
        "_auto_name",
        "_fn_cache",
        "_is_noted",
        "_tag",
        "index",
        "name",
        "owner",
        "type",
    )
    _fn_cache: dict[Any, Any]
    _is_noted: bool
    is_atomic: ClassVar[bool] = False
    """True for constants, and for inputs of frozen graphs: other graphs have them as they are."""
    __count__: ClassVar[Iterator[int]] = count()
    """The numbers of automatic names."""

    def __init__(
        self, type: Type, owner: Apply | None = None, index: int | None = None, name: str | None = None
    ) -> None:
        # Any: users of a subclass of Type read its further attributes (dtype, shape).
        self.type: Any = type
        self.owner: Apply | None = owner
        self.index: int | None = index
        self.name: str | None = name

    @property
    def tag(self) -> SimpleNamespace:
        """A namespace for annotations that are not part of the variable's identity."""
        try:
            return self._tag
        except AttributeError:
            self._tag: SimpleNamespace = SimpleNamespace()
            return self._tag

    @property
    def auto_name(self) -> str:
        """A name that no other variable of the process has, given when somebody first asks for it."""
        try:
            return self._auto_name
        except AttributeError:
            self._auto_name: str = f"auto_{next(Variable.__count__)}"
            return self._auto_name

    def dprint(self, **options: Any) -> Any:
        """Print the graph of this variable; `options` are those of `engine.dprint`."""
        return import_module("engine.printing").dprint(self, **options)

    def clone(self, name: str | None = None) -> Variable:
        """Return a variable of the same type without an owner, named `name` or as this one."""
        return self.type.make_variable(name or self.name)

    @property
    def owner_op(self) -> Any:
        """The Op that computes this variable, or None."""
        return None if self.owner is None else self.owner.op

    @property
    def owner_op_and_inputs(self) -> tuple[Any, ...]:
        """The Op that computes this variable, and its inputs; (None,) without one."""
        return (None,) if self.owner is None else (self.owner.op, *self.owner.inputs)

    def get_parents(self) -> list[Apply]:
        """Return the node that computes this variable, as a list of at most one."""
        return [] if self.owner is None else [self.owner]

    def eval(self, inputs_to_values: Mapping[Any, Any] | None = None, **options: Any) -> Any:
        """Return the value of this variable, given those of inputs: a dictionary of variables, or their
        names, and values. `options` are those of `engine.function`, which compiles it, once.

        Raises ValueError for a name that no variable of the graph has, or more than one.
        """
        return import_module("engine.evaluation").evaluated(self, inputs_to_values, **options)

    def __str__(self) -> str:
        if self.name is not None:
            return self.name
        if self.owner is None:
            return f"<{self.type}>"
        position = "" if len(self.owner.outputs) == 1 else f".{self.index}"
        return f"{self.owner.op}{position}"

    __repr__ = __str__

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = {
            "type": self.type,
            "owner": self.owner,
            "index": self.index,
            "name": self.name,
        }
        if hasattr(self, "_tag"):
            state["_tag"] = self._tag
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)


class Constant(Variable):
    """A variable with a value, `data`, that is known when the graph is built and never changes."""

    __slots__ = ("data",)
    is_atomic = True

    def __init__(self, type: Type, data: Any, name: str | None = None) -> None:
        super().__init__(type, None, None, name)
        self.data = data

    @property
    def value(self) -> Any:
        """The constant's value."""
        return self.data

    def signature(self) -> tuple[Any, ...]:
        """Return a hashable, equal for constants of one type whose values have the same bits."""
        return (self.type, *self.type.data_key(self.data))

    def equals(self, other: object) -> bool:
        """Return True if `other` is a constant of the same type, whose value has the same bits."""
        return self is other or (isinstance(other, Constant) and self.signature() == other.signature())

    def clone(self, name: str | None = None) -> Constant:
        """Return this constant, which never changes; for another `name`, one of its type and data."""
        return self if name in (None, self.name) else type(self)(self.type, self.data, name)

    def __str__(self) -> str:
        return f"{self.data}" if self.name is None else f"{self.name}{{{self.data}}}"

    __repr__ = __str__

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "data": self.data}


def note_uses(variables: Iterable[Variable]) -> None:
    """Note that something was made of `variables` that may need no value of theirs: a gradient or a loop. A
    function may have what they are computed from as inputs, whether its graph needs these or not."""
    waiting = list(variables)
    while waiting:
        variable = waiting.pop()
        if not hasattr(variable, "_is_noted"):
            variable._is_noted = True
            if variable.owner is not None:
                waiting += variable.owner.inputs


def has_noted_use(variable: Variable) -> bool:
    """Return True for a variable that `note_uses` was called with."""
    return hasattr(variable, "_is_noted")


def is_named(variable: Variable, name: str) -> bool:
    """Return True if `name` is the name of `variable`, or the automatic one that it was given."""
    return name in (variable.name, getattr(variable, "_auto_name", None))


def place_text(variable: Variable) -> str:
    """Return the text of the Op that computes `variable` and of its output's number, or that of an input."""
    return str(variable) if variable.owner is None else f"{variable.owner.op}.{variable.index}"
