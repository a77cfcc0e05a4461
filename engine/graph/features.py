"""Features: what watches a `FunctionGraph` while it changes.

The methods of a Feature that a graph calls are declared: callbacks carry `@register_feature_callback`, and names
that the graph gains are listed in `provides` and reached as `fgraph.<name>(...)`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

if TYPE_CHECKING:
    from engine.graph.apply import Apply
    from engine.graph.fgraph import FunctionGraph
    from engine.graph.variables import Variable

F = TypeVar("F", bound=Callable[..., Any])

CALLBACKS = ("on_attach", "on_detach", "on_import", "on_prune", "on_change_input", "orderings", "validate")


def register_feature_callback(method: F) -> F:
    """Declare `method` as a callback: a graph calls only methods so declared.

    Refuses (TypeError) a method that has not the name of a callback.
    """
    if method.__name__ not in CALLBACKS:
        raise TypeError(f"Declaring callback {method.__name__}: a graph calls only {', '.join(CALLBACKS)}")
    method._is_feature_callback = True  # type: ignore[attr-defined]
    return method


class Feature:
    """Base class of what can be attached to a FunctionGraph."""

    provides: ClassVar[tuple[str, ...]] = ()
    callbacks: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        declared = {
            name for name in CALLBACKS if getattr(getattr(cls, name, None), "_is_feature_callback", False)
        }
        both = declared & set(cls.provides)
        if both:
            raise TypeError(
                f"Declaring Feature {cls.__name__}: {sorted(both)} are both callbacks and provided"
            )
        cls.callbacks = frozenset(declared)


class NodeFinder(Feature):
    """Keeps the nodes of each Op: `fgraph.get_nodes(op)`."""

    provides = ("get_nodes",)

    def __init__(self) -> None:
        self.nodes: dict[Any, dict[Apply, None]] = {}

    @register_feature_callback
    def on_attach(self, fgraph: FunctionGraph) -> None:
        """Find the nodes that are there already."""
        for node in fgraph.toposort():
            self.on_import(fgraph, node, "attach")

    @register_feature_callback
    def on_import(self, fgraph: FunctionGraph, node: Apply, reason: str | None) -> None:
        """Add a node."""
        self.nodes.setdefault(node.op, {})[node] = None

    @register_feature_callback
    def on_prune(self, fgraph: FunctionGraph, node: Apply, reason: str | None) -> None:
        """Forget a node."""
        found = self.nodes[node.op]
        del found[node]
        if not found:
            del self.nodes[node.op]

    def get_nodes(self, fgraph: FunctionGraph, op: Any) -> list[Apply]:
        """The nodes of `fgraph` whose Op equals `op`, in the order they came."""
        return list(self.nodes.get(op, ()))


class ChangeCounter(Feature):
    """Counts the changes of inputs by their reason: `counts[reason]`."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    @register_feature_callback
    def on_change_input(
        self,
        fgraph: FunctionGraph,
        node: Apply,
        index: int,
        old: Variable,
        new: Variable,
        reason: str | None,
    ) -> None:
        """Count one change."""
        name = reason or "unnamed"
        self.counts[name] = self.counts.get(name, 0) + 1
