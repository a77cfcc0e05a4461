"""Copies of graphs, with or without replacements, and a comparison of two graphs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, overload

import numpy as np

from engine.graph.apply import Apply
from engine.graph.traversal import ancestors, graph_inputs, io_toposort
from engine.graph.variables import Constant, Variable

Memo = dict[Variable | Apply, Variable | Apply]
Replacements = Mapping[Variable, Variable] | Iterable[tuple[Variable, Variable]]


def __getattr__(name: str) -> Any:
    """Return PyTensor's names of this module for batches, which need tensors."""
    if name not in ("vectorize_graph", "vectorize_node"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("engine.tensor.blockwise"), name)


def clone_get_equiv(
    inputs: Collection[Variable],
    outputs: Sequence[Variable],
    copy_inputs: bool = True,
    copy_orphans: bool = True,
    memo: Memo | None = None,
) -> Memo:
    """Return a map from each variable and node between `inputs` and `outputs` to its copy.

    Without `copy_inputs` inputs map to themselves; without `copy_orphans` so do other variables without an
    owner. A constant, which never changes, is its own copy. Parts that are in `memo` already are not copied,
    nor are nodes whose outputs are.
    """
    memo = {} if memo is None else memo
    for variable in inputs:
        memo.setdefault(variable, _copied(variable) if copy_inputs else variable)
    for node in io_toposort(inputs, outputs):
        for variable in node.inputs:
            if variable not in memo:
                memo[variable] = _copied(variable) if copy_orphans else variable
        if node not in memo and not all(variable in memo for variable in node.outputs):
            arguments = [memo[variable] for variable in node.inputs]
            copy = memo[node] = node.clone_with_new_inputs(arguments)  # type: ignore[arg-type]
            for old, new in zip(node.outputs, copy.outputs, strict=True):
                memo.setdefault(old, new)
    for variable in outputs:
        if variable not in memo:
            memo[variable] = _copied(variable) if copy_orphans else variable
    return memo


def _copied(variable: Variable) -> Variable:
    """Return a copy of a root; a constant itself, and for an input of a frozen graph a mutable variable."""
    copy = variable.clone()
    return variable.type.make_variable() if copy is variable and not isinstance(copy, Constant) else copy


def _variable(memo: Memo, variable: Variable) -> Variable:
    found = memo[variable]
    assert isinstance(found, Variable)
    return found


def clone(
    inputs: Sequence[Variable],
    outputs: Sequence[Variable],
    copy_inputs: bool = True,
    copy_orphans: bool = True,
) -> tuple[list[Variable], list[Variable]]:
    """Return copies of `inputs` and of the `outputs` computed from them."""
    memo = clone_get_equiv(inputs, outputs, copy_inputs, copy_orphans)
    return [_variable(memo, v) for v in inputs], [_variable(memo, v) for v in outputs]


@overload
def clone_replace(
    output: Variable,
    replace: Replacements | None = None,
    rebuild_strict: bool = True,
    copy_inputs_over: bool = True,
) -> Variable: ...
@overload
def clone_replace(
    output: Sequence[Variable],
    replace: Replacements | None = None,
    rebuild_strict: bool = True,
    copy_inputs_over: bool = True,
) -> list[Variable]: ...
def clone_replace(
    output: Variable | Sequence[Variable],
    replace: Replacements | None = None,
    rebuild_strict: bool = True,
    copy_inputs_over: bool = True,
) -> Variable | list[Variable]:
    """Return `output` (one variable or several) with every use of a key of `replace` replaced by its value.

    All are replaced at once: nothing is replaced inside a replacement. Parts that depend on no key are not
    copied. With `rebuild_strict`, refuse (TypeError) a replacement that may hold values which its key may
    not; without, Ops are applied again to what has another type. Without `copy_inputs_over` the result has
    new inputs, too.
    """
    outputs = [output] if isinstance(output, Variable) else list(output)
    result = rebuild(outputs, _memo(dict(replace or {}), rebuild_strict))
    if not copy_inputs_over:
        result = clone([v for v in graph_inputs(result) if not isinstance(v, Constant)], result)[1]
    return result[0] if isinstance(output, Variable) else result


def _memo(pairs: Mapping[Variable, Variable], is_strict: bool) -> dict[Variable, Variable]:
    return {old: old.type.filter_variable(new) if is_strict else new for old, new in pairs.items()}


