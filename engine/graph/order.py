"""Ranks that prove a changing graph acyclic: each node's rank exceeds those of the nodes it needs.

An edge that agrees with the ranks closes no cycle, and most new edges agree: then nothing is searched. For
one that does not, only the nodes between its ends are visited, and raised. This local search is Pearce and
Kelly's ("A dynamic topological sort algorithm for directed acyclic graphs", 2007); here ranks have gaps and
may be equal, so that a node can be put between others without moving them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from heapq import heappop, heappush

from engine.errors import InconsistencyError
from engine.graph.apply import Apply

GAP = 1 << 60
"""The distance between ranks of nodes added in sequence."""

Edge = tuple[Apply, Apply]
Successors = Callable[[Apply], Iterable[Apply]]


def raise_ranks(ranks: dict[Apply, int], edges: Iterable[Edge], successors: Successors) -> dict[Apply, int]:
    """Raise ranks until all `edges` (node, node that needs it) agree; return the former ranks.

    `successors` returns the nodes that need a node. All other edges must agree already. Refuse
    (InconsistencyError) edges that close a cycle, without changing anything.
    """
    wrong = [(before, after) for before, after in edges if ranks[before] >= ranks[after]]
    if not wrong:
        return {}
    added: dict[Apply, list[Apply]] = {}
    for before, after in wrong:
        added.setdefault(before, []).append(after)

    def following(node: Apply) -> list[Apply]:
        return [*added.get(node, ()), *(n for n in successors(node) if n in ranks)]

    bound = max(ranks[before] for before, _ in wrong)
    order = _sorted_region([after for _, after in wrong], lambda node: ranks[node] <= bound, following)
    raised = _raised(ranks, wrong, order, following)
    former = {node: ranks[node] for node in raised}
    ranks.update(raised)
    return former


def _sorted_region(
    roots: Iterable[Apply], inside: Callable[[Apply], bool], following: Callable[[Apply], list[Apply]]
) -> list[Apply]:
    """Return the nodes `inside` reachable from `roots`, each before those that need it; refuse a cycle.

    They include every cycle that an edge closes: its other edges lead from lower ranks to higher ones.
    """
    done: dict[Apply, None] = {}
    opened: set[Apply] = set()
    for root in roots:
        stack = [root]
        while stack:
            node = stack[-1]
            if node in opened or node in done:
                stack.pop()
                if node in opened:
                    opened.discard(node)
                    done[node] = None
                continue
            opened.add(node)
            for needing in following(node):
                if needing in opened:
                    raise InconsistencyError(
                        f"Ordering a graph: {needing} would need its own output, through {node}"
                    )
                if needing not in done and inside(needing):
                    stack.append(needing)
    return list(done)[::-1]


def _raised(
    ranks: Mapping[Apply, int],
    wrong: Iterable[Edge],
    order: Iterable[Apply],
    following: Callable[[Apply], list[Apply]],
) -> dict[Apply, int]:
    """Return the new ranks of nodes that must rise: those of `order`, then later nodes that these push."""
    raised: dict[Apply, int] = {}
    for before, after in wrong:
        raised[after] = max(raised.get(after, 0), ranks[before] + 1)
    waiting: list[tuple[int, int, Apply]] = []
    seen = set(order)

    def push_on(node: Apply) -> None:
        if node not in raised:
            return
        for needing in following(node):
            if raised.get(needing, ranks[needing]) <= raised[node]:
                raised[needing] = raised[node] + 1
                if needing not in seen:
                    seen.add(needing)
                    heappush(waiting, (ranks[needing], len(seen), needing))

    for node in order:
        push_on(node)
    while waiting:
        push_on(heappop(waiting)[2])
    return raised
