"""`Op`: an operation that may be applied to variables."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import lru_cache
from types import MemberDescriptorType
from typing import Any, ClassVar

from engine.errors import NullGradientError
from engine.graph.apply import Apply
from engine.graph.props import REMEMBERED, ByProps, exact, is_of_engine
from engine.graph.types import Type


class Op(ByProps):
    """An operation: its type rule (`make_node`), reference (`perform`) and gradient (`pullback`) in one place.

    Two Ops are equal if they have the same class and equal `__props__`; without `__props__`, by identity. Of a user's Ops what is in
    attributes that `__props__` does not name has to be equal, too, and in the same order: equal Ops are computed once, and one may stand for the other.

    A user's Op may also say what the lengths of its outputs are, with a method
    `infer_shape(fgraph, node, input_shapes)`: for each output a tuple of a length (a variable or an int; None: only the
    result tells) for each axis. `fgraph` is None: lengths may be asked for before there is one. The gradient is `pullback`; `grad` and `L_op`, its older names elsewhere, are not read.
    """

    default_output: int | None = None
    view_map: ClassVar[dict[int, list[int]]] = {}
    destroy_map: dict[int, list[int]] = {}
    itypes: Sequence[Any] | None = None
    otypes: Sequence[Any] | None = None
    """The types, or makers of variables of these types, that an Op without a `make_node` of its own takes and gives."""
    holds_code: ClassVar[bool] = False
    """Whether what an Op of the engine computes is a user's code."""

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return super().__eq__(other) and (
            is_of_engine(self) or [*unnamed_attributes(self).items()] == [*unnamed_attributes(other).items()]
        )

    __hash__ = ByProps.__hash__

    def make_node(self, *inputs: Any) -> Apply:
        """The application of this Op to `inputs`; refuses (TypeError) inputs of other types than it takes.

        Here: inputs and outputs have the types that `itypes` and `otypes` list.
        """
        if self.itypes is None or self.otypes is None:
            raise NotImplementedError(
                f"{type(self).__name__} must implement make_node(), or declare itypes and otypes"
            )
        if len(inputs) != len(self.itypes):
            raise TypeError(f"Applying {self}: it takes {len(self.itypes)} inputs, {len(inputs)} were given")
        types = [as_type(item) for item in self.itypes]
        variables = [type.filter_variable(given) for type, given in zip(types, inputs, strict=True)]
        return Apply(self, variables, [as_type(item).make_variable() for item in self.otypes])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        """Compute the outputs from the values `inputs`, and put each in element 0 of its storage."""
        raise NotImplementedError(f"{type(self).__name__} must implement perform()")

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        """The gradient of a cost for each input, given its gradient for each output (None: the cost does not
        depend on it). None in the result: the output does not depend on that input in a differentiable way.

        Raises NullGradientError where the Op declares no gradient.
        """
        raise NullGradientError(f"Taking a gradient through {self}: it declares none (no pullback)", self)

    def pullback_wanted(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        cotangents: Sequence[Any],
        wanted: Sequence[bool] | None,
    ) -> list[Any]:
        """`pullback`, where nobody asks for the inputs not `wanted`: an Op may give None for these."""
        return self.pullback(inputs, outputs, cotangents)

    def pushforward(self, inputs: Sequence[Any], outputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        """The tangent of each output, for those of the inputs (None: it does not change). None in the result: the output
        does not change in a differentiable way. NotImplemented, as here: the pullback says it, taken twice.
        """
        return NotImplemented

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """For each input and each output, whether the output depends on the values of the input. Here: always."""
        return [[True] * len(node.outputs) for _ in node.inputs]

    def key_props(self) -> dict[str, Any]:
        """The properties that decide what is computed, by name: they describe this Op in a cache key. Here: all."""
        return self.props_dict()

    def __call__(
        self, *inputs: Any, name: str | None = None, return_list: bool = False, **kwargs: Any
    ) -> Any:
        """Apply this Op: its output, or the list of its outputs if there are several."""
        node = self.make_node(*inputs, **kwargs)
        if name is not None and len(node.outputs) == 1:
            node.outputs[0].name = name
        if return_list:
            return list(node.outputs)
        if self.default_output is not None:
            return node.outputs[self.default_output]
        return node.outputs[0] if len(node.outputs) == 1 else list(node.outputs)

    def __str__(self) -> str:
        name = getattr(self, "name", None)
        if isinstance(name, str):
            return name
        if not self.__props__:
            return type(self).__name__
        properties = ", ".join(f"{key}={value}" for key, value in self.props_dict().items())
        return f"{type(self).__name__}{{{properties}}}"

    __repr__ = __str__


def unnamed_attributes(op: Any) -> dict[str, Hashable]:
    """Return the attributes that `__props__` does not name, by name: equal where they are the same to the last bit, or one object."""
    named = op.__props__ or ()
    return {name: _exact_or_itself(value) for name, value in attributes(op).items() if name not in named}


def attributes(op: Op) -> dict[str, Any]:
    """Return all that the instance `op` holds, by name, but what the engine remembers with it."""
    held = {name: value for name, value in vars(op).items() if name not in REMEMBERED}
    cls: Any = type(op)
    for name, slot in _slots(cls):
        try:
            held[name] = slot.__get__(op)
        except AttributeError:  # it holds nothing
            continue
    return held


@lru_cache(maxsize=1024)
def _slots(cls: type) -> tuple[tuple[str, MemberDescriptorType], ...]:
    """The slots of `cls` and its bases; one that hides another of its name is known by both classes."""
    found: dict[str, MemberDescriptorType] = {}
    for base in cls.__mro__:
        for name, item in vars(base).items():
            if isinstance(item, MemberDescriptorType):
                found[f"{name} of {base.__qualname__}" if name in found else name] = item
    return tuple(found.items())


def _exact_or_itself(value: Any) -> Hashable:
    try:
        return exact(value)
    except TypeError:
        return id, id(value)


def as_type(item: Any) -> Any:
    """`item`, a type; or the type of the variables that it makes."""
    return item if isinstance(item, Type) else item().type
