"""Snapshots of a mutable graph and its Features, which a refused change must not alter."""

from engine.graph import Feature, FunctionGraph, Output, register_feature_callback
from engine.graph.features import FullHistory, NodeFinder, PreserveVariableAttributes


class Mirror(Feature):
    """Follows a graph by its callbacks alone."""

    def __init__(self):
        self.inputs = {}

    @register_feature_callback
    def on_attach(self, fgraph):
        self.inputs = {node: list(node.inputs) for node in fgraph.apply_nodes}

    @register_feature_callback
    def on_import(self, fgraph, node, reason):
        assert node not in self.inputs
        self.inputs[node] = list(node.inputs)

    @register_feature_callback
    def on_prune(self, fgraph, node, reason):
        del self.inputs[node]

    @register_feature_callback
    def on_change_input(self, fgraph, node, i, old, new, reason):
        assert reason is None or isinstance(reason, str)
        if not isinstance(node.op, Output):
            assert self.inputs[node][i] is old
            self.inputs[node][i] = new

    def clone(self):
        return Mirror()

    def check(self, fgraph):
        assert self.inputs == {node: list(node.inputs) for node in fgraph.apply_nodes}


def state_of(fgraph: FunctionGraph):
    """Return the visible state of `fgraph`, equal before and after a refused or reverted change."""
    return (
        list(fgraph.inputs),
        list(fgraph.outputs),
        dict(fgraph.ranks),
        {node: tuple(node.inputs) for node in fgraph.apply_nodes},
        {variable: (variable.name, list(clients)) for variable, clients in fgraph.clients.items()},
    )


def feature_states(fgraph: FunctionGraph):
    """Return the visible state of its Features, except their history."""
    found = []
    for feature in fgraph.features:
        if isinstance(feature, Mirror):
            feature.check(fgraph)
        if isinstance(feature, NodeFinder):
            found.append({op: set(nodes) for op, nodes in feature.nodes.items()})
        if isinstance(feature, PreserveVariableAttributes):
            found.append(dict(feature._named))
    return found


def history_of(fgraph: FunctionGraph):
    """Return the changes that can be undone."""
    steps = [len(feature) for feature in fgraph.features if isinstance(feature, FullHistory)]
    return fgraph.journal.mark(), list(fgraph.journal.keepers), steps