@overload
def graph_replace(
    outputs: Variable, replace: Replacements | None = None, *, strict: bool = True
) -> Variable: ...
@overload
def graph_replace(
    outputs: Sequence[Variable], replace: Replacements | None = None, *, strict: bool = True
) -> list[Variable]: ...
def graph_replace(
    outputs: Variable | Sequence[Variable], replace: Replacements | None = None, *, strict: bool = True
) -> Variable | list[Variable]:
    """Return `clone_replace(outputs, replace)`; with `strict` refuse (ValueError) a key that `outputs` does
    not depend on."""
    given = [outputs] if isinstance(outputs, Variable) else list(outputs)
    pairs = dict(replace or {})
    if strict and pairs:
        unused = set(pairs).difference(ancestors(given))
        if unused:
            names = sorted(map(str, unused))
            raise ValueError(
                f"Replacing {', '.join(names)}: Some replacements were not used; the outputs do not depend "
                "on them; leave them out"
            )
    result = rebuild(given, _memo(pairs, True))
    return result[0] if isinstance(outputs, Variable) else result


def _on_inputs(node: Apply, inputs: Sequence[Variable]) -> Sequence[Variable]:
    return node.clone_with_new_inputs(inputs, strict=False).outputs


def rebuild(
    outputs: Sequence[Variable],
    memo: Mapping[Variable, Variable],
    apply: Callable[[Apply, Sequence[Variable]], Sequence[Variable]] = _on_inputs,
) -> list[Variable]:
    """Return `outputs` with every use of a key of `memo` replaced by its value; unchanged nodes are kept.

    `apply` returns the outputs of a node on other inputs.
    """
    done: dict[Variable, Variable] = dict(memo)
    for node in io_toposort(memo, outputs):
        inputs = [done.get(variable, variable) for variable in node.inputs]
        if all(new is old for new, old in zip(inputs, node.inputs, strict=True)):
            continue
        for old, new in zip(node.outputs, apply(node, inputs), strict=True):
            done.setdefault(old, new)
    return [done.get(variable, variable) for variable in outputs]


def equal_computations(
    xs: Sequence[Any],
    ys: Sequence[Any],
    in_xs: Sequence[Variable] | None = None,
    in_ys: Sequence[Variable] | None = None,
    strict_dtype: bool = True,
) -> bool:
    """Return True if each of `xs` computes the same as its counterpart in `ys`.

    That is, they apply equal Ops to the same variables, with each of `in_xs` matched to its counterpart in
    `in_ys`. Items that are no variables are values, and equal constants with that value. Constants are
    equal bit for bit and in type; without `strict_dtype`, by value. Refuse (ValueError) `xs` and `ys` of
    different lengths.
    """
    if len(xs) != len(ys):
        raise ValueError(
            f"Comparing graphs: {len(xs)} are to be compared with {len(ys)}; give as many of both"
        )
    in_xs, in_ys = in_xs or (), in_ys or ()
    if len(in_xs) != len(in_ys) or any(x.type != y.type for x, y in zip(in_xs, in_ys, strict=True)):
        return False
    same = set(zip(in_xs, in_ys, strict=True))
    stack = list(zip(xs, ys, strict=True))
    while stack:
        x, y = stack.pop()
        if not isinstance(x, Variable) or not isinstance(y, Variable):
            if not _equal_values(x, y):
                return False
        elif x is not y and (x, y) not in same:
            if not _equal_so_far(x, y, strict_dtype):
                return False
            same.add((x, y))
            if x.owner is not None and y.owner is not None:
                stack += zip(x.owner.inputs, y.owner.inputs, strict=True)
    return True


def _equal_values(x: Any, y: Any) -> bool:
    """Return True if two values are equal; a constant counts as its data."""
    x, y = (v.data if isinstance(v, Constant) else v for v in (x, y))
    if isinstance(x, Variable) or isinstance(y, Variable):
        return False
    return np.array_equal(x, y, equal_nan=True)


def _equal_so_far(x: Variable, y: Variable, strict_dtype: bool) -> bool:
    """Return True if two variables are equal provided that the inputs of their owners are."""
    first, second = x.owner, y.owner
    if first is not None and second is not None:
        numbers = [(owner.nin, owner.nout) for owner in (first, second)]
        return first.op == second.op and x.index == y.index and numbers[0] == numbers[1]
    if not isinstance(x, Constant) or not isinstance(y, Constant):
        return False
    if not strict_dtype:
        return _equal_values(x, y)
    return x.type == y.type and x.type.same_data(x.data, y.data)
