"""Properties of matrices of which some elements are written: zeros stay where nothing is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.assumptions.core import DIAGONAL, LOWER_TRIANGULAR, UPPER_TRIANGULAR, AssumptionKey, FactState
from engine.assumptions.rules.rule import (
    Facts,
    RuleTable,
    core_of,
    has_square_matrices,
    inputs_of,
    rules_for,
    true_if,
)
from engine.graph.variables import Constant, Variable
from engine.tensor.index_entries import INTEGER
from engine.tensor.matching import tensor_type_of
from engine.tensor.subtensor import AdvancedIncSubtensor
from engine.tensor.type import is_data

Places = tuple[np.ndarray, np.ndarray]


def _written(facts: Facts, key: AssumptionKey, variable: Variable) -> FactState:
    matrix, _, *indices = inputs_of(variable)
    places = _places(variable, indices)
    if places is None or not facts.check(matrix, key):
        return FactState.UNKNOWN
    rows, columns = places
    within = {LOWER_TRIANGULAR: rows >= columns, UPPER_TRIANGULAR: rows <= columns, DIAGONAL: rows == columns}
    return true_if(bool(np.all(within[key])))


def _places(variable: Variable, indices: Sequence[Variable]) -> Places | None:
    """Return the rows and columns that are written in a square matrix, if its key has these numbers."""
    if tensor_type_of(variable).ndim != 2 or not has_square_matrices(variable):
        return None
    length, numbers = tensor_type_of(variable).shape[0], [_numbers(index) for index in indices]
    if core_of(variable).entries != (INTEGER, INTEGER) or any(each is None for each in numbers):
        return None
    rows, columns = np.broadcast_arrays(*[each % length for each in numbers])
    return rows, columns


def _numbers(index: Variable) -> Any:
    """Return the integers of a constant index; None for any other index, and for those that are data."""
    if not isinstance(index, Constant) or is_data(index):
        return None
    numbers = np.asarray(index.data)
    return None if numbers.dtype == bool else numbers


RULES: RuleTable = rules_for((DIAGONAL, LOWER_TRIANGULAR, UPPER_TRIANGULAR), [AdvancedIncSubtensor], _written)
