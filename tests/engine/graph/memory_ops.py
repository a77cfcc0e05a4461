"""Ops of floats that view or overwrite their inputs, and the definition of allowed graphs of them."""

from engine.graph import Apply, Constant, FunctionGraph, Op
from engine.graph.traversal import io_toposort
from tests.engine.graph.small_ops import PLAIN


class _OfFloats(Op):
    __props__ = ()

    def make_node(self, *inputs):
        return Apply(self, inputs, [PLAIN()])


class View(_OfFloats):
    """Shares the memory of its input."""

    view_map = {0: [0]}


class Choose(_OfFloats):
    """Shares the memory of one of its first two inputs."""

    view_map = {0: [0, 1]}


class Overwrite(_OfFloats):
    """Overwrites its first input."""

    destroy_map = {0: [0]}


class OverwriteSame(Overwrite):
    """Overwrites its first input, which may be its second too."""

    destroyhandler_tolerate_same = [(0, 1)]


class OverwriteAliased(Overwrite):
    """Overwrites its first input, of which its second may be a view."""

    destroyhandler_tolerate_aliased = [(0, 1)]


view, choose, overwrite = View(), Choose(), Overwrite()
overwrite_same, overwrite_aliased = OverwriteSame(), OverwriteAliased()
SHARING = [view, choose, overwrite, overwrite_same, overwrite_aliased]


def roots(variable):
    viewed = variable.owner.op.view_map.get(variable.index, []) if variable.owner else []
    return {root for i in viewed for root in roots(variable.owner.inputs[i])} or {variable}


def is_allowed(fgraph: FunctionGraph) -> bool:
    """Return True if some order of the nodes never reads overwritten memory, by trying all orders."""
    before = {}
    owner_of = {}
    for node in fgraph.apply_nodes:
        for i in {i for inputs in node.op.destroy_map.values() for i in inputs}:
            for root in roots(node.inputs[i]):
                if isinstance(root, Constant) or owner_of.setdefault(root, node) is not node:
                    return False
                readers = _readers(fgraph, root)
                before.setdefault(node, []).extend(other for other in readers if other is not node)
            if _reads_elsewhere(node, i):
                return False
    try:
        io_toposort(fgraph.inputs, [o for n in fgraph.apply_nodes for o in n.outputs], before)
    except ValueError:
        return False
    return True


def _readers(fgraph, root):
    return [node for node in fgraph.apply_nodes if any(root in roots(v) for v in node.inputs)]


def _reads_elsewhere(node, overwritten):
    for index, variable in enumerate(node.inputs):
        if index == overwritten or roots(variable).isdisjoint(roots(node.inputs[overwritten])):
            continue
        if node.op == overwrite_aliased and index == 1:
            continue
        if node.op == overwrite_same and index == 1 and variable is node.inputs[overwritten]:
            continue
        return True
    return False
