"""The parts of frozen graphs: inputs, constants, nodes and their outputs, interned in the process.

A node is interned by its Op, inputs, output types and, if the order of execution is part of the graph, its
position; a constant by its type and all its bits; an input (`NominalVariable`) by its type and number. The
tables keep nothing alive. The idea is hash-consing (Filliatre and Conchon, "Type-safe modular
hash-consing", 2006).

The class of a frozen variable also derives from the variable class of its type: it has its attributes and
operators.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NoReturn, cast

from cachegraph.pickling.rebuilding import rebuilds_pickled
from engine.graph.apply import Apply
from engine.graph.interning import InternedValues, InternTable
from engine.graph.op import Op
from engine.graph.traversal import io_toposort
from engine.graph.types import Type
from engine.graph.variables import Constant, Variable

_nominals: InternTable[NominalVariable] = InternTable()
_constants: InternTable[FrozenConstant] = InternTable()
_nodes: InternTable[FrozenApply] = InternTable()
_classes: dict[tuple[type, type], type] = {}
_output_classes: dict[type, Any] = {}
canonical_op: InternedValues[Op] = InternedValues()
canonical_type: InternedValues[Type] = InternedValues()

_new = object.__new__
_set = object.__setattr__


class Immutable:
    """Base class of objects that refuse every assignment; they are their own copies."""

    __slots__ = ()

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(
            f"Setting {name} of a {type(self).__name__}: frozen graphs do not change; unfreeze() it"
        )

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"Deleting {name} of a {type(self).__name__}: frozen graphs do not change")

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: object) -> Any:
        return self


class _NoTag(Immutable):
    """The tag of every frozen variable. All graphs share these variables, so they carry no annotations."""

    __slots__ = ()


_NO_TAG = _NoTag()


class _FrozenVariable(Immutable, Variable):
    """Base class of frozen variables. They have no names, which are not part of a graph."""

    __slots__ = ()
    name = None
    _is_noted = True  # no function has them as inputs, so nothing is to be noted

    @property
    def tag(self) -> Any:
        """An empty namespace: frozen variables have no annotations."""
        return _NO_TAG

    @property
    def auto_name(self) -> str:
        """The text of the variable: all graphs share it, so it has no number of its own."""
        return str(self)


class NominalVariable(_FrozenVariable):
    """Input number `id` of a frozen graph. The same id and type give the same object."""

    __slots__ = ("id",)
    is_atomic = True
    id: int

    def __new__(cls, id: int, type: Type) -> NominalVariable:
        key = (id, canonical_type(type))
        found = _nominals.get(key)
        if found is not None:
            return found
        new: NominalVariable = _new_root(_class_for(NominalVariable, type.variable_type), key[1])
        _set(new, "id", id)
        return _nominals.add(key, new)

    def __init__(self, id: int, type: Type) -> None:
        """Do nothing: `__new__`, which may return an existing object, sets everything."""

    def clone(self, name: str | None = None) -> Variable:
        """Return this input, of which there is one only; for a `name`, a variable of its type."""
        return self if name is None else self.type.make_variable(name)

    def equals(self, other: object) -> bool:
        """Return True if `other` is this input: the same number and type give the same object."""
        return self is other

    def signature(self) -> tuple[Type, int]:
        """Return the type and the number."""
        return self.type, self.id

    def __reduce__(self) -> tuple[Any, ...]:
        return NominalVariable, (self.id, self.type)

    def __str__(self) -> str:
        return f"i{self.id}"

    def __repr__(self) -> str:
        return f"NominalVariable({self.id}, {self.type!r})"


class FrozenConstant(_FrozenVariable, Constant):
    """A constant of a frozen graph. The same type and bits give the same object."""

    __slots__ = ()

    def __new__(cls, type: Type, data: Any) -> FrozenConstant:
        key: tuple[Any, ...] = (canonical_type(type), *type.data_key(data))
        found = _constants.get(key)
        while found is not None and not type.same_data(found.data, data):
            key = (*key, None)  # other data with the same digest: probe the next key
            found = _constants.get(key)
        if found is not None:
            return found
        new: FrozenConstant = _new_root(_class_for(FrozenConstant, type.constant_type), key[0])
        # Through the type's own class, which may copy data that others could change, as that of tensors does.
        _set(new, "data", type.constant_type(type, data).data)
        return _constants.add(key, new)

    def __init__(self, type: Type, data: Any) -> None:
        """Do nothing: `__new__`, which may return an existing object, sets everything."""

    def clone(self, name: str | None = None) -> Constant:
        """Return a mutable constant of the same type and data."""
        return cast(Constant, self.type.constant_type(self.type, self.data, name))

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenConstant, (self.type, self.data)


class FrozenVariable(_FrozenVariable):
    """Output number `index` of a frozen node."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return _load_variable, describe((), (self,))


