"""A graph while PyTensor rewrites it: PyTensor's FunctionGraph, quicker in what each replacement costs.

A replacement in a FunctionGraph copies the set of all variables, formats the name of the rewrite for each
node that comes or goes, and measures the time of each callback (decision 0220).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pytensor.graph.basic import AtomicVariable, Constant
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import MergeFeature
from pytensor.tensor.variable import TensorConstant

_SMALL = 1 << 10
"""The bytes of the largest constant whose bytes are compared before PyTensor compares its values."""


@contextmanager
def rewritten_quickly(fgraph: FunctionGraph) -> Iterator[None]:
    """Have `fgraph` be a RewrittenGraph until the block ends, if it is a plain FunctionGraph.

    Not one that has a profile: it needs the times of its callbacks.
    """
    if type(fgraph) is not FunctionGraph or fgraph.profile:
        yield
        return
    graph: Any = fgraph
    graph._callbacks, graph._texts = {}, {}
    try:
        graph.__class__ = RewrittenGraph
        yield
    finally:
        graph.__class__ = FunctionGraph
        del graph._callbacks, graph._texts
        for feature in graph._features:
            if type(feature) is _MergeFeature:
                del feature.same_bytes
                feature.__class__ = MergeFeature


class RewrittenGraph(FunctionGraph):
    """A FunctionGraph that does the same in the same order.

    Features are told the name of a rewrite, not the rewrite. Their times are not taken.
    """

    _callbacks: dict[str, list[Callable[..., None]]]
    """The methods of a name of the features that listen to it, once they were asked for."""
    _texts: dict[int, tuple[Any, str]]
    """Rewrites, which must live while their ids are keys, and their texts."""

    def attach_feature(self, feature: Any) -> None:
        if type(feature) is MergeFeature:
            feature.__class__ = _MergeFeature
            feature.same_bytes = {}
        super().attach_feature(feature)
        self._callbacks.clear()

    def remove_feature(self, feature: Any) -> None:
        super().remove_feature(feature)
        self._callbacks.clear()

    def execute_callbacks(self, name: str, *args: Any, **kwargs: Any) -> None:
        for callback in self._callbacks_of(name):
            callback(self, *args, **kwargs)

    def change_node_input(
        self,
        node: Any,
        i: int,
        new_var: Any,
        reason: Any = None,
        import_missing: bool = False,
        check: bool = True,
    ) -> None:
        super().change_node_input(node, i, new_var, self._text(reason), import_missing, check)

    def import_node(
        self, apply_node: Any, check: bool = True, reason: Any = None, import_missing: bool = False
    ) -> None:
        text = self._text(reason)
        for node in self._new_nodes(apply_node):
            if check and any(self._is_missing(variable) for variable in node.inputs):
                # It adds the rest of the nodes and what is missing, or raises its own error.
                super().import_node(apply_node, check, text, import_missing)
                return
            self._add(node, text)
            self.execute_callbacks("on_import", node, text)

    def _new_nodes(self, apply_node: Any) -> Iterator[Any]:
        """Yield the nodes that `apply_node` needs and the graph lacks, each after those that it needs.

        The order is PyTensor's. The caller adds each before it asks for the next.
        """
        known, todo = self.variables, list(apply_node.outputs)
        while todo:
            variable = todo.pop()
            node = variable.owner
            if node is None or variable in known:
                continue
            needed = [v for v in node.inputs if v.owner is not None and v not in known]
            if needed:
                todo.append(variable)
                todo.extend(needed)
            else:
                yield node

    def _is_missing(self, variable: Any) -> bool:
        """Return whether `variable` must be an input of the graph and is none."""
        return (
            variable.owner is None
            and variable not in self.variables
            and not isinstance(variable, AtomicVariable)
        )

    def _add(self, node: Any, text: str | None) -> None:
        """Add a node whose inputs are outputs of nodes of the graph, inputs of it or constants."""
        clients, variables = self.clients, self.variables
        self.apply_nodes.add(node)
        tag = node.tag
        if hasattr(tag, "imported_by"):
            tag.imported_by.append(str(text))
        else:
            tag.imported_by = [str(text)]
        for output in node.outputs:
            clients.setdefault(output, [])
            variables.add(output)
        for position, variable in enumerate(node.inputs):
            if variable not in variables:
                clients.setdefault(variable, [])
                variables.add(variable)
            clients[variable].append((node, position))

    def _callbacks_of(self, name: str) -> list[Callable[..., None]]:
        """Return the methods `name` of the features that listen to it."""
        callbacks = self._callbacks.get(name)
        if callbacks is None:
            listening = [f for f in self._features if name in type(f)._feature_callbacks]
            callbacks = self._callbacks[name] = [getattr(feature, name) for feature in listening]
        return callbacks

    def _text(self, reason: Any) -> Any:
        """Return the text of a rewrite, None for none."""
        if reason is None or type(reason) is str:
            return reason
        found = self._texts.get(id(reason))
        if found is None:
            found = self._texts[id(reason)] = (reason, str(reason))
        return found[1]


class _MergeFeature(MergeFeature):
    """A MergeFeature that sums the values of the first only, where small constants have the same bytes."""

    same_bytes: dict[Any, Constant]
    """The first constant of each type, shape and content."""

    def clone(self) -> MergeFeature:
        return MergeFeature()

    def process_atomic(self, fgraph: Any, c: Any) -> None:
        if id(c) in self.seen_atomics or type(c) is not TensorConstant or c.data.nbytes > _SMALL:
            super().process_atomic(fgraph, c)
            return
        content = (c.type, c.data.shape, c.data.tobytes())
        same = self.same_bytes.get(content)
        if same is not None and id(same) in self.seen_atomics:
            self.scheduled.append([[(c, same, "merge")]])
            return
        super().process_atomic(fgraph, c)
        if id(c) in self.seen_atomics:
            self.same_bytes[content] = c
