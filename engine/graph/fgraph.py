"""The two forms of a graph between inputs and outputs; each makes the other.

A `FunctionGraph` is mutable and reports its changes to Features. A `FrozenFunctionGraph` is immutable and
interned: equal graphs consist of the same objects. Its equal nodes are one node (`dedup_nodes=True`), or
are told apart by their positions in the order of execution (`dedup_nodes=False`). Graphs with Ops that
overwrite inputs need positions: two equal nodes have two buffers, and a node may overwrite one of them
while others still read the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Literal, TypeVar, cast, overload

from cachegraph.pickling.rebuilding import rebuilds_pickled
from engine.errors import MissingInputError
from engine.graph.apply import Apply
from engine.graph.editable import EditableGraph
from engine.graph.expressions import as_string
from engine.graph.feature import Feature
from engine.graph.flat import flatten, restore
from engine.graph.frozen_nodes import (
    FrozenApply,
    FrozenConstant,
    FrozenVariable,
    Immutable,
    NominalVariable,
    canonical_op,
    canonical_type,
    describe,
    intern_node,
    load,
)
from engine.graph.interning import InternTable
from engine.graph.op import Op
from engine.graph.replace import Memo, clone_get_equiv
from engine.graph.tables import Client, Output
from engine.graph.traversal import graph_inputs, io_toposort
from engine.graph.types import Type
from engine.graph.variables import Constant, Variable

__all__ = ["Client", "FrozenFunctionGraph", "FunctionGraph", "Output"]

T = TypeVar("T")

_graphs: InternTable[FrozenFunctionGraph] = InternTable()


class FunctionGraph(EditableGraph):
    """A mutable graph: the nodes between `inputs` and `outputs`, with every variable's clients.

    With `clone` (the default) the graph owns copies of the given variables. It refuses (MissingInputError)
    outputs that need a variable which is neither an input, atomic (`Variable.is_atomic`) nor computed. It
    attaches `features` and, unless these provide its names, a `ReplaceValidate`. `update_mapping` says, by
    the number of an output, which input has its value in the next call of a function; None: nobody said.

    Code outside may read the tables (see `GraphTables`), and changes them through methods only.
    """

    update_mapping: dict[int, int] | None = None

    def __init__(
        self,
        inputs: Sequence[Variable] | None = None,
        outputs: Sequence[Variable] | None = None,
        features: Sequence[Feature] = (),
        clone: bool = True,
        memo: Memo | None = None,
        copy_inputs: bool = True,
        copy_orphans: bool = False,
        update_mapping: dict[int, int] | None = None,
    ) -> None:
        if outputs is None:
            raise ValueError("Making a graph: No outputs specified; give the variables that it computes")
        if inputs is None:
            inputs = [v for v in graph_inputs(outputs) if not v.is_atomic]
        if clone:
            memo = clone_get_equiv(inputs, outputs, copy_inputs, copy_orphans, memo)
            inputs = [cast(Variable, memo[v]) for v in inputs]
            outputs = [cast(Variable, memo[v]) for v in outputs]
        self._fill(inputs, outputs, features)
        if update_mapping is not None:
            self.update_mapping = update_mapping

    def _fill(
        self, inputs: Sequence[Variable], outputs: Sequence[Variable], features: Sequence[Feature]
    ) -> None:
        from engine.graph.features.replace_validate import ReplaceValidate  # a hit has no use for it

        self._make_empty()
        for variable in inputs:
            self.add_input(variable)
        for variable in outputs:
            self.add_output(variable, reason="init")
        for feature in features:
            self.attach_feature(feature)
        if not any(name in self._provided for name in ReplaceValidate.provides):
            self.attach_feature(ReplaceValidate())

    def clone(self, check_integrity: bool = True) -> FunctionGraph:
        """Return a copy with the same constants, and with clones of the Features."""
        return self.clone_get_equiv(check_integrity)[0]

    def clone_get_equiv(
        self, check_integrity: bool = True, attach_feature: bool = True
    ) -> tuple[FunctionGraph, Memo]:
        """Return a copy, and the map from the variables and nodes of this graph to those of the copy."""
        memo: Memo = {}
        copy = FunctionGraph(self.inputs, self.outputs, memo=memo, update_mapping=self.update_mapping)
        if check_integrity:
            copy.check_integrity()
        if attach_feature:
            for feature in self._features:
                copy.attach_feature(feature.clone())
        return copy, memo

    def freeze(self) -> FrozenFunctionGraph:
        """Return the immutable form of this graph, with the order of its nodes if Features require one."""
        if not self.listeners("orderings") or not self.orderings():
            return FrozenFunctionGraph.from_io(self.inputs, self.outputs)
        return FrozenFunctionGraph.from_toposort(self.inputs, self.outputs, self.toposort())

    def dprint(self, **options: Any) -> Any:
        """Print this graph; `options` are those of `engine.dprint`."""
        return import_module("engine.printing").dprint(self, **options)

    def __getstate__(self) -> dict[str, Any]:
        mapping = self.update_mapping
        return flatten(self) if mapping is None else {**flatten(self), "update_mapping": mapping}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._make_empty()
        if state.get("update_mapping") is not None:
            self.update_mapping = state["update_mapping"]
        restore(self, state)

    def _repr_html_(self) -> str:
        from engine.graph.drawing.svg import to_html

        return to_html(self)

    def _repr_svg_(self) -> str:
        from engine.graph.drawing.svg import to_svg

        return to_svg(self)

    def __repr__(self) -> str:
        return f"FunctionGraph({', '.join(as_string(self.inputs, self.outputs))})"


class FrozenFunctionGraph(Immutable):
    """An immutable graph from `inputs` to `outputs`; the same inputs and outputs give the same object.

    Two graphs are equal if and only if their inputs and outputs are the same objects. The constructor
    refuses (TypeError) parts that are not frozen: `from_io` freezes a graph.
    """

    __slots__ = ("__weakref__", "_computed", "inputs", "outputs")
    inputs: tuple[NominalVariable, ...]
    outputs: tuple[Variable, ...]
    _computed: dict[str, Any]

    def __new__(
        cls, inputs: Iterable[NominalVariable] = (), outputs: Iterable[Variable] = ()
    ) -> FrozenFunctionGraph:
        inputs, outputs = tuple(inputs), tuple(outputs)
        key = (*map(id, inputs), None, *map(id, outputs))
        found = _graphs.get(key)
        if found is not None:
            return found
        for item in inputs:
            if not isinstance(item, NominalVariable):
                raise TypeError(f"Making a frozen graph: input {item} is no NominalVariable; use from_io()")
        for variable in outputs:
            if not isinstance(variable, FrozenVariable | FrozenConstant | NominalVariable):
                raise TypeError(f"Making a frozen graph: output {variable} is not frozen; use from_io()")
        new = object.__new__(cls)
        for name, value in (("inputs", inputs), ("outputs", outputs), ("_computed", {})):
            object.__setattr__(new, name, value)
        return _graphs.add(key, new)

    @classmethod
    def from_io(
        cls,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        dedup_nodes: bool | None = None,
        replace_op: Callable[[Op], Op] | None = None,
    ) -> FrozenFunctionGraph:
        """Return the graph that computes `outputs` from `inputs`, with `replace_op(op)` in place of each Op.

        With `dedup_nodes` equal nodes become one; without, nodes keep their positions in the order that
        structure fixes. None means True unless an Op of the graph overwrites an input. Refuse
        (MissingInputError) a root that is neither an input nor a constant.
        """
        order = io_toposort(inputs, outputs)
        if dedup_nodes is None:
            destroyers = [node.op for node in order if node.op.destroy_map]
            dedup_nodes = not any((replace_op(op) if replace_op else op).destroy_map for op in destroyers)
        return cls._freeze(inputs, outputs, order, pinned=not dedup_nodes, replace_op=replace_op)

    @classmethod
    def from_toposort(
        cls, inputs: Sequence[Variable], outputs: Sequence[Variable], toposort: Sequence[Apply]
    ) -> FrozenFunctionGraph:
        """Return the graph that computes `outputs` from `inputs` in the order `toposort`.

        The order becomes part of its identity. Nodes that the outputs do not need are left out. Refuse
        (ValueError) an order that lacks a needed node, or has it before one that it needs.
        """
        needed = set(io_toposort(inputs, outputs))
        order = [node for node in toposort if node in needed]
        ready = set(inputs)
        for node in order:
            for variable in node.inputs:
                if variable.owner is not None and variable not in ready:
                    raise ValueError(
                        f"Freezing a graph in a given order: {node} comes before {variable.owner}"
                    )
            ready.update(node.outputs)
        if len(order) != len(needed):
            raise ValueError(
                f"Freezing a graph in a given order: it has {len(order)} of the {len(needed)} nodes that "
                "are needed"
            )
        return cls._freeze(inputs, outputs, order, pinned=True)

    @classmethod
    def from_structural_inputs(
        cls, inputs: Sequence[Variable], outputs: Sequence[Variable]
    ) -> FrozenFunctionGraph:
        """Return the graph from `inputs` to `outputs`; inputs may be computed.

        Every part equal to an input becomes that input. The computation of an input is recognized in
        `outputs` by structure, not by identity. Inputs that `outputs` do not contain are unused. Refuse
        (MissingInputError) outputs that need more than the inputs.
        """
        roots = [v for v in graph_inputs([*inputs, *outputs]) if not isinstance(v, Constant)]
        found = cls.from_io(roots, [*inputs, *outputs], dedup_nodes=True).outputs
        return cls.from_io(found[: len(inputs)], found[len(inputs) :], dedup_nodes=True)

    @classmethod
    def _freeze(
        cls,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        order: Sequence[Apply],
        pinned: bool,
        replace_op: Callable[[Op], Op] | None = None,
    ) -> FrozenFunctionGraph:
        nominals = [NominalVariable(position, variable.type) for position, variable in enumerate(inputs)]
        frozen: dict[Variable, Variable] = dict(zip(inputs, nominals, strict=True))
        nodes = _freeze_nodes(order, frozen, pinned, replace_op)
        graph = cls(nominals, [_freeze_variable(variable, frozen, "an output") for variable in outputs])
        # Each node at its first occurrence: the order that a traversal of the new graph would find.
        graph._computed.setdefault("nodes", nodes)
        return graph

    @property
    def nodes(self) -> tuple[FrozenApply, ...]:
        """The nodes, each after those it needs.

        The order is the given one if it is part of the graph, else depth first from the outputs, inputs
        from left to right.
        """
        return self.computed("nodes", _nodes_of)

    def toposort(self) -> tuple[FrozenApply, ...]:
        """Return `nodes`."""
        return self.nodes

    @property
    def apply_nodes(self) -> frozenset[FrozenApply]:
        """The nodes, as a set."""
        return self.computed("apply_nodes", lambda graph: frozenset(graph.nodes))

    @property
    def variables(self) -> frozenset[Variable]:
        """The inputs, the constants and the outputs of all nodes."""
        return self.computed("variables", lambda graph: frozenset(graph.clients))

    @property
    def clients(self) -> Mapping[Variable, tuple[tuple[FrozenApply, int], ...]]:
        """The uses of each variable: pairs of a node and the position among its inputs.

        An output is used by a node of the Op `Output`.
        """
        return self.computed("clients", _clients_of)

    def computed(self, name: str, compute: Callable[[FrozenFunctionGraph], T]) -> T:
        """Return `compute(self)`, computed once and kept under `name` as long as the graph lives."""
        if name not in self._computed:
            self._computed[name] = compute(self)
        return cast(T, self._computed[name])

    @overload
    def unfreeze(
        self, *, return_memo: Literal[False] = ..., inputs: Sequence[Variable] | None = ...
    ) -> FunctionGraph: ...
    @overload
    def unfreeze(
        self, *, return_memo: Literal[True], inputs: Sequence[Variable] | None = ...
    ) -> tuple[FunctionGraph, Memo]: ...
    def unfreeze(
        self, *, return_memo: bool = False, inputs: Sequence[Variable] | None = None
    ) -> FunctionGraph | tuple[FunctionGraph, Memo]:
        """Return a mutable graph, on `inputs` or fresh ones, with one fresh node for each node of this graph.

        If a node overwrites an input, the new graph gets a DestroyHandler, which gives it an order. With
        `return_memo` return also the map from the parts of this graph to those of the new one.
        """
        from engine.graph.features.destroy import DestroyHandler  # a hit has no use for it

        given = [v.type.make_variable() for v in self.inputs] if inputs is None else list(inputs)
        outputs, memo = self.bind(given, return_memo=True)
        features = [DestroyHandler()] if any(node.op.destroy_map for node in self.nodes) else []
        fgraph = FunctionGraph.__new__(FunctionGraph)
        fgraph._fill(given, outputs, features)
        return (fgraph, memo) if return_memo else fgraph

    @overload
    def bind(
        self, replace: Sequence[Variable] | Mapping[Variable, Variable], *, return_memo: Literal[False] = ...
    ) -> list[Variable]: ...
    @overload
    def bind(
        self, replace: Sequence[Variable] | Mapping[Variable, Variable], *, return_memo: Literal[True]
    ) -> tuple[list[Variable], Memo]: ...
    def bind(
        self, replace: Sequence[Variable] | Mapping[Variable, Variable], *, return_memo: bool = False
    ) -> list[Variable] | tuple[list[Variable], Memo]:
        """Return fresh mutable variables that compute the outputs from `replace`.

        `replace` has one variable for each input, or maps frozen variables (inputs or computed ones) to
        variables. With `return_memo` return also the map from the parts of this graph to the new ones.
        Refuse (ValueError) a wrong number of variables, (TypeError) variables of other types and (KeyError)
        a map without an input in use.
        """
        if not isinstance(replace, Mapping):
            if len(replace) != len(self.inputs):
                raise ValueError(
                    f"Binding a graph: {len(self.inputs)} inputs are needed, {len(replace)} were given"
                )
            replace = dict(zip(self.inputs, replace, strict=True))
        memo: Memo = {old: old.type.filter_variable(new) for old, new in replace.items()}
        for node in self.nodes:
            arguments = [memo[v] if v in memo else _thaw(v, memo) for v in node.inputs]
            outputs = [output.type.make_variable() for output in node.outputs]
            memo[node] = Apply(node.op, arguments, outputs)  # type: ignore[arg-type]
            for old, new in zip(node.outputs, outputs, strict=True):
                memo.setdefault(old, new)
        found = [memo[v] if v in memo else _thaw(v, memo) for v in self.outputs]
        return (found, memo) if return_memo else found  # type: ignore[return-value]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FrozenFunctionGraph):
            return NotImplemented
        return self.inputs == other.inputs and self.outputs == other.outputs

    def __hash__(self) -> int:
        return hash((self.inputs, self.outputs))

    def __reduce__(self) -> tuple[Any, ...]:
        return _load_graph, (len(self.inputs), *describe(self.inputs, self.outputs))

    def _repr_html_(self) -> str:
        from engine.graph.drawing.svg import to_html

        return to_html(self)

    def _repr_svg_(self) -> str:
        from engine.graph.drawing.svg import to_svg

        return to_svg(self)

    def __repr__(self) -> str:
        counts = f"{len(self.inputs)} inputs, {len(self.nodes)} nodes, {len(self.outputs)} outputs"
        return f"FrozenFunctionGraph({counts})"


@rebuilds_pickled
def _load_graph(n_inputs: int, *description: Any) -> FrozenFunctionGraph:
    nominals, outputs = load(*description)
    return FrozenFunctionGraph(cast(list[NominalVariable], nominals[:n_inputs]), outputs)


def _freeze_nodes(
    order: Sequence[Apply],
    frozen: dict[Variable, Variable],
    pinned: bool,
    replace_op: Callable[[Op], Op] | None,
) -> tuple[FrozenApply, ...]:
    """Add to `frozen` the frozen form of each output of the nodes of `order`; return the frozen nodes."""
    nodes: dict[FrozenApply, None] = {}
    # By id: most nodes share their Op and types with others, and an id hashes faster than the object.
    ops: dict[int, Op] = {}
    types: dict[int, Type] = {}
    for place, node in enumerate(order):
        op = ops.get(id(node.op))
        if op is None:
            op = ops[id(node.op)] = canonical_op(replace_op(node.op) if replace_op else node.op)
        inputs = tuple([frozen[v] if v in frozen else _freeze_variable(v, frozen, node) for v in node.inputs])
        output_types = tuple([types.get(id(v.type)) or _freeze_type(v.type, types) for v in node.outputs])
        result = intern_node(op, inputs, output_types, place if pinned else None)
        for old, new in zip(node.outputs, result.outputs, strict=True):
            if old not in frozen:
                frozen[old] = new
        nodes[result] = None
    return tuple(nodes)


def _freeze_type(type: Type, types: dict[int, Type]) -> Type:
    found = types[id(type)] = canonical_type(type)
    return found


def _freeze_variable(variable: Variable, frozen: dict[Variable, Variable], user: object) -> Variable:
    found = frozen.get(variable)
    if found is None:
        if not isinstance(variable, Constant):
            raise MissingInputError(
                f"Freezing a graph: Orphan {variable} of type {variable.type}, used by {user}, could not be "
                "mapped: it is neither an input, a constant nor computed; add it to the inputs, or give it a "
                "value with givens",
                variable,
            )
        found = frozen[variable] = FrozenConstant(variable.type, variable.data)
    return found


def _thaw(variable: Variable, memo: Memo) -> Variable:
    if not isinstance(variable, Constant):
        raise KeyError(f"Binding a graph: nothing is given for {variable}")
    found = memo[variable] = variable.clone()
    return found


def _nodes_of(graph: FrozenFunctionGraph) -> tuple[FrozenApply, ...]:
    order = cast(list[FrozenApply], io_toposort(graph.inputs, graph.outputs))
    if all(node.position is not None for node in order):
        order.sort(key=attrgetter("position"))
    return tuple(order)


def _clients_of(graph: FrozenFunctionGraph) -> Mapping[Variable, tuple[tuple[FrozenApply, int], ...]]:
    clients: dict[Variable, list[tuple[FrozenApply, int]]] = {variable: [] for variable in graph.inputs}
    outputs = [FrozenApply(Output(index), (variable,), ()) for index, variable in enumerate(graph.outputs)]
    for node in (*graph.nodes, *outputs):
        for index, variable in enumerate(node.inputs):
            clients.setdefault(variable, []).append((node, index))
        for variable in node.outputs:
            clients.setdefault(variable, [])
    return MappingProxyType({variable: tuple(uses) for variable, uses in clients.items()})
