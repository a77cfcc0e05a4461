"""Properties that stay when axes of a batch are moved, chosen or merged, and what a transposition does."""

from __future__ import annotations

from engine.assumptions.core import (
    ALL_KEYS,
    LOWER_TRIANGULAR,
    SELECTION,
    UPPER_TRIANGULAR,
    AssumptionKey,
    FactState,
)
from engine.assumptions.rules.rule import Facts, RuleTable, core_of, inputs_of, rules_for, true_if
from engine.assumptions.specify import SpecifyAssumptions
from engine.graph.variables import Variable
from engine.tensor.checks import CheckAndRaise, SpecifyShape
from engine.tensor.elemwise import DimShuffle
from engine.tensor.index_entries import FULL, INTEGER
from engine.tensor.matching import tensor_type_of
from engine.tensor.shape import Reshape
from engine.tensor.slicing import Subtensor

_OF_TRANSPOSED = {LOWER_TRIANGULAR: UPPER_TRIANGULAR, UPPER_TRIANGULAR: LOWER_TRIANGULAR}


def _dimshuffle(facts: Facts, key: AssumptionKey, variable: Variable) -> FactState:
    op, (x,) = core_of(variable), inputs_of(variable)
    last = (op.input_ndim - 2, op.input_ndim - 1)
    if op.input_ndim < 2:
        return FactState.UNKNOWN
    if op.new_order[-2:] == last:
        return facts.get(x, key)
    if op.new_order[-2:] == last[::-1] and key != SELECTION:
        return facts.get(x, _OF_TRANSPOSED.get(key, key))
    return FactState.UNKNOWN


def _subtensor(facts: Facts, key: AssumptionKey, variable: Variable) -> FactState:
    op, x = core_of(variable), inputs_of(variable)[0]
    rows = tensor_type_of(x).ndim - 2
    if rows < 0:
        return FactState.UNKNOWN
    chosen = op.entries[rows:]
    # A part of the columns of a selection is one too.
    is_columns = key == SELECTION and chosen[:1] == (FULL,) and INTEGER not in chosen
    return true_if((not chosen or is_columns) and facts.check(x, key))


def _reshape(facts: Facts, key: AssumptionKey, variable: Variable) -> FactState:
    x = inputs_of(variable)[0]
    before, after = tensor_type_of(x).shape[-2:], tensor_type_of(variable).shape[-2:]
    is_kept = len(before) == 2 and None not in before and before == after
    return facts.get(x, key) if is_kept else FactState.UNKNOWN


def _same_value(facts: Facts, key: AssumptionKey, variable: Variable) -> FactState:
    return facts.get(inputs_of(variable)[0], key)


def _specified(facts: Facts, key: AssumptionKey, variable: Variable) -> FactState:
    declared = dict(core_of(variable).assumptions).get(key.name, FactState.UNKNOWN)
    return FactState.join(FactState(declared), facts.get(inputs_of(variable)[0], key))


RULES: RuleTable = {
    **rules_for(ALL_KEYS, [DimShuffle], _dimshuffle),
    **rules_for(ALL_KEYS, [Subtensor], _subtensor),
    **rules_for(ALL_KEYS, [Reshape], _reshape),
    **rules_for(ALL_KEYS, [SpecifyShape, CheckAndRaise], _same_value),
    **rules_for(ALL_KEYS, [SpecifyAssumptions], _specified),
}