class FrozenApply(Immutable, Apply):
    """A node of a frozen graph: `inputs` and `outputs` are tuples. Equal nodes are the same object.

    `position` is its place in the order of execution if that is part of the graph, else None; nodes at
    different positions differ. Refuses (TypeError) inputs that are not frozen.
    """

    __slots__ = ("position",)
    inputs: tuple[Variable, ...]
    outputs: tuple[Variable, ...]
    position: int | None

    def __new__(
        cls, op: Op, inputs: Sequence[Variable], output_types: Iterable[Type], position: int | None = None
    ) -> FrozenApply:
        for variable in inputs:
            if not isinstance(variable, _FrozenVariable):
                raise TypeError(
                    f"Making a frozen node of {op}: its input {variable} is not frozen; freeze it first"
                )
        return intern_node(
            canonical_op(op), tuple(inputs), tuple([canonical_type(type) for type in output_types]), position
        )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing: `__new__`, which may return an existing object, sets everything."""

    def __reduce__(self) -> tuple[Any, ...]:
        types = tuple([variable.type for variable in self.outputs])
        return _load_node, (self.op, types, self.position, *describe((), self.inputs))


def intern_node(
    op: Op, inputs: tuple[Variable, ...], output_types: tuple[Type, ...], position: int | None
) -> FrozenApply:
    """Return the node of a canonical Op and canonical output types on frozen inputs, without checks."""
    # By id: a key must keep nothing alive. The node keeps these objects alive, so the ids stay valid.
    key = (id(op), position, *map(id, inputs), None, *map(id, output_types))
    found = _nodes.get(key)
    if found is not None:
        return found
    node: FrozenApply = _new(FrozenApply)
    outputs = []
    for index, type in enumerate(output_types):
        cls = _output_classes.get(type.variable_type) or _output_class(type.variable_type)
        output: FrozenVariable = _new(cls)
        _set(output, "type", type)
        _set(output, "owner", node)
        _set(output, "index", index)
        outputs.append(output)
    _set(node, "op", op)
    _set(node, "inputs", inputs)
    _set(node, "outputs", tuple(outputs))
    _set(node, "position", position)
    return _nodes.add(key, node)


def _output_class(base: type) -> Any:
    found = _output_classes[base] = _class_for(FrozenVariable, base)
    return found


def _new_root(cls: type, type: Type) -> Any:
    root: Any = _new(cls)
    _set(root, "type", type)
    _set(root, "owner", None)
    _set(root, "index", None)
    return root


def _class_for(frozen: type, base: type) -> Any:
    """Return a subclass of `frozen` and of `base`, the variable class of a type."""
    found = _classes.get((frozen, base))
    if found is None:
        body = {"__slots__": (), "__module__": __name__, "__doc__": frozen.__doc__}
        made = frozen if issubclass(frozen, base) else type(frozen.__name__, (frozen, base), body)
        found = _classes.setdefault((frozen, base), made)
    return found


Description = tuple[list[tuple[int, int]], list[tuple[int, Any]], list[Op], list[Type], list[int], list[int]]


def describe(inputs: Iterable[NominalVariable], outputs: Sequence[Variable]) -> Description:
    """Return frozen variables and all that computes them as flat lists: pickling these does not recurse.

    The lists are: the inputs (id, type), `inputs` first; the constants (type, data); the Ops; the types;
    the nodes; and `outputs`. A type or Op is written as its number in its list, a variable as its number
    among the inputs, the constants and the outputs of all nodes, in this order. A node is: Op, position + 1
    or 0, number of inputs, inputs, number of outputs, their types.
    """
    order = io_toposort((), outputs)
    every = dict.fromkeys(inputs, 0) | dict.fromkeys([v for node in order for v in node.inputs], 0)
    every |= dict.fromkeys(outputs, 0)
    nominals = [v for v in every if isinstance(v, NominalVariable)]
    constants = [v for v in every if isinstance(v, FrozenConstant)]
    number: dict[Variable, int] = {v: n for n, v in enumerate([*nominals, *constants])}
    ops: dict[Op, int] = {}
    types: dict[Type, int] = {}

    def type_number(type: Type) -> int:
        return types.setdefault(type, len(types))

    rows: list[int] = []
    for node in order:
        position = node.position  # type: ignore[attr-defined]
        rows += (ops.setdefault(node.op, len(ops)), 0 if position is None else position + 1, len(node.inputs))
        rows += [number[v] for v in node.inputs]
        rows.append(len(node.outputs))
        for output in node.outputs:
            number[output] = len(number)
            rows.append(type_number(output.type))
    described = (
        [(v.id, type_number(v.type)) for v in nominals],
        [(type_number(v.type), v.data) for v in constants],
    )
    return *described, list(ops), list(types), rows, [number[v] for v in outputs]


def load(
    nominals: list[tuple[int, int]],
    constants: list[tuple[int, Any]],
    ops: list[Op],
    types: list[Type],
    rows: list[int],
    outputs: list[int],
) -> tuple[list[Variable], list[Variable]]:
    """Return the inputs and outputs that `describe` wrote: the same objects if they are still alive."""
    ops = [canonical_op(op) for op in ops]
    types = [canonical_type(type) for type in types]
    inputs: list[Variable] = [NominalVariable(id, types[number]) for id, number in nominals]
    table: list[Variable] = [*inputs, *(FrozenConstant(types[number], data) for number, data in constants)]
    following = iter(rows)
    for op in following:
        position = next(following) - 1
        arguments = tuple([table[next(following)] for _ in range(next(following))])
        output_types = tuple([types[next(following)] for _ in range(next(following))])
        table += intern_node(ops[op], arguments, output_types, None if position < 0 else position).outputs
    return inputs, [table[number] for number in outputs]


@rebuilds_pickled
def _load_variable(*description: Any) -> Variable:
    return load(*description)[1][0]


@rebuilds_pickled
def _load_node(op: Op, output_types: Sequence[Type], position: int | None, *description: Any) -> FrozenApply:
    return FrozenApply(op, load(*description)[1], output_types, position)
