"""`AssumptionFeature`: the properties of a graph's matrices, found when they are asked for."""

from __future__ import annotations

from typing import Any

from engine.assumptions.constants import state_of_constant
from engine.assumptions.core import ALL_KEYS, IMPLIES, AssumptionKey, ConflictingAssumptionsError, FactState
from engine.assumptions.rules import rule_of
from engine.graph.feature import AlreadyThere, Feature, register_feature_callback
from engine.graph.fgraph import FunctionGraph
from engine.graph.variables import Constant, Variable
from engine.tensor.type import is_data

Fact = tuple[Variable, AssumptionKey]


class AssumptionFeature(Feature):
    """The properties of the variables of one graph.

    What is known of a variable holds for the one that replaces it. What is unknown is looked for again after
    a change.
    """

    attribute = "assumption_feature"

    def __init__(self) -> None:
        self._states: dict[Fact, FactState] = {}
        self._unknown: set[Fact] = set()

    @register_feature_callback
    def on_attach(self, fgraph: Any) -> None:
        if any(isinstance(feature, AssumptionFeature) for feature in fgraph.features):
            raise AlreadyThere("an AssumptionFeature is attached already")

    @register_feature_callback
    def on_change_input(self, fgraph: Any, node: Any, index: int, old: Any, new: Any, reason: Any) -> None:
        # A conflict shows when somebody asks.
        for key in ALL_KEYS:
            state = self._states.get((old, key), FactState.UNKNOWN)
            if state is not FactState.UNKNOWN:
                before = self._states.get((new, key), FactState.UNKNOWN)
                self._states[new, key] = FactState.join(before, state)
        for fact in self._unknown:
            if self._states.get(fact) is FactState.UNKNOWN:
                del self._states[fact]
        self._unknown.clear()

    def clone(self) -> AssumptionFeature:
        """Return a new Feature, which finds the same for the variables of the copy."""
        return AssumptionFeature()

    def check(self, variable: Variable, key: AssumptionKey) -> bool:
        """Return True if `variable` is known to have the property `key`."""
        return self.get(variable, key) is FactState.TRUE

    def get(self, variable: Variable, key: AssumptionKey) -> FactState:
        """Return what is known. Raises ConflictingAssumptionsError if evidence contradicts."""
        waiting = [variable]
        while waiting:
            current = waiting[-1]
            due = [v for v in self._asked_first(current, key) if (v, key) not in self._states]
            if (current, key) not in self._states and due:
                waiting.extend(due)
                continue
            waiting.pop()
            if (current, key) not in self._states:
                self._find(current, key)
        state = self._states[variable, key]
        if state is FactState.CONFLICT:
            raise ConflictingAssumptionsError(f"Conflicting evidence: is {variable} {key}? It is, and is not")
        return state

    def _asked_first(self, variable: Variable, key: AssumptionKey) -> list[Variable]:
        """Return the variables whose property decides that of `variable`."""
        node = variable.owner
        if node is None or (variable, key) in self._states or rule_of(node, key) is None:
            return []
        return list(node.inputs)

    def _find(self, variable: Variable, key: AssumptionKey) -> None:
        # What follows from other properties may ask for this one again.
        self._states[variable, key] = FactState.UNKNOWN
        state = self._by_rule(variable, key)
        if state is FactState.UNKNOWN:
            state = self._implied(variable, key)
        self._states[variable, key] = state
        if state is FactState.UNKNOWN:
            self._unknown.add((variable, key))

    def _by_rule(self, variable: Variable, key: AssumptionKey) -> FactState:
        if isinstance(variable, Constant):
            return FactState.UNKNOWN if is_data(variable) else state_of_constant(variable, key)
        node = variable.owner
        rule = None if node is None else rule_of(node, key)
        return FactState.UNKNOWN if rule is None else rule(self, key, variable)

    def _implied(self, variable: Variable, key: AssumptionKey) -> FactState:
        for stronger, weaker in IMPLIES.items():
            if key in weaker and self.get(variable, stronger) is FactState.TRUE:
                return FactState.TRUE
        if any(self.get(variable, weaker) is FactState.FALSE for weaker in IMPLIES.get(key, ())):
            return FactState.FALSE
        return FactState.UNKNOWN


def check_assumption(fgraph: FunctionGraph, var: Variable, key: AssumptionKey) -> bool:
    """Return True if `var` of `fgraph` is known to have the property `key`.

    Attaches an AssumptionFeature to a graph that has none.
    """
    fgraph.attach_feature(AssumptionFeature())
    return bool(fgraph.assumption_feature.check(var, key))
