"""`Op`: an operation that can be applied to variables."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import lru_cache
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, ClassVar

from engine.errors import NullGradientError
from engine.graph.apply import Apply
from engine.graph.props import REMEMBERED, ByProps, exact_or_identity, is_of_engine
from engine.graph.types import Type
from engine.late_names import names_elsewhere


class Op(ByProps):
    """An operation: type rule (`make_node`), reference (`perform`) and gradient (`pullback`) in one place.

    Two Ops are equal if they have the same class and equal `__props__`; without `__props__`, by identity.
    Two user Ops must also agree, in values and order, in the attributes that `__props__` does not name:
    equal Ops are computed once, and one may replace the other.

    A user Op may give the lengths of its outputs in a method `infer_shape(node, input_shapes)`: for
    each output a tuple with a length per axis (a variable or an int), or None if only the result tells.
    Older Ops have a parameter `fgraph` before: it is None, for lengths are needed before a graph exists.
    Where `pullback` and `pushforward` speak of None, the methods of a user Op are given variables of
    DisconnectedType, and may return them.
    """

    default_output: int | None = None
    view_map: ClassVar[dict[int, list[int]]] = {}
    destroy_map: dict[int, list[int]] = {}
    itypes: Sequence[Any] | None = None
    otypes: Sequence[Any] | None = None
    """The types of the inputs and outputs, or makers of such variables, of an Op without a `make_node`."""
    differentiates_complex: ClassVar[bool] = False
    """True for an Op of the engine whose pullback is right for complex numbers, too."""
    holds_code: ClassVar[bool] = False
    """True for an Op of the engine that runs a user's code."""
    is_draw: ClassVar[bool] = False
    """True for an Op of which a gradient by a parameter is refused, also if its results are whole numbers."""
    varies: ClassVar[bool] = False
    """True for an Op of the engine whose `perform` may give another result each time."""

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return super().__eq__(other) and (
            is_of_engine(self) or [*unnamed_attributes(self).items()] == [*unnamed_attributes(other).items()]
        )

    __hash__ = ByProps.__hash__

    def make_node(self, *inputs: Any) -> Apply:
        """Return the application of this Op to `inputs`; refuse (TypeError) inputs of wrong types.

        The default takes its types from `itypes` and `otypes`.
        """
        if self.itypes is None or self.otypes is None:
            raise NotImplementedError(
                f"{type(self).__name__} must implement make_node(), or declare itypes and otypes"
            )
        if len(inputs) != len(self.itypes):
            raise TypeError(f"Applying {self}: it takes {len(self.itypes)} inputs, {len(inputs)} were given")
        types = [as_type(item) for item in self.itypes]
        try:
            variables = [type.filter_variable(given) for type, given in zip(types, inputs, strict=True)]
        except TypeError as error:
            raise TypeError(f"Invalid input types for Op {self}: {error}") from error
        return Apply(self, variables, [as_type(item).make_variable() for item in self.otypes])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        """Compute the outputs from the values `inputs`, and put each in element 0 of its storage."""
        raise NotImplementedError(f"{type(self).__name__} must implement perform()")

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        """Return the gradient of a cost for each input, given its gradient for each output.

        A cotangent of None means that the cost does not depend on that output. None in the result means
        that no output depends on that input in a differentiable way. Raise NullGradientError if the Op
        declares no gradient.
        """
        raise NullGradientError(f"Taking a gradient through {self}: it declares none (no pullback)", self)

    def pullback_wanted(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        cotangents: Sequence[Any],
        wanted: Sequence[bool] | None,
    ) -> list[Any]:
        """Return `pullback`; an Op may return None for inputs that are not `wanted`."""
        return self.pullback(inputs, outputs, cotangents)

    def pushforward(self, inputs: Sequence[Any], outputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        """Return the tangent of each output, given those of the inputs (None: the input does not change).

        None in the result means that the output does not change in a differentiable way. NotImplemented,
        the default, makes the caller apply the pullback twice.
        """
        return NotImplemented

    def vectorized(self, node: Apply, inputs: Sequence[Any]) -> Sequence[Any] | None:
        """Return the outputs of `node` for `inputs` of which some have more axes in front: a batch.

        None, the default, makes the caller apply this Op at each place of the batch.
        """
        return None

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Return True for each input and output where the output depends on the input; by default always."""
        return [[True] * len(node.outputs) for _ in node.inputs]

    def key_props(self) -> dict[str, Any]:
        """Return the properties that describe this Op in a cache key, by name; by default all."""
        return self.props_dict()

    def __call__(
        self, *inputs: Any, name: str | None = None, return_list: bool = False, **kwargs: Any
    ) -> Any:
        """Apply this Op; return its output, or the list of its outputs if there are several.

        `name` is the output's; several get `name`_0, `name`_1 and so on.
        """
        node = self.make_node(*inputs, **kwargs)
        if name is not None:
            self._give_name(node, name)
        if return_list:
            return list(node.outputs)
        if self.default_output is not None:
            return node.outputs[self.default_output]
        return node.outputs[0] if len(node.outputs) == 1 else list(node.outputs)

    def _give_name(self, node: Apply, name: str) -> None:
        """Name the output of `node`, or its default one; of several, each with its number behind `name`."""
        if self.default_output is not None or len(node.outputs) == 1:
            node.outputs[self.default_output or 0].name = name
            return
        for number, output in enumerate(node.outputs):
            output.name = f"{name}_{number}"

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
    """Return the attributes that `__props__` does not name: hashables, equal for equal bits, by name."""
    named = op.__props__ or ()
    return {name: exact_or_identity(value) for name, value in attributes(op).items() if name not in named}


def attributes(op: Op) -> dict[str, Any]:
    """Return all attributes of the instance `op`, by name, except those that the engine caches on it."""
    held = {name: value for name, value in vars(op).items() if name not in REMEMBERED}
    cls: Any = type(op)
    for name, slot in _slots(cls):
        try:
            held[name] = slot.__get__(op)
        except AttributeError:  # an empty slot
            continue
    return held


@lru_cache(maxsize=1024)
def _slots(cls: type) -> tuple[tuple[str, MemberDescriptorType], ...]:
    """Return the slots of `cls` and its bases by name; a hidden slot is named with its class."""
    found: dict[str, MemberDescriptorType] = {}
    for base in cls.__mro__:
        for name, item in vars(base).items():
            if isinstance(item, MemberDescriptorType):
                found[f"{name} of {base.__qualname__}" if name in found else name] = item
    return tuple(found.items())


def as_type(item: Any) -> Any:
    """Return `item` if it is a type, or the type of the variables that it makes."""
    return item if isinstance(item, Type) else item().type


if not TYPE_CHECKING:
    __getattr__ = names_elsewhere(__name__)
