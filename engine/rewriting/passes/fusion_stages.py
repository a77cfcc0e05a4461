"""The stage of each node before fusion: nodes of one stage that pass values to each other fit one loop.

No cycle can arise. A stage is at least that of the nodes that a node is joined to, and greater than that of
all others it needs. Only nodes of equal stage are joined, so a node between two Composites has a stage in
between.

Each node is as early as it can be at first, and then where all its users are, if it fits their loop. A
value that is joined to nothing then may wait for its first user that it fits, and its other users with it: it
does if that keeps more within loops, counted by axes (`_kept`). Which of many waits is best is not searched
for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from engine.graph import Apply, FunctionGraph
from engine.rewriting.passes.fills import asks_for_element
from engine.scalar.embedded import has_loops
from engine.tensor.elemwise import Elemwise
from engine.tensor.matching import tensor_type_of
from engine.tensor.reduction import Reduction

_LENGTH = 1000
"""A length that is not known."""


class Stages:
    """The stage of each node: nodes of one stage that pass values to each other fit one loop."""

    def __init__(self, fgraph: FunctionGraph) -> None:
        self.fgraph = fgraph
        self.order = fgraph.toposort()
        self.reduction: dict[Apply, Apply | None] = {}
        for node in reversed(self.order):
            self.reduction[node] = self._only_reduction(node)
        self.joinable = {node: frozenset(self._joinable(node)) for node in self.order}
        self.stage = self._scheduled({})
        if later := self._delayed():
            most = max(map(_count_axes, later))
            largest = {node: stage for node, stage in later.items() if _count_axes(node) == most}
            choices = (self.stage, self._scheduled(later), self._scheduled(largest))
            self.stage = max(choices, key=self._kept)

    def _clients(self, node: Apply) -> list[Apply]:
        return [client for output in node.outputs for client, _ in self.fgraph.clients[output]]

    def _only_reduction(self, node: Apply) -> Apply | None:
        """Return the node read by the reduction for which alone `node` is computed; None if there is none."""
        clients = self._clients(node)
        if not isinstance(node.op, Elemwise):
            return None
        if len(clients) == 1 and isinstance(clients[0].op, Reduction):
            return node
        found = {self.reduction.get(client) for client in clients}
        alone = len(found) == 1 and all(fit_one_loop(node, client) for client in clients)
        return found.pop() if alone else None

    def _joinable(self, node: Apply) -> Iterator[Apply]:
        """Yield the producers whose values stay within a loop if they have the stage of `node`."""
        for producer in _producers(node):
            if fit_one_loop(producer, node) and self.reduction[producer] is self.reduction[node]:
                yield producer

    def _scheduled(self, earliest: Mapping[Apply, int]) -> dict[Apply, int]:
        """Return a stage for each node, not before those in `earliest`."""
        stage: dict[Apply, int] = {}
        for node in self.order:
            needed = [stage[p] + (p not in self.joinable[node]) for p in _producers(node)]
            stage[node] = max(needed, default=0)
            if node in earliest:
                stage[node] = max(stage[node], earliest[node])
        for node in reversed(self.order):
            stage[node] = self._last_stage(node, stage)
        return stage

    def _last_stage(self, node: Apply, stage: Mapping[Apply, int]) -> int:
        """Return the common stage of all users of `node`, if all can be joined; else its first stage."""
        clients = self._clients(node)
        later = {stage.get(client) for client in clients}
        if len(later) == 1 and None not in later and all(node in self.joinable[c] for c in clients):
            return cast(int, later.pop())
        return stage[node]

    def _delayed(self) -> dict[Apply, int]:
        """Return the stage of the first user that it can be joined to, for each node that is joined to none.

        Its other users are not that late, and would have to wait.
        """
        found: dict[Apply, int] = {}
        joined = set[Apply]()
        for node in self.order:
            for producer in self.joinable[node]:
                if self.stage[producer] == self.stage[node]:
                    joined |= {producer, node}
                else:
                    found[producer] = min(self.stage[node], found.get(producer, self.stage[node]))
        return {node: stage for node, stage in found.items() if node not in joined}

    def _kept(self, stage: Mapping[Apply, int]) -> int:
        """Return how much is passed within a loop by the stages `stage`: a value counts more by its axes."""
        return sum(
            _LENGTH ** _count_axes(producer)
            for node in self.order
            for producer in self.joinable[node]
            if stage[producer] == stage[node]
        )

    def groups(self) -> list[list[Apply]]:
        """Return the connected nodes of each stage, by stage, each group in topological order."""
        leader: dict[Apply, Apply] = {node: node for node in self.order}
        for node in self.order:
            for producer in self.joinable[node]:
                if self.stage[producer] == self.stage[node]:
                    leader[_find(leader, node)] = _find(leader, producer)
        groups: dict[Apply, list[Apply]] = {}
        for node in self.order:
            if isinstance(node.op, Elemwise):
                groups.setdefault(_find(leader, node), []).append(node)
        return sorted(groups.values(), key=lambda group: self.stage[group[0]])


def fit_one_loop(producer: Apply, consumer: Apply) -> bool:
    """Return True if both nodes are elementwise with kernels, and a value passes between them unrepeated."""
    if not (isinstance(producer.op, Elemwise) and isinstance(consumer.op, Elemwise)):
        return False
    if not (has_loops(producer) and has_loops(consumer)):
        return False
    # A Composite drops inputs that only give a shape, and with them the check of an element.
    if asks_for_element(producer) or asks_for_element(consumer):
        return False
    return _broadcastable(producer) == _broadcastable(consumer)


def _broadcastable(node: Apply) -> tuple[bool, ...]:
    return tensor_type_of(node.outputs[0]).broadcastable


def _count_axes(node: Apply) -> int:
    """Return the number of axes along which the results of `node` may have more than one element."""
    return _broadcastable(node).count(False)


def _producers(node: Apply) -> Iterator[Apply]:
    return (variable.owner for variable in node.inputs if variable.owner is not None)


def _find(leader: dict[Apply, Apply], node: Apply) -> Apply:
    """Return the representative of the set of `node` (union-find with path halving)."""
    while leader[node] is not node:
        leader[node] = leader[leader[node]]
        node = leader[node]
    return node
