"""Inplace: an Op that changes a part of a tensor overwrites it, if nothing needs the old value afterwards.

These passes run last, when no node is made or merged any more. A DestroyHandler decides what may be
overwritten, and then orders the nodes; a Supervisor protects the inputs. Both are attached only if there is
something to overwrite. An existing Supervisor stays: so a loop lets its own state be overwritten. An `alloc`
that several Ops overwrite is one for each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.errors import InconsistencyError
from engine.graph import Apply, Constant, DestroyHandler, FunctionGraph, Op, Supervisor, Variable
from engine.graph.features.destroy import roots_of
from engine.rewriting.rewriters import GraphRewriter, RewriteReport
from engine.tensor import AdvancedIncSubtensor, Alloc
from engine.tensor.slicing import IncSubtensor

InplaceForm = Callable[[Op], Op | None]
"""A function from an Op to its inplace form, or None."""


class InplaceOptimizer(GraphRewriter):
    """The replacement of Ops by inplace forms, in topological order, where the graph allows it."""

    def __init__(self, name: str, inplace_form: InplaceForm) -> None:
        self.name = name
        self.inplace_form = inplace_form

    def run(self, fgraph: FunctionGraph, report: RewriteReport) -> None:
        protected = _protected(fgraph)
        found = [(node, self.inplace_form(node.op)) for node in fgraph.toposort()]
        wanted = [(node, op) for node, op in found if op is not None and _may_overwrite(node, op, protected)]
        if not wanted:
            return
        handler = DestroyHandler()
        fgraph.attach_feature(Supervisor(protected))
        fgraph.attach_feature(handler)
        done = sum(_replaced(fgraph, node, op, self.name) for node, op in wanted)
        if not done:
            fgraph.remove_feature(handler)
        report.count(self.name, done)


def _protected(fgraph: FunctionGraph) -> list[Variable | int]:
    """Return the variables that the graph's Supervisor protects; all inputs if there is none."""
    for feature in fgraph.features:
        if isinstance(feature, Supervisor):
            return feature.protected
    return list(fgraph.inputs)


def _may_overwrite(node: Apply, op: Op, protected: list[Variable | int]) -> bool:
    """Return True if `op` overwrites neither constants nor protected inputs."""
    overwritten = [node.inputs[i] for inputs in op.destroy_map.values() for i in inputs]
    roots = [root for variable in overwritten for root in roots_of(variable)]
    return not any(isinstance(root, Constant) or root in protected for root in roots)


def _replaced(fgraph: FunctionGraph, node: Apply, op: Op, reason: str) -> bool:
    """Replace the Op of `node` by `op`; return False if the graph refuses it."""
    if _is_replaced_by(fgraph, node, Apply(op, node.inputs, _like(node.outputs)), reason):
        return True
    inputs = _with_own_fills(node, op)
    return inputs is not None and _is_replaced_by(
        fgraph, node, Apply(op, inputs, _like(node.outputs)), reason
    )


def _like(outputs: Sequence[Variable]) -> list[Variable]:
    return [output.type.make_variable(output.name) for output in outputs]


def _is_replaced_by(fgraph: FunctionGraph, node: Apply, new: Apply, reason: str) -> bool:
    try:
        fgraph.replace_all_validate(zip(node.outputs, new.outputs, strict=True), reason)
    except InconsistencyError:
        return False
    return True


def _with_own_fills(node: Apply, op: Op) -> list[Variable] | None:
    """Return the inputs of `node`, with a new one for each `alloc` that `op` overwrites; or None.

    To fill memory once more costs no more than to copy what was filled.
    """
    inputs = list(node.inputs)
    for place in [place for places in op.destroy_map.values() for place in places]:
        source = inputs[place].owner
        if source is not None and isinstance(source.op, Alloc):
            inputs[place] = source.op.make_node(*source.inputs).outputs[0]
    return None if inputs == list(node.inputs) else inputs


def _inplace_set(op: Op) -> Op | None:
    if isinstance(op, IncSubtensor) and not op.inplace:
        return IncSubtensor(op.entries, inplace=True, set_instead_of_inc=op.set_instead_of_inc)
    return None


def _inplace_advanced(op: Op) -> Op | None:
    if isinstance(op, AdvancedIncSubtensor) and not op.inplace:
        return AdvancedIncSubtensor(op.entries, inplace=True, set_instead_of_inc=op.set_instead_of_inc)
    return None


local_inplace_setsubtensor = InplaceOptimizer("local_inplace_setsubtensor", _inplace_set)
local_inplace_advanced_inc_subtensor = InplaceOptimizer(
    "local_inplace_AdvancedIncSubtensor", _inplace_advanced
)
INPLACE = (local_inplace_setsubtensor, local_inplace_advanced_inc_subtensor)
