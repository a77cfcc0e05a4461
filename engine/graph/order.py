"""Ranks that show that a changing graph has no cycle: each node's rank exceeds those of the nodes it needs.

An edge that agrees with the ranks makes no cycle, and most new edges do: then nothing is searched. Of one that does not,
only the nodes between its ends are looked at, and raised. Local search between the ends of a new edge is Pearce and
Kelly's ("A dynamic topological sort algorithm for directed acyclic graphs", 2007); ranks here have gaps and need not
differ, so that a node comes between others without moving them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from heapq import heappop, heappush

from engine.errors import InconsistencyError
from engine.graph.apply import Apply

GAP = 1 << 60
"""The distance of ranks where nothing is known of what comes after."""

Edge = tuple[Apply, Apply]
Successors = Callable[[Apply], Iterable[Apply]]


def raise_ranks(ranks: dict[Apply, int], edges: Iterable[Edge], successors: Successors) -> dict[Apply, int]:
    """Raise ranks until all `edges` (node, node that needs it) agree with them; the ranks that those raised had before.

    `successors` gives the nodes that need a node. All edges but those in `edges` must agree already. Refuses
    (InconsistencyError) edges that close a cycle, and then changes nothing.
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
    """The nodes `inside` that can be reached from `roots`, each before those that need it; refuses a cycle.

    Every cycle that an edge closes is among them: its other edges go from lower ranks to higher ones.
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
    """The ranks of those nodes that must be raised: first those of `order`, then those behind that they push on."""
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
