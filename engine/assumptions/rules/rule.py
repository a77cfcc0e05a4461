"""The form of a rule: what is known of an output of an Op, given what is known of its inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from engine.assumptions.core import AssumptionKey, FactState
from engine.graph.variables import Variable
from engine.tensor.matching import tensor_type_of


class Facts(Protocol):
    """Known properties of other variables."""

    def check(self, variable: Variable, key: AssumptionKey) -> bool: ...

    def get(self, variable: Variable, key: AssumptionKey) -> FactState: ...


Rule = Callable[[Facts, AssumptionKey, Variable], FactState]
"""A function of what is known, the property asked for, and the output."""

RuleTable = dict[tuple[AssumptionKey, type], Rule]


def rules_for(keys: Iterable[AssumptionKey], types: Iterable[type], rule: Rule) -> RuleTable:
    """Return the table in which `rule` is that of each of `keys` for each of the classes of Ops."""
    ops = tuple(types)
    return {(key, op): rule for key in keys for op in ops}


def true_if(holds: bool) -> FactState:
    """Return TRUE, or UNKNOWN."""
    return FactState.TRUE if holds else FactState.UNKNOWN


def core_of(variable: Variable) -> Any:
    """Return the Op that computes `variable`, or that of one place of a batch."""
    node = variable.owner
    assert node is not None
    return getattr(node.op, "core_op", node.op)


def inputs_of(variable: Variable) -> Any:
    """Return the inputs of the node that computes `variable`."""
    assert variable.owner is not None
    return variable.owner.inputs


def first_has_it(facts: Facts, key: AssumptionKey, variable: Variable) -> FactState:
    """Return that the output has the property if the first input has it."""
    return true_if(facts.check(inputs_of(variable)[0], key))


def all_have_it(facts: Facts, key: AssumptionKey, variable: Variable) -> FactState:
    """Return that the output has the property if all inputs have it."""
    return true_if(all(facts.check(v, key) for v in inputs_of(variable)))


def is_whole_matrix(variable: Variable) -> bool:
    """Return True if neither of the last two axes broadcasts."""
    found = tensor_type_of(variable)
    return found.ndim >= 2 and not any(found.broadcastable[-2:])


def has_square_matrices(variable: Variable) -> bool:
    """Return True if the last two axes are known to have one length."""
    shape = tensor_type_of(variable).shape
    return len(shape) >= 2 and shape[-1] is not None and shape[-1] == shape[-2]
