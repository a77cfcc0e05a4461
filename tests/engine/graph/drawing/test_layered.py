"""Layers: boxes do not overlap, edges lead down, few cross, and the places across are the best."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.graph.drawing.layered import GAP_ACROSS, GAP_BETWEEN, _inversions, _rising, place

HEIGHT = 20.0


@st.composite
def graphs(draw):
    """Return widths of boxes, and edges from boxes to later ones."""
    count = draw(st.integers(1, 25))
    widths = draw(st.lists(st.floats(1, 200), min_size=count, max_size=count))
    ends = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1))
    edges = [(min(e), max(e)) for e in draw(st.lists(ends, max_size=60)) if e[0] != e[1]]
    return widths, edges


@settings(deadline=None)
@given(graphs())
def test_boxes_of_a_layer_are_apart_and_every_edge_leads_down(graph):
    widths, edges = graph
    placed = place(widths, HEIGHT, edges)
    layers = {}
    for width, (x, y) in zip(widths, placed.centers, strict=True):
        assert x - width / 2 + 1e-6 >= 0
        assert x + width / 2 <= placed.width + 1e-6
        assert HEIGHT / 2 <= y <= placed.height - HEIGHT / 2 + 1e-6
        layers.setdefault(y, []).append((x - width / 2, x + width / 2))
    for boxes in layers.values():
        boxes.sort()
        for (_, end), (begin, _) in itertools.pairwise(boxes):
            assert begin - end >= GAP_ACROSS - 1e-6
    for tail, head in edges:
        heights = [y for _, y in placed.bends[tail, head]]
        assert placed.bends[tail, head][0] == placed.centers[tail]
        assert placed.bends[tail, head][-1] == placed.centers[head]
        steps = [below - above for above, below in itertools.pairwise(heights)]
        assert steps == pytest.approx([HEIGHT + GAP_BETWEEN] * len(steps))


@given(graphs())
@settings(deadline=None, max_examples=30)
def test_a_graph_has_one_layout(graph):
    widths, edges = graph
    assert place(widths, HEIGHT, edges) == place(widths, HEIGHT, [*edges, *edges])


def test_nothing_has_no_size():
    assert place([], HEIGHT, []) == ([], {}, 0.0, 0.0)


def test_a_chain_is_straight():
    placed = place([30.0, 80.0, 10.0], HEIGHT, [(0, 1), (1, 2), (0, 2)])
    assert placed.centers[1][0] != placed.centers[2][0] or len(placed.bends[0, 2]) == 3
    alone = place([30.0, 80.0, 10.0], HEIGHT, [(0, 1), (1, 2)])
    assert {x for x, _ in alone.centers} == {40.0}


def test_a_box_is_just_above_its_use():
    placed = place([10.0] * 5, HEIGHT, [(0, 1), (1, 2), (2, 4), (3, 4)])
    assert placed.centers[3][1] == placed.centers[2][1]


def test_a_tree_that_is_given_in_disorder_is_drawn_without_crossings():
    rng = random.Random(3)
    leaves = list(range(16))
    rng.shuffle(leaves)
    edges, layer, number = [], [(leaf, place) for place, leaf in enumerate(leaves)], 16
    layer.sort(key=lambda each: each[1])
    while len(layer) > 1:
        following = []
        for (a, k), (b, _) in zip(layer[::2], layer[1::2], strict=True):
            edges += [(a, number), (b, number)]
            following.append((number, k))
            number += 1
        layer = following
    placed = place([20.0] * number, HEIGHT, edges)
    lines = [(placed.centers[a], placed.centers[b]) for a, b in edges]
    for (a, b), (c, d) in ((one, other) for one in lines for other in lines if one[0][1] == other[0][1]):
        assert (a[0] - c[0]) * (b[0] - d[0]) >= 0


@given(st.lists(st.integers(0, 12), max_size=40))
def test_inversions_are_pairs_in_falling_order(numbers):
    pairs = [(a, b) for k, a in enumerate(numbers) for b in numbers[k + 1 :]]
    assert _inversions(numbers) == sum(a > b for a, b in pairs)


@given(st.lists(st.tuples(st.floats(-100, 100), st.floats(0.5, 8)), min_size=1, max_size=12), st.randoms())
def test_no_other_rising_numbers_are_nearer(wanted, rng):
    targets, weights = [t for t, _ in wanted], [w for _, w in wanted]
    found = _rising(targets, weights)

    def cost(numbers):
        return sum(w * (t - n) ** 2 for n, t, w in zip(numbers, targets, weights, strict=True))

    assert all(a <= b + 1e-9 for a, b in itertools.pairwise(found))
    for _ in range(20):
        other = sorted(n + rng.uniform(-5, 5) for n in found)
        assert cost(found) <= cost(other) + 1e-6
