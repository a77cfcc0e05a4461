"""Copies of graphs, with or without replacements."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import overload

from engine.graph.apply import Apply
from engine.graph.traversal import io_toposort
from engine.graph.variables import Variable


def clone_get_equiv(
    inputs: Collection[Variable],
    outputs: Sequence[Variable],
    copy_inputs: bool = True,
    copy_orphans: bool = True,
    memo: dict[Variable | Apply, Variable | Apply] | None = None,
) -> dict[Variable | Apply, Variable | Apply]:
    """A map from each variable and node between `inputs` and `outputs` to its copy.

    Without `copy_inputs` the inputs stand for themselves; without `copy_orphans` so do the constants and other
    variables that nothing computes. What is in `memo` already is not copied.
    """
    memo = {} if memo is None else memo
    for variable in inputs:
        memo.setdefault(variable, variable.clone() if copy_inputs else variable)
    for node in io_toposort(inputs, outputs):
        for variable in node.inputs:
            if variable not in memo:
                memo[variable] = variable.clone() if copy_orphans else variable
        if node not in memo:
            copy = node.clone_with_new_inputs([_variable(memo, variable) for variable in node.inputs])
            memo[node] = copy
            for old, new in zip(node.outputs, copy.outputs, strict=True):
                memo.setdefault(old, new)
    for variable in outputs:
        if variable not in memo:
            memo[variable] = variable.clone() if copy_orphans else variable
    return memo


def _variable(memo: Mapping[Variable | Apply, Variable | Apply], variable: Variable) -> Variable:
    found = memo[variable]
    assert isinstance(found, Variable)
    return found


def clone(
    inputs: Sequence[Variable],
    outputs: Sequence[Variable],
    copy_inputs: bool = True,
    copy_orphans: bool = True,
) -> tuple[list[Variable], list[Variable]]:
    """Copies of `inputs` and of the `outputs` computed from them."""
    memo = clone_get_equiv(inputs, outputs, copy_inputs, copy_orphans)
    return [_variable(memo, v) for v in inputs], [_variable(memo, v) for v in outputs]


@overload
def clone_replace(
    output: Variable, replace: Mapping[Variable, Variable] | Iterable[tuple[Variable, Variable]] | None = None
) -> Variable: ...
@overload
def clone_replace(
    output: Sequence[Variable],
    replace: Mapping[Variable, Variable] | Iterable[tuple[Variable, Variable]] | None = None,
) -> list[Variable]: ...
def clone_replace(
    output: Variable | Sequence[Variable],
    replace: Mapping[Variable, Variable] | Iterable[tuple[Variable, Variable]] | None = None,
) -> Variable | list[Variable]:
    """`output` (one variable or several) with every use of a key of `replace` replaced by its value.

    What does not depend on a key is not copied. A replacement that may hold values which the variable it stands
    for may not is refused (TypeError).
    """
    outputs = [output] if isinstance(output, Variable) else list(output)
    pairs = dict(replace or {})
    result = rebuild(outputs, {old: old.type.filter_variable(new) for old, new in pairs.items()})
    return result[0] if isinstance(output, Variable) else result


def rebuild(outputs: Sequence[Variable], memo: Mapping[Variable, Variable]) -> list[Variable]:
    """`outputs` with every use of a key of `memo` replaced by its value; nodes that do not change are kept."""
    done: dict[Variable, Variable] = dict(memo)
    for node in io_toposort(list(memo), outputs):
        inputs = [done.get(variable, variable) for variable in node.inputs]
        if all(new is old for new, old in zip(inputs, node.inputs, strict=True)):
            continue
        copy = node.clone_with_new_inputs(inputs, strict=False)
        for old, new in zip(node.outputs, copy.outputs, strict=True):
            done.setdefault(old, new)
    return [done.get(variable, variable) for variable in outputs]
