"""`Feature`, which watches a mutable graph, and `FeatureHost`, the graph's side of it.

A graph calls the methods of a Feature that have the name of a callback; names that the graph gains are listed
in `provides`, and `fgraph.<name>(...)` calls `feature.<name>(fgraph, ...)`. `@register_feature_callback` says
of a method that it is a callback, and refuses any other name.

The callbacks, and the moment at which a graph calls them:

    on_attach(fgraph)                                  before it is attached; AlreadyThere leaves it out
    on_detach(fgraph)                                  after the Feature was removed
    on_import(fgraph, node, reason)                    after a node was added; its inputs were added before
    on_prune(fgraph, node, reason)                     after a node that nothing uses was removed
    on_change_input(fgraph, node, i, old, new, reason) after input number i of the node became `new`
    orderings(fgraph)                                  returns {node: [nodes that must run before it]}
    on_validate(fgraph)                                raises InconsistencyError to forbid the graph as it is

A reason is a string or None. Undoing a change is reported as the opposite change, in opposite order, with a
reason that `is_revert` recognizes. A Feature that raises from a callback leaves itself unchanged: the graph
undoes the edit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from time import perf_counter
from typing import Any, ClassVar, Protocol, TypeVar

from engine.errors import EngineError, InconsistencyError

F = TypeVar("F", bound=Callable[..., Any])
G = TypeVar("G", bound="FeatureHost")

CALLBACKS = ("on_attach", "on_detach", "on_import", "on_prune", "on_change_input", "orderings", "on_validate")
REVERT = "revert"


class AlreadyThere(EngineError):
    """Raised by `on_attach` if the graph has an equivalent Feature: the new one is left out silently."""


def register_feature_callback(method: F) -> F:
    """Return `method`; refuse (TypeError) one without the name of a callback, which no graph would call."""
    if method.__name__ not in CALLBACKS:
        raise TypeError(f"Declaring callback {method.__name__}: a graph calls only {', '.join(CALLBACKS)}")
    return method


def reason_text(reason: object) -> str | None:
    """Return `reason` as a string: the name of the object, if it has one."""
    if reason is None or isinstance(reason, str):
        return reason
    name = getattr(reason, "__name__", None) or getattr(reason, "name", None)
    return name if isinstance(name, str) else str(reason)


def revert_reason(reason: str | None) -> str:
    """Return the reason for undoing a change that was made for `reason`."""
    return REVERT if reason is None else f"{REVERT}: {reason}"


def is_revert(reason: str | None) -> bool:
    """Return True if a callback with this `reason` reports that an earlier change is undone."""
    return reason is not None and (reason == REVERT or reason.startswith(f"{REVERT}: "))


class Feature:
    """Base class of objects that can be attached to a FunctionGraph."""

    provides: ClassVar[tuple[str, ...]] = ()
    attribute: ClassVar[str | None] = None
    """The name by which a graph has the Feature itself, or None."""
    callbacks: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.callbacks = frozenset(name for name in CALLBACKS if _has_callback(cls, name))
        both = cls.callbacks & set(cls.provides)
        if both:
            raise TypeError(
                f"Declaring Feature {cls.__name__}: {sorted(both)} appear in both `provides` and as callbacks"
            )
        missing = [name for name in cls.provides if not callable(getattr(cls, name, None))]
        if missing:
            raise TypeError(
                f"Declaring Feature {cls.__name__}: it provides {missing}, but has no such methods"
            )

    def clone(self) -> Feature:
        """Return a Feature for a copy of the graph: this one, unless a class with a state overrides it."""
        return self


def _has_callback(cls: type[Feature], name: str) -> bool:
    return callable(getattr(cls, name, None))


class FeatureHost:
    """Base class of graphs with Features; a Feature's `provides` are attributes of the graph."""

    _features: list[Feature]
    _provided: dict[str, Feature]
    _named: dict[str, Feature]
    _listeners: dict[str | None, list[Feature]]

    @property
    def features(self) -> tuple[Feature, ...]:
        """The attached Features, in order."""
        return tuple(self._features)

    def take_features(self, features: Iterable[Feature]) -> None:
        """Attach exactly `features`, which know the graph already: none is called."""
        self._features = list(features)
        self._provided = {name: feature for feature in self._features for name in feature.provides}
        self._named = {feature.attribute: feature for feature in self._features if feature.attribute}
        self._listeners = {
            name: [feature for feature in self._features if name in feature.callbacks] for name in CALLBACKS
        }

    def attach_feature(self, feature: Feature) -> None:
        """Attach `feature`, unless it is attached already or its `on_attach` raises AlreadyThere.

        Refuse (InconsistencyError) one that provides a name that the graph has.
        """
        if feature in self._features:
            return
        taken = [name for name in feature.provides if name in self._provided or hasattr(type(self), name)]
        try:
            if "on_attach" in feature.callbacks:
                self.call(feature, "on_attach")
        except AlreadyThere:
            return
        if taken:
            if "on_detach" in feature.callbacks:
                self.call(feature, "on_detach")
            raise InconsistencyError(f"Attaching {type(feature).__name__}: the graph has {taken} already")
        self.take_features([*self._features, feature])

    def remove_feature(self, feature: Feature) -> None:
        """Detach `feature`, if it is attached."""
        if feature not in self._features:
            return
        self.take_features([other for other in self._features if other is not feature])
        if "on_detach" in feature.callbacks:
            self.call(feature, "on_detach")

    def __getattr__(self, name: str) -> Any:
        named = self.__dict__.get("_named", {}).get(name)
        if named is not None:
            return named
        feature = self.__dict__.get("_provided", {}).get(name)
        if feature is None:
            raise AttributeError(f"FunctionGraph has no {name}, and no Feature attached to it provides one")
        return partial(getattr(feature, name), self)

    def listeners(self, name: str | None) -> list[Feature]:
        """Return the attached Features that have the callback `name`."""
        return self._listeners.get(name, [])

    def call(self, feature: Feature, name: str | None, *args: Any) -> Any:
        """Call the callback `name` of `feature`, time it, and return its result."""
        start = perf_counter()
        try:
            return getattr(feature, str(name))(self, *args)
        finally:
            self._times[feature] += perf_counter() - start

    def execute_callbacks(self, name: str, *args: Any) -> None:
        """Call the callback `name` of every Feature that has it."""
        for feature in self.listeners(name):
            self.call(feature, name, *args)

    def collect_callbacks(self, name: str, *args: Any) -> dict[Feature, Any]:
        """Return the result of the callback `name`, by Feature that has it."""
        return {feature: self.call(feature, name, *args) for feature in self.listeners(name)}

    @property
    def execute_callbacks_times(self) -> dict[Feature, float]:
        """The seconds that the callbacks of each Feature, also a detached one, took in this process."""
        return {**dict.fromkeys(self._features, 0.0), **self._times}

    @property
    def _times(self) -> defaultdict[Feature, float]:
        times: defaultdict[Feature, float] = self.__dict__.setdefault("_seconds", defaultdict(float))
        return times


class _Serving(Protocol[G]):
    fgraph: G | None


def serve_one(feature: _Serving[G], fgraph: G) -> None:
    """Set `feature.fgraph`; refuse (ValueError) a Feature that serves another graph."""
    if feature.fgraph is not None and feature.fgraph is not fgraph:
        raise ValueError(
            f"Attaching {type(feature).__name__}: it serves another graph; make a new one for this graph"
        )
    feature.fgraph = fgraph


def refuse_second(fgraph: FeatureHost, feature: Feature) -> None:
    """Raise AlreadyThere if the graph has all names that `feature` provides."""
    if all(hasattr(fgraph, name) for name in feature.provides):
        raise AlreadyThere(
            f"Attaching {type(feature).__name__}: the graph has {', '.join(feature.provides)} already"
        )
