"""Edits: the elementary, invertible changes of a mutable graph.

Undoing edits in reverse order restores inputs, outputs, nodes, ranks and the order of every variable's
clients. (`apply_nodes` and `variables` are sets: their order has no meaning.)
"""

from __future__ import annotations

from collections.abc import Iterator, MutableSequence, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast

from engine.graph.apply import Apply
from engine.graph.order import raise_ranks
from engine.graph.tables import Client, Clients, GraphTables, Output
from engine.graph.variables import Variable

if TYPE_CHECKING:
    from engine.graph.feature import Feature
    from engine.graph.types import Type


class Edit:
    """One change, made for `reason`.

    `callback` reports it to Features after it was done, `undo_callback` after it was undone; None: it is
    not reported. `told` has the Features that received the report, or None if all did.
    """

    __slots__ = ("reason", "told")
    callback: ClassVar[str | None] = None
    undo_callback: ClassVar[str | None] = None
    reason: str | None
    told: Sequence[Feature] | None

    def do(self, graph: GraphTables) -> None:
        """Change the graph; refuse before changing anything."""
        raise NotImplementedError(f"{type(self).__name__} must implement do()")

    def undo(self, graph: GraphTables) -> None:
        """Undo this edit, after all later edits were undone."""
        raise NotImplementedError(f"{type(self).__name__} must implement undo()")

    def arguments(self) -> tuple[Any, ...]:
        """Return the arguments of `callback` without the reason."""
        return ()

    def undo_arguments(self) -> tuple[Any, ...]:
        """Return the arguments of `undo_callback` without the reason."""
        return self.arguments()

    def parts(self) -> Iterator[Apply | Variable]:
        """Yield the nodes and variables that undoing or redoing this edit needs."""
        return iter(())


class AddRoot(Edit):
    """The addition of a constant."""

    __slots__ = ("variable",)

    def __init__(self, variable: Variable, reason: str | None) -> None:
        self.variable = variable
        self.reason = reason

    def do(self, graph: GraphTables) -> None:
        graph.is_variable[self.variable] = None
        graph.clients[self.variable] = Clients()

    def undo(self, graph: GraphTables) -> None:
        del graph.is_variable[self.variable]
        del graph.clients[self.variable]

    def parts(self) -> Iterator[Apply | Variable]:
        yield self.variable


class DropRoot(AddRoot):
    """The removal of a constant that is no longer used."""

    __slots__ = ()
    do, undo = AddRoot.undo, AddRoot.do


class AddInput(Edit):
    """The insertion of an input at position `place`."""

    __slots__ = ("is_new", "place", "variable")

    def __init__(self, place: int, variable: Variable, reason: str | None) -> None:
        self.place = place
        self.variable = variable
        self.reason = reason

    def do(self, graph: GraphTables) -> None:
        self.is_new = self.variable not in graph.is_variable
        graph.inputs.insert(self.place, self.variable)
        graph.is_input[self.variable] = None
        if self.is_new:
            graph.is_variable[self.variable] = None
            graph.clients[self.variable] = Clients()

    def undo(self, graph: GraphTables) -> None:
        del graph.inputs[self.place]
        del graph.is_input[self.variable]
        if self.is_new:
            del graph.is_variable[self.variable]
            del graph.clients[self.variable]

    def parts(self) -> Iterator[Apply | Variable]:
        yield self.variable


class RemoveInput(AddInput):
    """The removal of the input at position `place`, which nothing uses."""

    __slots__ = ()

    def do(self, graph: GraphTables) -> None:
        self.is_new = self.variable.owner not in graph.ranks
        super().undo(graph)

    def undo(self, graph: GraphTables) -> None:
        super().do(graph)


class AddOutput(Edit):
    """The insertion of a variable as output at position `place`, with the node `use` as its client."""

    __slots__ = ("client_place", "place", "use", "variable")

    def __init__(self, place: int, variable: Variable, reason: str | None) -> None:
        self.place = place
        self.variable = variable
        self.reason = reason
        self.use = Output(place).make_node(variable)
        self.client_place: int | None = None

    def do(self, graph: GraphTables) -> None:
        graph.outputs.insert(self.place, self.variable)
        graph.output_uses.insert(self.place, self.use)
        self._number_uses(graph)
        clients = graph.clients[self.variable]
        clients.put(len(clients) if self.client_place is None else self.client_place, (self.use, 0))

    def undo(self, graph: GraphTables) -> None:
        self.client_place = graph.clients[self.variable].take((self.use, 0))
        del graph.outputs[self.place]
        del graph.output_uses[self.place]
        self._number_uses(graph)

    def _number_uses(self, graph: GraphTables) -> None:
        for place in range(self.place, len(graph.outputs)):
            graph.output_uses[place].op = Output(place)

    def parts(self) -> Iterator[Apply | Variable]:
        yield self.use
        yield self.variable


