"""`Feature`: what watches a `FunctionGraph` while it changes, and what gives it more methods.

The methods of a Feature that a graph calls are declared, in one of two groups: callbacks carry
`@register_feature_callback`, and names that the graph gains are listed in `provides` and reached as
`fgraph.<name>(...)`, which is `feature.<name>(fgraph, ...)`. Nothing else of a Feature is ever called by a graph.

The callbacks, and when a graph calls them:

    on_attach(fgraph)                                  it attaches the Feature. AlreadyThere makes it leave it out
    on_detach(fgraph)                                  it has removed the Feature
    on_import(fgraph, node, reason)                    the node has come in; its inputs came before
    on_prune(fgraph, node, reason)                     the node has gone out; nothing used it
    on_change_input(fgraph, node, i, old, new, reason) the node's input number i is `new` now
    orderings(fgraph)                                  what else must run before a node: {node: [nodes]}
    validate(fgraph)                                   raises InconsistencyError if it forbids the graph as it is

A reason is a string or None. A change that is undone is told as the opposite change, in opposite order, for a reason
that `is_revert` recognizes. A Feature that raises from a callback leaves itself as it was: the graph undoes the change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar, cast

from engine.errors import EngineError

if TYPE_CHECKING:
    from engine.graph.apply import Apply
    from engine.graph.fgraph import FunctionGraph

F = TypeVar("F", bound=Callable[..., Any])

CALLBACKS = ("on_attach", "on_detach", "on_import", "on_prune", "on_change_input", "orderings", "validate")
REVERT = "revert"


class AlreadyThere(EngineError):
    """Raised by `on_attach`: the graph has a Feature that does the same. It is then left out, without an error."""


def register_feature_callback(method: F) -> F:
    """Declare `method` as a callback: a graph calls only methods so declared, and what overrides them.

    Refuses (TypeError) a method that has not the name of a callback.
    """
    if method.__name__ not in CALLBACKS:
        raise TypeError(f"Declaring callback {method.__name__}: a graph calls only {', '.join(CALLBACKS)}")
    method._is_feature_callback = True  # type: ignore[attr-defined]
    return method


def reason_text(reason: object) -> str | None:
    """`reason` as a string: the name of what was given, if it has one."""
    if reason is None or isinstance(reason, str):
        return reason
    name = getattr(reason, "__name__", None) or getattr(reason, "name", None)
    return name if isinstance(name, str) else str(reason)


def revert_reason(reason: str | None) -> str:
    """The reason for undoing what was done for `reason`."""
    return REVERT if reason is None else f"{REVERT}: {reason}"


def is_revert(reason: str | None) -> bool:
    """Whether a callback with this `reason` tells that an earlier change is undone."""
    return reason is not None and (reason == REVERT or reason.startswith(f"{REVERT}: "))


class Feature:
    """Base class of what can be attached to a FunctionGraph."""

    provides: ClassVar[tuple[str, ...]] = ()
    callbacks: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.callbacks = frozenset(name for name in CALLBACKS if _is_declared(cls, name))
        both = cls.callbacks & set(cls.provides)
        if both:
            raise TypeError(
                f"Declaring Feature {cls.__name__}: {sorted(both)} are both callbacks and provided"
            )
        missing = [name for name in cls.provides if not callable(getattr(cls, name, None))]
        if missing:
            raise TypeError(
                f"Declaring Feature {cls.__name__}: it provides {missing}, but has no such methods"
            )

    def clone(self) -> Feature:
        """A Feature to attach to a copy of the graph: this one, unless a class that has a state of its own overrides it."""
        return self


def _is_declared(cls: type[Feature], name: str) -> bool:
    return any(getattr(vars(base).get(name), "_is_feature_callback", False) for base in cls.__mro__)


class _Watcher(Protocol):
    def on_import(self, fgraph: FunctionGraph, node: Apply, reason: str | None) -> None: ...
    def on_prune(self, fgraph: FunctionGraph, node: Apply, reason: str | None) -> None: ...


class Bookkeeper(Feature):
    """Base class of Features that keep account of all nodes: those there already are imported when it is attached, and
    pruned when it is detached. It serves one graph; refuses (ValueError) a second."""

    def __init__(self) -> None:
        self.fgraph: FunctionGraph | None = None

    @register_feature_callback
    def on_attach(self, fgraph: FunctionGraph) -> None:
        """Import the nodes that are there already."""
        serve_one(self, fgraph)
        for node in fgraph.toposort():
            cast(_Watcher, self).on_import(fgraph, node, "attach")

    @register_feature_callback
    def on_detach(self, fgraph: FunctionGraph) -> None:
        """Prune the nodes that are still there."""
        for node in reversed(fgraph.toposort()):
            cast(_Watcher, self).on_prune(fgraph, node, "detach")
        self.fgraph = None


class _Serving(Protocol):
    fgraph: FunctionGraph | None


def serve_one(feature: _Serving, fgraph: FunctionGraph) -> None:
    """Note in `feature.fgraph` the graph that it serves; refuses (ValueError) a second one."""
    if feature.fgraph is not None and feature.fgraph is not fgraph:
        raise ValueError(
            f"Attaching {type(feature).__name__}: it serves another graph, of which it keeps account; make a new one"
        )
    feature.fgraph = fgraph


def refuse_second(fgraph: FunctionGraph, feature: Feature) -> None:
    """Raise AlreadyThere if all that `feature` provides is provided already."""
    if all(hasattr(fgraph, name) for name in feature.provides):
        raise AlreadyThere(
            f"Attaching {type(feature).__name__}: the graph has {', '.join(feature.provides)} already"
        )
