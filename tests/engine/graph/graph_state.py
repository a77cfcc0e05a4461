"""All that can be seen of a mutable graph and its Features, to compare: what a refused change must leave as it was."""

from engine.graph import Feature, FunctionGraph, Output, register_feature_callback
from engine.graph.features import FullHistory, NodeFinder, PreserveVariableAttributes


class Mirror(Feature):
    """Follows a graph by what it is told alone."""

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
    """What can be seen of `fgraph`: equal before and after a change that was refused, or reverted."""
    return (
        list(fgraph.inputs),
        list(fgraph.outputs),
        dict(fgraph.apply_nodes),
        {node: tuple(node.inputs) for node in fgraph.apply_nodes},
        {variable: (variable.name, list(clients)) for variable, clients in fgraph.clients.items()},
    )


def feature_states(fgraph: FunctionGraph):
    """What can be seen of its Features but their history."""
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
    """What can be taken back."""
    steps = [len(feature) for feature in fgraph.features if isinstance(feature, FullHistory)]
    return fgraph.journal.mark(), list(fgraph.journal.keepers), steps
