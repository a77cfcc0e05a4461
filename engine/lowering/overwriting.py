"""The nodes of a program that may overwrite an input.

An Op that overwrites an input says so (`destroy_map`), and its own graph allows it. But a program has
the nodes of all graphs within graphs, where an input of one may be a view of what another computed.
Neither graph knows of that, so it is decided again here: a node that must not overwrite an input gets a
copy of it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from engine.graph.apply import Apply
from engine.graph.user_ops import is_user_op
from engine.graph.variables import Constant, Variable

Roots = dict[Variable, tuple[Variable, ...]]


def overwriting_nodes(
    nodes: Sequence[Apply],
    inputs: Collection[Variable],
    outputs: Collection[Variable],
    destroyable: Collection[Variable] = (),
) -> frozenset[Apply]:
    """Return those of `nodes`, which run in this order, that may overwrite the inputs their Op names.

    Nothing reads the memory of such an input later, the node reads it through no other input, and it
    belongs to no constant, to none of `outputs`, and to none of `inputs` unless that is `destroyable`.
    """
    # A user Op gets copies, and may overwrite these.
    wanted = [node for node in nodes if node.op.destroy_map and not is_user_op(node.op)]
    if not wanted:
        return frozenset()
    roots = _roots(nodes)
    last_read = _last_reads(nodes, outputs, roots)
    protected = set(inputs).difference(destroyable)
    places = {node: place for place, node in enumerate(nodes)}

    def is_free(root: Variable, place: int) -> bool:
        return not isinstance(root, Constant) and root not in protected and last_read[root] == place

    return frozenset(
        node
        for node in wanted
        if all(is_free(root, places[node]) for root in _overwritten(node, roots)) and _reads_once(node, roots)
    )


def _roots(nodes: Sequence[Apply]) -> Roots:
    """Return the variables whose memory each output of `nodes` views. Any other variable is its own root."""
    roots: Roots = {}
    for node in nodes:
        for index, viewed in node.op.view_map.items():
            found = [root for i in viewed for root in roots.get(node.inputs[i], (node.inputs[i],))]
            roots[node.outputs[index]] = tuple(dict.fromkeys(found))
    return roots


def _last_reads(nodes: Sequence[Apply], outputs: Collection[Variable], roots: Roots) -> dict[Variable, int]:
    """Return the position of the last node that reads each root; behind all nodes for outputs."""
    last: dict[Variable, int] = {}
    for place, node in enumerate(nodes):
        for variable in node.inputs:
            last.update(dict.fromkeys(roots.get(variable, (variable,)), place))
    for variable in outputs:
        last.update(dict.fromkeys(roots.get(variable, (variable,)), len(nodes)))
    return last


def _overwritten(node: Apply, roots: Roots) -> list[Variable]:
    inputs = [node.inputs[i] for numbers in node.op.destroy_map.values() for i in numbers]
    return [root for variable in inputs for root in roots.get(variable, (variable,))]


def _reads_once(node: Apply, roots: Roots) -> bool:
    """Return True if `node` reads what it overwrites through one input alone."""
    overwritten = set(_overwritten(node, roots))
    found = [v for v in node.inputs if not overwritten.isdisjoint(roots.get(v, (v,)))]
    return len(found) == sum(map(len, node.op.destroy_map.values()))
