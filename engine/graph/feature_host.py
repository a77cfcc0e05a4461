"""`FeatureHost`: what a graph does with its Features: attach, detach, call and time them, and lend them its name space."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import partial
from time import perf_counter
from typing import Any

from engine.errors import InconsistencyError
from engine.graph.features.protocol import CALLBACKS, AlreadyThere, Feature


class FeatureHost:
    """What Features are attached to. `fgraph.<name>` is found in the Feature that `provides` it."""

    _features: list[Feature]
    _provided: dict[str, Feature]
    _listeners: dict[str | None, list[Feature]]

    @property
    def features(self) -> tuple[Feature, ...]:
        """The Features that are attached, in order."""
        return tuple(self._features)

    def take_features(self, features: Iterable[Feature]) -> None:
        """Have exactly `features` attached, and call none of them: they know the graph."""
        self._features = list(features)
        self._provided = {name: feature for feature in self._features for name in feature.provides}
        self._listeners = {
            name: [feature for feature in self._features if name in feature.callbacks] for name in CALLBACKS
        }

    def attach_feature(self, feature: Feature) -> None:
        """Attach `feature`, once, or not at all if its `on_attach` raises AlreadyThere.

        Refuses (InconsistencyError) one that provides a name that the graph has.
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
        feature = self.__dict__.get("_provided", {}).get(name)
        if feature is None:
            raise AttributeError(f"FunctionGraph has no {name}, and no Feature attached to it provides one")
        return partial(getattr(feature, name), self)

    def listeners(self, name: str | None) -> list[Feature]:
        """The Features that declare the callback `name`."""
        return self._listeners.get(name, [])

    def call(self, feature: Feature, name: str | None, *args: Any) -> Any:
        """What the callback `name` of `feature` returns."""
        start = perf_counter()
        try:
            return getattr(feature, str(name))(self, *args)
        finally:
            self.execute_callbacks_times[feature] += perf_counter() - start

    def execute_callbacks(self, name: str, *args: Any) -> None:
        """Call the callback `name` of every Feature that declares it."""
        for feature in self.listeners(name):
            self.call(feature, name, *args)

    def collect_callbacks(self, name: str, *args: Any) -> dict[Feature, Any]:
        """What the callback `name` of each Feature that declares it returns."""
        return {feature: self.call(feature, name, *args) for feature in self.listeners(name)}

    @property
    def execute_callbacks_times(self) -> dict[Feature, float]:
        """The seconds that each Feature's callbacks took so far, in this process."""
        times: dict[Feature, float] = self.__dict__.setdefault("_times", defaultdict(float))
        return times
