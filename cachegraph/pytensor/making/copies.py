"""Recognition of copied functions: PyTensor gives a copy's maker a graph without saying whose it is."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from pytensor.graph.basic import Constant

_MARK = "_cachegraph_maker"


def mark(inputs: Sequence[Any], maker: Any) -> None:
    """Record `maker` on these inputs (`In`), so that copies of them tell of it."""
    reference = weakref.ref(maker)
    for spec in inputs:
        setattr(spec, _MARK, reference)


def unmark(inputs: Sequence[Any]) -> Any:
    """Return the one maker whose inputs these are copies of, or None; remove the records."""
    references = [vars(spec).pop(_MARK, None) for spec in inputs]
    makers = {id(reference): reference for reference in references}
    if len(makers) != 1 or references[0] is None:
        return None
    return references[0]()


def is_same_graph(first: Any, second: Any) -> bool:
    """Return True if two graphs apply the same Op objects to the same constants and input positions."""
    if len(first.inputs) != len(second.inputs) or len(first.outputs) != len(second.outputs):
        return False
    pairs: dict[Any, Any] = dict(zip(first.inputs, second.inputs, strict=True))
    if any(a.type != b.type for a, b in pairs.items()):
        return False
    waiting = list(zip(first.outputs, second.outputs, strict=True))
    while waiting:
        a, b = waiting.pop()
        if a in pairs:
            if pairs[a] is not b:
                return False
            continue
        if a.owner is None or b.owner is None:
            if a is not b or not isinstance(a, Constant):
                return False
            continue
        if not _is_same_node(a, b):
            return False
        pairs.update(zip(a.owner.outputs, b.owner.outputs, strict=True))
        waiting += zip(a.owner.inputs, b.owner.inputs, strict=True)
    return True


def _is_same_node(a: Any, b: Any) -> bool:
    """Return True if the same Op computes `a` and `b`, of as many variables, with the same types."""
    first, second = a.owner, b.owner
    return (
        first.op is second.op
        and a.index == b.index
        and len(first.inputs) == len(second.inputs)
        and [variable.type for variable in first.outputs] == [variable.type for variable in second.outputs]
    )
