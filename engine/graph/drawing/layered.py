"""Places of boxes and bends of edges in layers, so that edges lead downwards and cross seldom.

The steps are those of K. Sugiyama, S. Tagawa and M. Toda, "Methods for visual understanding of hierarchical
system structures", IEEE Transactions on Systems, Man, and Cybernetics 11(2), 1981: layers, points where edges
pass a layer, orders that avoid crossings, and places across. Two choices are those of E. R. Gansner,
E. Koutsofios, S. C. North and K.-P. Vo, "A technique for drawing directed graphs", IEEE Transactions on
Software Engineering 19(3), 1993: the order is the best of several sweeps, and long edges are kept straight by
weights. Given the order of a layer, the places with the least weighted squares of distances to the wanted
ones are found exactly, by pooling neighbours (M. Ayer et al., "An empirical distribution function for
sampling with incomplete information", Annals of Mathematical Statistics 26(4), 1955).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence

from cachegraph.named_tuples import NamedTuple

GAP_ACROSS = 18.0
GAP_BETWEEN = 44.0
_SWEEPS = 8
_STRAIGHT = 6.0  # the weight of a point on a long edge; a box has 1

Edge = tuple[int, int]


class Placed(NamedTuple):
    """The centers of all boxes, the points of each edge from its tail to its head, and the size of all."""

    centers: Sequence[tuple[float, float]]
    bends: Mapping[Edge, Sequence[tuple[float, float]]]
    width: float
    height: float


def place(widths: Sequence[float], height: float, edges: Iterable[Edge]) -> Placed:
    """Return places for boxes of these widths and one height; an edge leads from a box to a later one."""
    edges = list(dict.fromkeys(edges))
    ranks = _ranks(len(widths), edges)
    points = _Points(widths, ranks, edges)
    points.order()
    across = points.places()
    least = min((x - w / 2 for x, w in zip(across, points.widths, strict=True)), default=0.0)
    most = max((x + w / 2 for x, w in zip(across, points.widths, strict=True)), default=0.0)
    step = height + GAP_BETWEEN

    def point(number: int) -> tuple[float, float]:
        return across[number] - least, points.ranks[number] * step + height / 2

    bends = {edge: [point(number) for number in points.path(edge)] for edge in edges}
    whole = (max(ranks, default=-1) + 1) * step - GAP_BETWEEN
    return Placed([point(n) for n in range(len(widths))], bends, most - least, max(whole, 0.0))


def _ranks(count: int, edges: Sequence[Edge]) -> list[int]:
    """Return the layer of each box, below all that it reads.

    One that reads no more than it is read is as low as its uses allow, which makes edges no longer: lines
    from one box are shared until they part.
    """
    ranks = [0] * count
    reads: list[list[int]] = [[] for _ in range(count)]
    uses: list[list[int]] = [[] for _ in range(count)]
    for tail, head in edges:
        reads[head].append(tail)
        uses[tail].append(head)
    for number in range(count):
        ranks[number] = max((ranks[tail] + 1 for tail in reads[number]), default=0)
    for number in reversed(range(count)):
        if uses[number] and len(reads[number]) <= len(uses[number]):
            ranks[number] = min(ranks[head] for head in uses[number]) - 1
    return ranks


class _Points:
    """The boxes and, after them, the points where long edges pass a layer. Edges of one box share points."""

    def __init__(self, widths: Sequence[float], ranks: Sequence[int], edges: Sequence[Edge]) -> None:
        self.widths = list(widths)
        self.ranks = list(ranks)
        self._boxes = len(widths)
        self._passing: dict[tuple[int, int], int] = {}
        self.above: list[list[int]] = [[] for _ in widths]
        self.below: list[list[int]] = [[] for _ in widths]
        for edge in edges:
            path = self.path(edge)
            for upper, lower in itertools.pairwise(path):
                if lower not in self.below[upper]:
                    self.below[upper].append(lower)
                    self.above[lower].append(upper)
        self.layers: list[list[int]] = [[] for _ in range(max(self.ranks, default=-1) + 1)]
        for number, rank in enumerate(self.ranks):
            self.layers[rank].append(number)

    def path(self, edge: Edge) -> list[int]:
        """Return the points of an edge, both ends among them."""
        tail, head = edge
        passed = range(self.ranks[tail] + 1, self.ranks[head])
        return [tail, *(self._point(tail, rank) for rank in passed), head]

    def _point(self, tail: int, rank: int) -> int:
        found = self._passing.get((tail, rank))
        if found is None:
            found = self._passing[tail, rank] = len(self.widths)
            self.widths.append(0.0)
            self.ranks.append(rank)
            self.above.append([])
            self.below.append([])
        return found

    def order(self) -> None:
        """Order each layer by the mean places of neighbours, in sweeps; the best order stays."""
        best, fewest = [list(layer) for layer in self.layers], self._crossings()
        for sweep in range(_SWEEPS):
            if not fewest:
                break
            downwards = sweep % 2 == 0
            near = self.above if downwards else self.below
            for rank in range(len(self.layers)) if downwards else reversed(range(len(self.layers))):
                self._sort_by_neighbours(rank, near)
            found = self._crossings()
            if found < fewest:
                best, fewest = [list(layer) for layer in self.layers], found
        self.layers = best

    def _sort_by_neighbours(self, rank: int, near: Sequence[Sequence[int]]) -> None:
        place = {n: k for layer in self.layers[max(rank - 1, 0) : rank + 2] for k, n in enumerate(layer)}
        own = self.layers[rank]
        means = {n: _mean([place[m] for m in near[n]], float(k)) for k, n in enumerate(own)}
        own.sort(key=means.__getitem__)

    def _crossings(self) -> int:
        found = 0
        for upper, lower in zip(self.layers, self.layers[1:], strict=False):
            place = {number: k for k, number in enumerate(lower)}
            ends = [k for number in upper for k in sorted(place[m] for m in self.below[number])]
            found += _inversions(ends)
        return found

    def places(self) -> list[float]:
        """Return the place across of each point: near its neighbours, and apart from others of its layer."""
        across = [0.0] * len(self.widths)
        for layer in self.layers:
            self._spread(layer, across, lambda n: 0.0)
        for sweep in range(_SWEEPS):
            downwards = sweep % 2 == 0
            near = self.above if downwards else self.below
            if sweep >= _SWEEPS - 2:
                near = [[*a, *b] for a, b in zip(self.above, self.below, strict=True)]
            for layer in self.layers if downwards else reversed(self.layers):
                wanted = {n: _mean([across[m] for m in near[n]], across[n]) for n in layer}
                self._spread(layer, across, wanted.__getitem__)
        return across

    def _spread(self, layer: Sequence[int], across: list[float], wanted: Callable[[int], float]) -> None:
        """Set the places of one layer: in its order, apart, and as near to `wanted` as can be."""
        offsets, end = [], 0.0
        for number in layer:
            offsets.append(end + self.widths[number] / 2)
            end += self.widths[number] + GAP_ACROSS
        weights = [1.0 if number < self._boxes else _STRAIGHT for number in layer]
        targets = [wanted(number) - offset for number, offset in zip(layer, offsets, strict=True)]
        for number, offset, place in zip(layer, offsets, _rising(targets, weights), strict=True):
            across[number] = place + offset


def _rising(targets: Sequence[float], weights: Sequence[float]) -> list[float]:
    """Return the numbers that never fall and have the least weighted squared distance to `targets`."""
    pools: list[tuple[float, float, int]] = []  # mean, weight, members
    for target, weight in zip(targets, weights, strict=True):
        pools.append((target, weight, 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (a, v, m), (b, w, n) = pools[-2:]
            pools[-2:] = [((a * v + b * w) / (v + w), v + w, m + n)]
    return [mean for mean, _, members in pools for _ in range(members)]


def _inversions(numbers: Sequence[int]) -> int:
    """Return how many pairs are in falling order; by Fenwick's tree, in n log n steps."""
    size = max(numbers, default=-1) + 2
    tree, found = [0] * (size + 1), 0
    for seen, number in enumerate(numbers):
        node, not_greater = number + 1, 0
        while node > 0:
            not_greater += tree[node]
            node -= node & -node
        found += seen - not_greater
        node = number + 1
        while node <= size:
            tree[node] += 1
            node += node & -node
    return found


def _mean(numbers: Sequence[float], otherwise: float) -> float:
    return sum(numbers) / len(numbers) if numbers else otherwise
