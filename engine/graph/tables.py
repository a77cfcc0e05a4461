"""The tables of a mutable graph: its nodes, variables, inputs and outputs, and every variable's clients."""

from __future__ import annotations

from collections.abc import KeysView, Mapping

from engine.errors import InconsistencyError
from engine.graph.apply import Apply
from engine.graph.feature import FeatureHost
from engine.graph.op import Op
from engine.graph.traversal import io_toposort
from engine.graph.variables import Variable

Client = tuple[Apply, int]
"""A use of a variable: a node and the position among its inputs."""

SMALL = 16
"""Lists of up to so many clients are searched linearly."""


class Output(Op):
    """The graph's own use of a variable as output number `idx`, as it stands in `clients`."""

    __props__ = ("idx",)

    def __init__(self, idx: int) -> None:
        self.idx = idx

    def make_node(self, *inputs: Variable) -> Apply:
        """Return the node that uses one variable as an output."""
        return Apply(self, inputs, [])


class Clients(list[Client]):
    """The clients of one variable.

    `take` and `put` are exact inverses, and take the same time for many clients as for few. Up to `SMALL`
    clients stay in the order of arrival; above, the last client moves to the position of one that is
    removed.
    """

    _places: dict[Client, int] | None = None

    def take(self, client: Client) -> int:
        """Remove `client` and return its position; refuse (ValueError) one that is not in the list."""
        if len(self) <= SMALL:
            place = self.index(client)
            del self[place]
            self._places = None
            return place
        places = self._up_to_date()
        place = places.pop(client, -1)
        if place < 0:
            raise ValueError(f"Removing a client: {client} is not among the {len(self)} clients")
        last = self.pop()
        if place < len(self):
            self[place] = last
            places[last] = place
        return place

    def put(self, place: int, client: Client) -> None:
        """Undo the `take` that returned `place`."""
        if len(self) < SMALL:
            self.insert(place, client)
            self._places = None
            return
        places = self._up_to_date()
        if place < len(self):
            places[self[place]] = len(self)
            self.append(self[place])
            self[place] = client
        else:
            self.append(client)
        places[client] = place

    def _up_to_date(self) -> dict[Client, int]:
        """Return the position of each client, with those that `append` added since the last call."""
        places = self._places
        if places is None or len(places) > len(self):
            places = self._places = {}
        for place in range(len(places), len(self)):
            places[self[place]] = place
        return places


class GraphTables(FeatureHost):
    """The state of a mutable graph: tables that edits change, that Features read and that are pickled.

    inputs, outputs   the variables, in order
    is_input          the inputs, as a set (dictionaries serve as sets, ordered by arrival)
    output_uses       for each output the node of the Op `Output` that uses it
    ranks             the rank of each node: greater than the ranks of the nodes it needs
    is_variable       the inputs, the constants and all outputs of nodes, as a set
    clients           the uses of each variable
    """

    def _make_empty(self) -> None:
        self.inputs: list[Variable] = []
        self.outputs: list[Variable] = []
        self.is_input: dict[Variable, None] = {}
        self.output_uses: list[Apply] = []
        self.ranks: dict[Apply, int] = {}
        self.is_variable: dict[Variable, None] = {}
        self.clients: dict[Variable, Clients] = {}
        self.take_features(())

    @property
    def apply_nodes(self) -> KeysView[Apply]:
        """The nodes: a set, which changes with the graph."""
        return self.ranks.keys()

    @property
    def variables(self) -> KeysView[Variable]:
        """The inputs, the constants and all outputs of nodes: a set, which changes with the graph."""
        return self.is_variable.keys()

    def orderings(self) -> dict[Apply, list[Apply]]:
        """Return, for each node, the nodes that Features require to run before it."""
        found: dict[Apply, list[Apply]] = {}
        for before in self.collect_callbacks("orderings").values():
            for node, nodes in before.items():
                found.setdefault(node, []).extend(nodes)
        return found

    def toposort(self) -> list[Apply]:
        """Return the nodes, each after those it needs and those that `orderings` requires."""
        order = self._sorted(None)
        orderings = self.orderings() if self.listeners("orderings") else None
        if not orderings:
            return order
        place = {node: number for number, node in enumerate(order)}
        return self._sorted({n: sorted(before, key=lambda b: place[b]) for n, before in orderings.items()})

    def _sorted(self, orderings: Mapping[Apply, list[Apply]] | None) -> list[Apply]:
        """Return the nodes that the outputs need, then the others."""
        order = io_toposort(self.is_input, self.outputs, orderings)
        if len(order) == len(self.ranks):
            return order
        needed = set(order)
        others = [node.outputs[0] for node in self.ranks if node not in needed]
        return io_toposort(self.is_input, [*self.outputs, *others], orderings)

    def get_clients(self, variable: Variable) -> list[Client]:
        """Return the uses of `variable`: pairs of a node and the position among its inputs."""
        return list(self.clients[variable])

    def nodes_that_need(self, node: Apply) -> list[Apply]:
        """Return the nodes that use an output of `node`, including those of the Op `Output`."""
        return [client for output in node.outputs for client, _ in self.clients[output]]

    def __contains__(self, item: Variable | Apply) -> bool:
        return item in (self.is_variable if isinstance(item, Variable) else self.ranks)


