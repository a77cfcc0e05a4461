"""Random replacements, refusals and reverts: a DestroyHandler agrees with the definition on each graph."""

from random import Random

import pytest

from engine.errors import InconsistencyError
from engine.graph import Feature, FunctionGraph, register_feature_callback
from engine.graph.features import DestroyHandler
from tests.engine.graph.memory_ops import is_allowed, overwrite, overwrite_aliased, overwrite_same, view
from tests.engine.graph.small_ops import PLAIN, combine, follow

ONE_INPUT = (follow, follow, view, overwrite)
TWO_INPUTS = (combine, combine, overwrite, overwrite_same, overwrite_aliased)


class Fuse(Feature):
    """Refuses the change of an input number `left` from now, before other Features are told of it."""

    left = None

    @register_feature_callback
    def on_change_input(self, fgraph, node, i, old, new, reason):
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                self.left = None
                raise InconsistencyError("interrupted")


class Sequence:
    """A graph that is changed at random. `marks` are points that it may be reverted to."""

    def __init__(self, seed):
        self.random = Random(seed)
        x, y = PLAIN("x"), PLAIN("y")
        self.fuse = Fuse()
        features = [self.fuse, DestroyHandler()]
        self.fgraph = FunctionGraph([x, y], [combine(follow(x), y)], features, clone=False)
        self.marks = []
        self.refused = self.made = 0

    def variable(self):
        return self.random.choice(list(self.fgraph.variables))

    def expression(self):
        """Return a new expression of up to three nodes on variables of the graph."""
        found = self.variable()
        for _ in range(self.random.randint(1, 3)):
            if self.random.random() < 0.5:
                found = self.random.choice(ONE_INPUT)(found)
            else:
                pair = [found, self.variable()]
                self.random.shuffle(pair)
                found = self.random.choice(TWO_INPUTS)(*pair)
        return found

    def step(self):
        action = self.random.choice(
            ["validated"] * 4 + ["replace", "output", "less", "mark", "back", "other"]
        )
        if action != "back" and self.random.random() < 0.3:
            self.fuse.left = self.random.randrange(4)
        try:
            getattr(self, action)()
            self.made += 1
        except (InconsistencyError, ValueError):
            self.refused += 1
        self.fuse.left = None

    def validated(self):
        pairs = [(self.variable(), self.expression()) for _ in range(self.random.randint(1, 2))]
        self.fgraph.replace_all_validate(pairs, "validated")
        assert is_allowed(self.fgraph)

    def replace(self):
        self.fgraph.replace(self.variable(), self.expression(), "replace")

    def other(self):
        """Change inputs of a node, so that edges come and go while nodes stay."""
        nodes = list(self.fgraph.apply_nodes)
        if nodes:
            node = self.random.choice(nodes)
            self.fgraph.change_node_input(node, self.random.randrange(len(node.inputs)), self.variable())

    def output(self):
        self.fgraph.add_output(self.expression())

    def less(self):
        if len(self.fgraph.outputs) > 1:
            self.fgraph.remove_output(self.random.randrange(len(self.fgraph.outputs)))

    def mark(self):
        self.marks.append(self.fgraph.checkpoint())

    def back(self):
        if self.marks:
            place = self.random.randrange(len(self.marks))
            self.fgraph.revert(self.marks[place])
            del self.marks[place + 1 :]


def judged_right(fgraph):
    """Return True if handler and definition agree, and the order of an allowed graph is complete."""
    found = fgraph.consistent()
    assert found == is_allowed(fgraph)
    if found:
        order = fgraph.toposort()
        place = {node: number for number, node in enumerate(order)}
        assert set(order) == set(fgraph.apply_nodes)
        for node, before in fgraph.orderings().items():
            assert all(place[other] < place[node] for other in before)
    return found


INTERRUPTED = (2244, 2983, 3319)
"""Here a node returns without a report of a change, and its rank must be compared with its neighbours'."""


@pytest.mark.parametrize("seeds", [range(40), range(40, 80), range(80, 120), INTERRUPTED])
def test_a_graph_is_judged_after_every_change_as_if_it_were_new(seeds):
    allowed = refused = made = 0
    for seed in seeds:
        sequence = Sequence(seed)
        for _ in range(40):
            sequence.step()
            allowed += judged_right(sequence.fgraph)
        made, refused = made + sequence.made, refused + sequence.refused
    assert min(allowed, refused, made) > 20


@pytest.mark.parametrize("seed", range(200, 240))
def test_a_graph_that_is_judged_seldom_is_judged_as_well(seed):
    sequence = Sequence(seed)
    for _ in range(12):
        for _ in range(5):
            sequence.step()
        judged_right(sequence.fgraph)
