"""A graph stays intact through random changes, refusals, checkpoints, pickles and freezes."""

import pickle

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from engine.errors import InconsistencyError, MissingInputError
from engine.graph import Feature, FunctionGraph, register_feature_callback
from engine.graph.features import (
    DestroyHandler,
    FullHistory,
    NodeFinder,
    PreserveVariableAttributes,
    ReplacementDidNotRemoveError,
)
from tests.engine.graph.graph_state import Mirror, feature_states, history_of, state_of
from tests.engine.graph.memory_ops import SHARING, is_allowed
from tests.engine.graph.small_ops import PLAIN, Floats, combine, constant, follow, split

OPS = [combine, combine, follow, follow, split, *SHARING]
REFUSALS = (InconsistencyError, MissingInputError, TypeError, ReplacementDidNotRemoveError)
number = st.integers(0, 10**6)


class Bomb(Feature):
    """Raises from the callback number `fuse` from now."""

    def __init__(self):
        self.fuse = None

    def clone(self):
        return Bomb()

    def _tick(self):
        if self.fuse is not None:
            self.fuse -= 1
            if self.fuse < 0:
                self.fuse = None
                raise InconsistencyError("bomb")

    @register_feature_callback
    def on_import(self, fgraph, node, reason):
        self._tick()

    @register_feature_callback
    def on_prune(self, fgraph, node, reason):
        self._tick()

    @register_feature_callback
    def on_change_input(self, fgraph, node, i, old, new, reason):
        self._tick()


