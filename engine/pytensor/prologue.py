"""The prologue: the part of a graph that needs its data alone. It runs once, before the first call.

Data are inputs whose values never change (docs/decisions/0107). A part of what they lead to is kept: that
which the rest of the graph reads, and which is not too large. Only nodes are moved here that PyTensor would
compute while it compiles, if the data were constants of its graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

import numpy as np
from pytensor.graph.basic import Constant
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.basic import Alloc
from pytensor.tensor.random.type import RandomType

from cachegraph.named_tuples import NamedTuple
from engine.pytensor.nodes import NodeStage
from engine.pytensor.room import room_for
from engine.pytensor.stages import Stage, stages_of


class Cut(NamedTuple):
    """A graph in two: `once` are the stages of the prologue, `kept` the variables that the others read of it.

    A node whose result is too large to be kept, and that the prologue needs too, is in both.
    """

    once: list[Stage]
    kept: list[Any]
    stages: list[Stage]


def cut(fgraph: Any, order: Sequence[Any], data: Iterable[Any]) -> Cut:
    """Return the stages of `fgraph`, whose nodes may be computed in `order`; `data` are among its inputs."""
    known = list(data)
    if known and not any(node.op.destroy_map for node in order):
        division = _Division(fgraph, order, known)
        stages = stages_of(fgraph, division.rest, division.kept)
        if division.kept and not _is_shown(stages, division.kept):
            return Cut(stages_of(fgraph, division.once), division.kept, stages)
    return Cut([], [], stages_of(fgraph, order))


class _Division:
    """The nodes of the prologue, what of their results is `kept`, and the `rest`; nodes in their order."""

    def __init__(self, fgraph: Any, order: Sequence[Any], data: Sequence[Any]) -> None:
        self._outputs = set(fgraph.outputs)
        self._room = room_for(sum(_bytes(variable) for variable in data))
        able = _of_data(fgraph, order, data)
        self.kept: list[Any] = []
        self.rest: list[Any] = []
        read: set[Any] = set()
        for node in reversed(order):
            shown = [output for output in node.outputs if output in read or output in self._outputs]
            if node in able and not shown:
                continue
            if node in able and self._keeps(node, shown):
                self.kept += shown
            else:
                self.rest.append(node)
                read.update(node.inputs)
        self.rest.reverse()
        self.kept.reverse()
        self.once = _leading_to(self.kept, order)

    def _keeps(self, node: Any, variables: Sequence[Any]) -> bool:
        """Return True if what `node` computes is worth its memory; count that.

        A view takes no time, nor does a broadcast value. A result of the function is the caller's: each call
        makes one.
        """
        total = sum(_bytes(variable) for variable in variables)
        is_view = isinstance(node.op, Alloc) or node.op.view_map
        if is_view or not self._outputs.isdisjoint(variables) or total > self._room:
            return False
        self._room -= total
        return True


def _of_data(fgraph: Any, order: Sequence[Any], data: Iterable[Any]) -> set[Any]:
    """Return the nodes that need data, and nothing but data and constants.

    What needs constants alone is none of them: the engine folds it, and sees the number.
    """
    known, found = set(data), set()
    folded: set[Any] = set()
    for node in order:
        inputs = {variable for variable in node.inputs if not isinstance(variable, Constant)} - folded
        if not known.issuperset(inputs) or not _is_foldable(fgraph, node):
            continue
        if inputs:
            found.add(node)
        (known if inputs else folded).update(node.outputs)
    return found


def _is_foldable(fgraph: Any, node: Any) -> bool:
    """Return True if computing the node once is the same as at each call, as PyTensor sees it.

    PyTensor leaves checks to the call, and memory to be filled where it is read: both may be computed once.
    """
    if any(isinstance(variable.type, RandomType) for variable in (*node.inputs, *node.outputs)):
        return False
    return isinstance(node.op, CheckAndRaise | Alloc) or bool(node.op.do_constant_folding(fgraph, node))


def _leading_to(variables: Iterable[Any], order: Sequence[Any]) -> list[Any]:
    """Return the nodes that `variables` need, in `order`."""
    needed, found = set(variables), []
    for node in reversed(order):
        if not needed.isdisjoint(node.outputs):
            found.append(node)
            needed.update(node.inputs)
    return found[::-1]


def _is_shown(stages: Iterable[Stage], kept: Iterable[Any]) -> bool:
    """Return True if a node of PyTensor's may give a view of what is kept to the caller, who may write."""
    known = set(kept)
    nodes = [node for stage in stages if isinstance(stage, NodeStage) for node in stage.nodes]
    return any(node.op.view_map and not known.isdisjoint(node.inputs) for node in nodes)


def _bytes(variable: Any) -> int:
    """Return the size of a variable's values; 0 if its type does not say it: calls look at the value."""
    lengths = getattr(variable.type, "shape", (None,))
    return 0 if None in lengths else prod(lengths) * np.dtype(variable.type.dtype).itemsize
