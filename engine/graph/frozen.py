"""Frozen graphs: immutable and interned, so that equal graphs are the same objects.

A frozen node is found by its Op, inputs and output types; a constant by its type and all its bits; an input
(`NominalVariable`) by its type and position. The tables hold nothing alive. The idea is hash-consing
(Filliatre and Conchon, "Type-safe modular hash-consing", 2006).
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from threading import Lock
from typing import Any, NoReturn, cast

from engine.errors import MissingInputError
from engine.graph.apply import Apply
from engine.graph.fgraph import FunctionGraph
from engine.graph.op import Op
from engine.graph.traversal import io_toposort
from engine.graph.types import Type
from engine.graph.variables import Constant, Variable

_lock = Lock()
_nodes: weakref.WeakValueDictionary[tuple[Any, ...], FrozenApply] = weakref.WeakValueDictionary()
_constants: weakref.WeakValueDictionary[tuple[Any, ...], FrozenConstant] = weakref.WeakValueDictionary()
_nominals: weakref.WeakValueDictionary[tuple[int, Type], NominalVariable] = weakref.WeakValueDictionary()


class _Immutable:
    """Refuses every assignment; the attributes are set through `object.__setattr__` when it is made."""

    __slots__ = ()

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(
            f"Setting {name} of a {type(self).__name__}: frozen graphs do not change; unfreeze() it"
        )

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"Deleting {name} of a {type(self).__name__}: frozen graphs do not change")


def _set(item: Any, **values: Any) -> None:
    for name, value in values.items():
        object.__setattr__(item, name, value)


class NominalVariable(_Immutable, Variable):
    """Input number `id` of a frozen graph. The same id and type give the same object."""

    __slots__ = ("id",)
    id: int

    def __new__(cls, id: int, type: Type) -> NominalVariable:
        found = _nominals.get((id, type))
        if found is not None:
            return found
        new = object.__new__(cls)
        _set(new, id=id, type=type, owner=None, index=None, name=None)
        with _lock:
            return _nominals.setdefault((id, type), new)

    def __init__(self, id: int, type: Type) -> None:
        """Everything is set by `__new__`, which may give an object made earlier."""

    def __reduce__(self) -> tuple[Any, ...]:
        return NominalVariable, (self.id, self.type)

    def __str__(self) -> str:
        return f"*{self.id}-<{self.type}>"

    __repr__ = __str__


class FrozenConstant(_Immutable, Constant):
    """A constant of a frozen graph. The same type and bits give the same object."""

    __slots__ = ()

    def __new__(cls, type: Type, data: Any) -> FrozenConstant:
        key = (type, *type.data_key(data))
        found = _constants.get(key)
        if found is not None and type.same_data(found.data, data):
            return found
        new = object.__new__(cls)
        _set(new, type=type, owner=None, index=None, name=None, data=data)
        if found is not None:
            return new
        with _lock:
            return _constants.setdefault(key, new)

    def __init__(self, type: Type, data: Any) -> None:
        """Everything is set by `__new__`, which may give an object made earlier."""

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenConstant, (self.type, self.data)


class FrozenVariable(_Immutable, Variable):
    """Output number `index` of a frozen node."""

    __slots__ = ()

    def __init__(self, type: Type, owner: FrozenApply, index: int) -> None:
        _set(self, type=type, owner=owner, index=index, name=None)

    def __reduce__(self) -> tuple[Any, ...]:
        graph = FrozenFunctionGraph((), (self,))
        return _output_of, (*graph.__reduce__()[1],)


def _output_of(*state: Any) -> Variable:
    return _from_tables(*state).outputs[0]


class FrozenApply(_Immutable, Apply):
    """A node of a frozen graph: `inputs` and `outputs` are tuples. Equal nodes are the same object."""

    __slots__ = ()
    inputs: tuple[Variable, ...]
    outputs: tuple[Variable, ...]

    def __new__(cls, op: Op, inputs: tuple[Variable, ...], output_types: tuple[Type, ...]) -> FrozenApply:
        # By id: a key must not keep the inputs alive. The node does, so while it lives the ids are theirs.
        key = (op, tuple([id(variable) for variable in inputs]), output_types)
        found = _nodes.get(key)
        if found is not None:
            return found
        new = object.__new__(cls)
        outputs = tuple(FrozenVariable(type, new, index) for index, type in enumerate(output_types))
        _set(new, op=op, inputs=inputs, outputs=outputs)
        with _lock:
            return _nodes.setdefault(key, new)

    def __init__(self, op: Op, inputs: tuple[Variable, ...], output_types: tuple[Type, ...]) -> None:
        """Everything is set by `__new__`, which may give an object made earlier."""

    def __reduce__(self) -> tuple[Any, ...]:
        graph = FrozenFunctionGraph((), self.outputs[:1])
        return _owner_of, (*graph.__reduce__()[1],)


def _owner_of(*state: Any) -> Apply:
    owner = _from_tables(*state).outputs[0].owner
    assert owner is not None
    return owner


class FrozenFunctionGraph:
    """An immutable graph between `inputs` (nominal) and `outputs`; equal if the outputs are the same objects."""

    __slots__ = ("__weakref__", "_encoding", "_nodes", "inputs", "outputs")

    def __init__(self, inputs: Iterable[NominalVariable], outputs: Iterable[Variable]) -> None:
        self.inputs: tuple[NominalVariable, ...] = tuple(inputs)
        self.outputs: tuple[Variable, ...] = tuple(outputs)
        self._nodes: tuple[FrozenApply, ...] | None = None

    @classmethod
    def from_io(cls, inputs: Sequence[Variable], outputs: Sequence[Variable]) -> FrozenFunctionGraph:
        """The graph that computes `outputs` from `inputs`, frozen.

        Refuses (MissingInputError) a root that is neither an input nor a constant.
        """
        nominals = [NominalVariable(position, variable.type) for position, variable in enumerate(inputs)]
        frozen: dict[Variable, Variable] = dict(zip(inputs, nominals, strict=True))
        for node in io_toposort(inputs, outputs):
            _freeze_node(node, frozen)
        return cls(nominals, [_freeze_variable(variable, frozen, "an output") for variable in outputs])

    @property
    def nodes(self) -> tuple[FrozenApply, ...]:
        """The nodes, each after those it needs: depth first from the outputs, inputs from left to right."""
        if self._nodes is None:
            self._nodes = cast(tuple[FrozenApply, ...], tuple(io_toposort(self.inputs, self.outputs)))
        return self._nodes

    def toposort(self) -> list[Apply]:
        """The nodes, as a list."""
        return list(self.nodes)

    def unfreeze(self) -> FunctionGraph:
        """A mutable graph of fresh nodes, equal in structure."""
        inputs = [nominal.type.make_variable() for nominal in self.inputs]
        return FunctionGraph(inputs, self.bind(inputs), clone=False)

    def bind(self, inputs: Sequence[Variable]) -> list[Variable]:
        """Fresh mutable variables that compute the outputs from `inputs`.

        Refuses (ValueError, TypeError) another number of inputs, or inputs of other types.
        """
        if len(inputs) != len(self.inputs):
            raise ValueError(
                f"Binding a graph: {len(self.inputs)} inputs are needed, {len(inputs)} were given"
            )
        thawed: dict[Variable, Variable] = {}
        for nominal, variable in zip(self.inputs, inputs, strict=True):
            thawed[nominal] = nominal.type.filter_variable(variable)
        for node in self.nodes:
            arguments = [_thaw_variable(variable, thawed) for variable in node.inputs]
            outputs = [output.type.make_variable() for output in node.outputs]
            thawed.update(zip(node.outputs, Apply(node.op, arguments, outputs).outputs, strict=True))
        return [_thaw_variable(variable, thawed) for variable in self.outputs]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FrozenFunctionGraph):
            return NotImplemented
        return self.inputs == other.inputs and self.outputs == other.outputs

    def __hash__(self) -> int:
        return hash((self.inputs, self.outputs))

    def __reduce__(self) -> tuple[Any, ...]:
        return _from_tables, _to_tables(self)

    def __repr__(self) -> str:
        return f"FrozenFunctionGraph({len(self.inputs)} inputs, {len(self.nodes)} nodes, {len(self.outputs)} outputs)"


def _freeze_node(node: Apply, frozen: dict[Variable, Variable]) -> None:
    inputs = tuple([frozen.get(v) or _freeze_variable(v, frozen, node) for v in node.inputs])
    result = FrozenApply(node.op, inputs, tuple([output.type for output in node.outputs]))
    for old, new in zip(node.outputs, result.outputs, strict=True):
        frozen.setdefault(old, new)


def _freeze_variable(variable: Variable, frozen: dict[Variable, Variable], user: object) -> Variable:
    found = frozen.get(variable)
    if found is None:
        if not isinstance(variable, Constant):
            raise MissingInputError(
                f"Freezing a graph: {variable} of type {variable.type}, used by {user}, is neither an input, a "
                "constant nor computed; add it to the inputs, or give it a value with givens",
                variable,
            )
        found = frozen[variable] = FrozenConstant(variable.type, variable.data)
    return found


def _thaw_variable(variable: Variable, thawed: dict[Variable, Variable]) -> Variable:
    found = thawed.get(variable)
    if found is None:
        assert isinstance(variable, Constant)
        found = thawed[variable] = variable.type.make_constant(variable.data)
    return found


def _to_tables(graph: FrozenFunctionGraph) -> tuple[Any, ...]:
    """The graph as flat tables, so that pickling does not recurse: inputs, constants, nodes, outputs.

    A variable is (0, input), (1, constant) or (2 + node, output).
    """
    nodes = graph.nodes
    position: dict[Variable, tuple[int, int]] = {}
    roots: list[NominalVariable] = []
    constants: list[tuple[Type, Any]] = []
    every = [v for node in nodes for v in node.inputs] + list(graph.outputs)
    for variable in [*graph.inputs, *(v for v in every if v.owner is None)]:
        if variable in position:
            continue
        if isinstance(variable, NominalVariable):
            position[variable] = (0, len(roots))
            roots.append(variable)
        else:
            position[variable] = (1, len(constants))
            constants.append((variable.type, cast(Constant, variable).data))
    for index, node in enumerate(nodes):
        position.update({output: (2 + index, number) for number, output in enumerate(node.outputs)})
    rows = [(n.op, tuple(position[v] for v in n.inputs), tuple(v.type for v in n.outputs)) for n in nodes]
    identified = [(root.id, root.type) for root in roots]
    return len(graph.inputs), identified, constants, rows, [position[v] for v in graph.outputs]


def _from_tables(
    n_inputs: int,
    roots: list[tuple[int, Type]],
    constants: list[tuple[Type, Any]],
    rows: list[tuple[Op, tuple[tuple[int, int], ...], tuple[Type, ...]]],
    outputs: list[tuple[int, int]],
) -> FrozenFunctionGraph:
    """The interned graph that `_to_tables` described."""
    nominals = [NominalVariable(id, type) for id, type in roots]
    table: list[Sequence[Variable]] = [nominals, [FrozenConstant(type, data) for type, data in constants]]
    for op, inputs, types in rows:
        table.append(FrozenApply(op, tuple([table[i][j] for i, j in inputs]), types).outputs)
    return FrozenFunctionGraph(nominals[:n_inputs], [table[i][j] for i, j in outputs])
