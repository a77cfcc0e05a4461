"""Texts that tell what is known of the variables of a graph: `{diag, !orth}`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from engine.assumptions.core import ALL_KEYS, IMPLIES, AssumptionKey, ConflictingAssumptionsError, FactState
from engine.assumptions.feature import AssumptionFeature
from engine.graph.fgraph import FunctionGraph
from engine.graph.variables import Variable


def assumption_tags(outputs: Iterable[Variable]) -> dict[Variable, str]:
    """Return what is known of each variable that `outputs` need; a variable is left out if nothing is."""
    fgraph = FunctionGraph(outputs=list(outputs), clone=False)
    feature = AssumptionFeature()
    fgraph.attach_feature(feature)
    tags = {variable: summarize_assumptions(feature, variable) for variable in fgraph.variables}
    return {variable: tag for variable, tag in tags.items() if tag}


def summarize_assumptions(feature: AssumptionFeature, var: Variable) -> str:
    """Return the short names of the properties of `var`, in braces; "" if nothing is known.

    `!` is before a property that it does not have, `=CONFLICT` after one with evidence for it and against it.
    What follows from another property in the braces is left out.
    """
    states = {key: _state(feature, var, key) for key in ALL_KEYS}
    signs = {FactState.TRUE: "{}", FactState.FALSE: "!{}", FactState.CONFLICT: "{}=CONFLICT"}
    shown = [
        signs[state].format(key.short_name or key.name)
        for key, state in states.items()
        if state in signs and not _follows(states, key)
    ]
    return f"{{{', '.join(shown)}}}" if shown else ""


def _state(feature: AssumptionFeature, variable: Variable, key: AssumptionKey) -> FactState:
    try:
        return feature.get(variable, key)
    except ConflictingAssumptionsError:
        return FactState.CONFLICT


def _follows(states: Mapping[AssumptionKey, FactState], key: AssumptionKey) -> bool:
    """Return True if a stronger property holds, or a weaker one does not, as `key` then does or does not."""
    if states[key] is FactState.TRUE:
        return any(
            states[stronger] is FactState.TRUE for stronger, weaker in IMPLIES.items() if key in weaker
        )
    if states[key] is FactState.FALSE:
        return any(states[weaker] is FactState.FALSE for weaker in IMPLIES.get(key, ()))
    return False