def check_integrity(graph: GraphTables) -> None:
    """Refuse (InconsistencyError) a graph whose nodes, variables, clients and ranks disagree."""
    _check_nodes(graph)
    _check_outputs(graph)
    _check_clients(graph)
    _check_roots(graph)


def _check_nodes(graph: GraphTables) -> None:
    for node in io_toposort(graph.is_input, graph.outputs):
        if node not in graph.ranks:
            raise InconsistencyError(
                f"Checking a graph: an output needs {node}, which is not among its nodes"
            )
    for node, rank in graph.ranks.items():
        for variable in node.inputs:
            if variable in graph.is_input or variable.owner is None:
                continue
            if graph.ranks.get(variable.owner, rank) >= rank:
                raise InconsistencyError(
                    f"Checking a graph: {node} is not ranked above {variable.owner}, which it needs"
                )


def _check_outputs(graph: GraphTables) -> None:
    if len(graph.outputs) != len(graph.output_uses):
        raise InconsistencyError("Checking a graph: the numbers of its outputs and of their uses differ")
    for index, (output, use) in enumerate(zip(graph.outputs, graph.output_uses, strict=True)):
        if use.op != Output(index) or use.inputs[0] is not output:
            raise InconsistencyError(
                f"Checking a graph: {output} is output {index}, but {use} says otherwise"
            )


def _check_clients(graph: GraphTables) -> None:
    known = set(graph.is_variable)
    expected = dict.fromkeys(graph.inputs)
    nodes: list[Apply] = [*graph.ranks, *graph.output_uses]
    for node in nodes:
        expected.update(dict.fromkeys(node.inputs))
        expected.update(dict.fromkeys(node.outputs))
    if not known.issuperset(expected) or known != graph.clients.keys():
        raise InconsistencyError(
            "Checking a graph: its variables are not those of its nodes, inputs and outputs"
        )
    if sum([len(clients) for clients in graph.clients.values()]) != sum([len(node.inputs) for node in nodes]):
        raise InconsistencyError(
            "Checking a graph: the numbers of its clients and of the uses of its variables differ"
        )
    uses = set(graph.output_uses)
    for variable, clients in graph.clients.items():
        wrong = len(clients) > 1 and len(set(clients)) != len(clients)
        for node, index in clients:
            known_node = node in graph.ranks or node in uses
            wrong = wrong or not known_node or node.inputs[index] is not variable
        if wrong:
            raise InconsistencyError(
                f"Checking a graph: {variable} has clients that are not its uses: {clients}"
            )


def _check_roots(graph: GraphTables) -> None:
    if list(graph.is_input) != graph.inputs and set(graph.is_input) != set(graph.inputs):
        raise InconsistencyError("Checking a graph: `inputs` and `is_input` differ")
    for variable in graph.is_variable:
        if variable in graph.is_input:
            continue
        known = variable.is_atomic if variable.owner is None else variable.owner in graph.ranks
        if not known:
            raise InconsistencyError(
                f"Checking a graph: {variable} is neither an input, a constant nor computed in it"
            )