class RemoveOutput(AddOutput):
    """The removal of the output at position `place`."""

    __slots__ = ()
    do, undo = AddOutput.undo, AddOutput.do

    def __init__(self, place: int, use: Apply, reason: str | None) -> None:
        self.place = place
        self.use = use
        self.variable = use.inputs[0]
        self.reason = reason


class ImportNode(Edit):
    """The addition of a node, whose inputs are in the graph, with the rank `rank`."""

    __slots__ = ("node", "rank")
    callback, undo_callback = "on_import", "on_prune"

    def __init__(self, node: Apply, rank: int, reason: str | None) -> None:
        self.node = node
        self.rank = rank
        self.reason = reason

    def do(self, graph: GraphTables) -> None:
        node, clients = self.node, graph.clients
        for index, variable in enumerate(node.inputs):
            clients[variable].append((node, index))
        self._add(graph)

    def undo(self, graph: GraphTables) -> None:
        for index in reversed(range(len(self.node.inputs))):
            graph.clients[self.node.inputs[index]].take((self.node, index))
        self._remove(graph)

    def _add(self, graph: GraphTables) -> None:
        variables, clients, is_input = graph.is_variable, graph.clients, graph.is_input
        for output in self.node.outputs:
            if output not in is_input:
                variables[output] = None
                clients[output] = Clients()
        graph.ranks[self.node] = self.rank

    def _remove(self, graph: GraphTables) -> None:
        del graph.ranks[self.node]
        for output in self.node.outputs:
            if output not in graph.is_input:
                del graph.is_variable[output]
                del graph.clients[output]

    def arguments(self) -> tuple[Any, ...]:
        return (self.node,)

    def parts(self) -> Iterator[Apply | Variable]:
        yield self.node


class Prune(ImportNode):
    """The removal of a node whose outputs nothing uses."""

    __slots__ = ("places",)
    callback, undo_callback = "on_prune", "on_import"

    def __init__(self, node: Apply, reason: str | None) -> None:
        self.node = node
        self.reason = reason

    def do(self, graph: GraphTables) -> None:
        self.rank = graph.ranks[self.node]
        self._remove(graph)
        clients = graph.clients
        self.places = [clients[v].take((self.node, i)) for i, v in enumerate(self.node.inputs)]

    def undo(self, graph: GraphTables) -> None:
        for index in reversed(range(len(self.places))):
            graph.clients[self.node.inputs[index]].put(self.places[index], (self.node, index))
        self._add(graph)


class Change(Edit):
    """A change of input `index` of a node, or of an output's use; refuses (InconsistencyError) a cycle."""

    __slots__ = ("former_ranks", "index", "new", "node", "old", "place")
    callback = undo_callback = "on_change_input"

    def __init__(self, node: Apply, index: int, new: Variable, reason: str | None) -> None:
        self.node = node
        self.index = index
        self.old = node.inputs[index]
        self.new = new
        self.reason = reason

    def do(self, graph: GraphTables) -> None:
        client: Client = (self.node, self.index)
        inputs = cast(MutableSequence[Variable], self.node.inputs)
        self.former_ranks = self._raise_ranks(graph)
        inputs[self.index] = self.new
        graph.clients[self.new].append(client)
        self.place = graph.clients[self.old].take(client)
        if isinstance(self.node.op, Output):
            graph.outputs[self.node.op.idx] = self.new

    def _raise_ranks(self, graph: GraphTables) -> dict[Apply, int]:
        ranks, before = graph.ranks, self.new.owner
        if before not in ranks or self.node not in ranks:
            return {}
        return raise_ranks(ranks, [(before, self.node)], graph.nodes_that_need)

    def undo(self, graph: GraphTables) -> None:
        client: Client = (self.node, self.index)
        graph.clients[self.old].put(self.place, client)
        graph.clients[self.new].take(client)
        cast(MutableSequence[Variable], self.node.inputs)[self.index] = self.old
        if isinstance(self.node.op, Output):
            graph.outputs[self.node.op.idx] = self.old
        graph.ranks.update(self.former_ranks)

    def arguments(self) -> tuple[Any, ...]:
        return self.node, self.index, self.old, self.new

    def undo_arguments(self) -> tuple[Any, ...]:
        return self.node, self.index, self.new, self.old

    def parts(self) -> Iterator[Apply | Variable]:
        yield from (self.node, self.old, self.new)


class Narrow(Edit):
    """A change of a computed variable to the more specific type `type`."""

    __slots__ = ("former", "type", "variable")

    def __init__(self, variable: Variable, type: Type, reason: str | None) -> None:
        self.variable = variable
        self.type = type
        self.former = variable.type
        self.reason = reason

    def do(self, graph: GraphTables) -> None:
        self.variable.type = self.type

    def undo(self, graph: GraphTables) -> None:
        self.variable.type = self.former

    def parts(self) -> Iterator[Apply | Variable]:
        yield self.variable