class Graphs(RuleBasedStateMachine):
    @initialize(bomb_place=st.integers(0, 5))
    def start(self, bomb_place):
        x, y = PLAIN("x"), PLAIN("y")
        shared = follow(x)
        shared.name = "shared"
        features = [Mirror(), NodeFinder(), DestroyHandler(), PreserveVariableAttributes(), FullHistory()]
        features.insert(bomb_place, Bomb())
        self.fgraph = FunctionGraph([x, y], [combine(shared, y), follow(shared)], features, clone=False)
        self.outside = [PLAIN("outside"), Floats("other")("other")]
        self.checkpoints = {}

    def feature(self, kind):
        return next(feature for feature in self.fgraph.features if isinstance(feature, kind))

    def variable(self, choice):
        found = list(self.fgraph.variables)
        return found[choice % len(found)] if found else self.outside[0]

    def expression(self, choices):
        """Return a new expression of variables of the graph, constants and, rarely, foreign variables."""
        result = self.variable(choices[0])
        for choice in choices[1:]:
            if choice % 13 == 0:
                return self.outside[choice % 2]
            other = constant(1.0) if choice % 5 == 0 else self.variable(choice // 7)
            if choice % 41 == 0:
                other = self.outside[0]
            op = OPS[choice % len(OPS)]
            made = op(result, other) if op not in (follow, split) else op(result)
            result = made[choice % 2] if op is split else made
        return result

    def attempt(self, change):
        """Make a change and return its exception, or None; a refused change must alter nothing."""
        graph, features, history = state_of(self.fgraph), feature_states(self.fgraph), history_of(self.fgraph)
        try:
            change(self.fgraph)
        except REFUSALS as error:
            for was, found in zip(graph, state_of(self.fgraph), strict=True):
                assert found == was
            assert feature_states(self.fgraph) == features
            assert history_of(self.fgraph) == history
            return error
        return None

    @rule(choice=number, choices=st.lists(number, min_size=1, max_size=4), missing=st.booleans())
    def replace(self, choice, choices, missing):
        old, new = self.variable(choice), self.expression(choices)
        self.attempt(lambda g: g.replace(old, new, "replace", import_missing=missing))

    @rule(choice=number, choices=st.lists(number, min_size=1, max_size=4), place=st.integers(-1, 2))
    def change_node_input(self, choice, choices, place):
        nodes = [*self.fgraph.apply_nodes, *self.fgraph.output_uses]
        if nodes:
            node, new = nodes[choice % len(nodes)], self.expression(choices)
            if 0 <= place < len(node.inputs):
                self.attempt(lambda g: g.change_node_input(node, place, new, "change"))

    @rule(
        pairs=st.lists(st.tuples(number, st.lists(number, min_size=1, max_size=4)), min_size=1, max_size=3),
        remove=st.none() | number,
    )
    def replace_all_validate(self, pairs, remove):
        pairs = [(self.variable(old), self.expression(new)) for old, new in pairs]
        part = None if remove is None else self.variable(remove).owner
        before = is_allowed(self.fgraph)
        if part is None:
            error = self.attempt(lambda g: g.replace_all_validate(pairs, "validated"))
        else:
            error = self.attempt(
                lambda g: g.replace_all_validate_remove(pairs, [part], "validated", warn=False)
            )
        assert is_allowed(self.fgraph) if error is None else is_allowed(self.fgraph) == before

    @rule(choices=st.lists(number, min_size=1, max_size=4), missing=st.booleans())
    def import_var(self, choices, missing):
        new = self.expression(choices)
        self.attempt(lambda g: g.import_var(new, "import", import_missing=missing))

    @rule(choices=st.lists(number, min_size=2, max_size=4))
    def import_node(self, choices):
        new = self.expression(choices)
        if new.owner is not None:
            self.attempt(lambda g: g.import_node(new.owner, reason="import"))

    @rule(choices=st.lists(number, min_size=1, max_size=3))
    def add_output(self, choices):
        new = self.expression(choices)
        self.attempt(lambda g: g.add_output(new, "output"))

    @rule()
    def add_input(self):
        self.attempt(lambda g: g.add_input(PLAIN("more")))

    @precondition(lambda self: len(self.fgraph.outputs) > 1)
    @rule(choice=number)
    def remove_output(self, choice):
        self.attempt(lambda g: g.remove_output(choice % len(g.outputs), "remove"))

    @precondition(lambda self: len(self.fgraph.inputs) > 2)
    @rule(choice=number)
    def remove_input(self, choice):
        self.attempt(lambda g: g.remove_input(choice % len(g.inputs), "remove"))

    @rule(choice=number)
    def remove_node(self, choice):
        node = self.variable(choice).owner
        if node is not None:
            assert (
                self.attempt(lambda g: g.remove_node(node, "remove")) is not None or node not in self.fgraph
            )

    @rule(fuse=st.integers(0, 6))
    def light_the_bomb(self, fuse):
        self.feature(Bomb).fuse = fuse

    @rule()
    def checkpoint(self):
        self.checkpoints[self.fgraph.checkpoint()] = state_of(self.fgraph)

    @precondition(lambda self: self.checkpoints)
    @rule(choice=number)
    def revert(self, choice):
        self.feature(Bomb).fuse = None
        kept = list(self.checkpoints)[: choice % len(self.checkpoints) + 1]
        self.fgraph.revert(kept[-1])
        assert state_of(self.fgraph) == self.checkpoints[kept[-1]]
        for gone in set(self.checkpoints) - set(kept):
            if self.checkpoints[gone] != state_of(self.fgraph):
                with pytest.raises(ValueError, match="no such checkpoint"):
                    self.fgraph.revert(gone)
        self.checkpoints = {number: self.checkpoints[number] for number in kept}

    @rule(choice=number)
    def walk_through_history(self, choice):
        self.feature(Bomb).fuse = None
        history, now = self.feature(FullHistory), state_of(self.fgraph)
        count = len(history)
        here = len(history._steps)
        for step in (choice % (count + 1), 0, count):
            history.goto(step)
            self.fgraph.check_integrity()
            self.whole()
        history.goto(here)
        assert len(history) == count
        if here == count:
            assert state_of(self.fgraph) == now

    @rule()
    def pickle(self):
        everything = self.fgraph, self.outside, self.checkpoints
        self.fgraph, self.outside, self.checkpoints = pickle.loads(pickle.dumps(everything))

    @rule()
    def freeze(self):
        if is_allowed(self.fgraph):
            frozen = self.fgraph.freeze()
            if len(frozen.nodes) == len(self.fgraph.apply_nodes):
                assert frozen == self.fgraph.clone().freeze()
            assert len(frozen.unfreeze().outputs) == len(self.fgraph.outputs)

    @rule()
    def clone(self):
        copy, memo = self.fgraph.clone_get_equiv()
        assert [memo[variable] for variable in self.fgraph.outputs] == copy.outputs
        assert len(copy.features) == len(self.fgraph.features)

    @invariant()
    def whole(self):
        if hasattr(self, "fgraph"):
            self.fgraph.check_integrity()
            feature_states(self.fgraph)

    @invariant()
    def overwriting_is_judged_right(self):
        if hasattr(self, "fgraph"):
            assert self.fgraph.consistent() == is_allowed(self.fgraph)
            if self.fgraph.consistent():
                assert set(self.fgraph.toposort()) == set(self.fgraph.apply_nodes)


TestGraphs = Graphs.TestCase
TestGraphs.settings = settings(max_examples=40, stateful_step_count=25)
