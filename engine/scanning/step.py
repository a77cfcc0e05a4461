"""What the function that describes a step returns: outputs, updates of shared variables, whether to stop."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from engine.graph.variables import Variable
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.math import neq

ORDER = ("outputs", "updates", "until")


class until:  # the name that PyTensor's users know
    """Returned by a step: the loop ends after the step in which `condition`, of 0 dimensions, is true.

    Refuses (TypeError) a condition of more dimensions.
    """

    def __init__(self, condition: Any) -> None:
        found = as_tensor_variable(condition)
        if found.type.ndim != 0:
            raise TypeError(
                f"Ending a loop: the condition {found} has type {found.type}; it must have 0 dimensions"
            )
        self.condition = found if found.type.dtype == "bool" else neq(found, 0)


@dataclass
class Step:
    """What a step computes."""

    outputs: list[Any] = field(default_factory=list)
    updates: dict[Any, Any] = field(default_factory=dict)
    stop: Any = None


def parse_step(returned: Any) -> Step:
    """What `returned` says: outputs, updates and `until`, each of which may be missing, in this order.

    Outputs are a variable or several, updates a dictionary or pairs. Refuses (ValueError) everything else.
    """
    parts: list[Any] = (
        [returned] if _kind(returned) else list(returned) if isinstance(returned, list | tuple) else [None]
    )
    kinds = [_kind(part) for part in parts]
    if None in kinds or kinds != [kind for kind in ORDER if kind in kinds]:
        raise ValueError(
            f"Describing a step: the function returned {returned!r}; it must return outputs (a variable, or a list of "
            "variables), updates (a dictionary, or pairs) and until(condition), or some of these, in this order. Numbers "
            "become variables by constant(...)"
        )
    step = Step()
    for kind, part in zip(kinds, parts, strict=True):
        if kind == "outputs":
            step.outputs = [part] if isinstance(part, Variable) else list(part)
        elif kind == "updates":
            step.updates = {variable: as_tensor_variable(value) for variable, value in dict(part).items()}
        else:
            step.stop = part.condition
    return step


def _kind(part: Any) -> str | None:
    """Which of `ORDER` it is; None if it is none."""
    if isinstance(part, until):
        return "until"
    if isinstance(part, dict):
        return "updates"
    if isinstance(part, Variable):
        return "outputs"
    if not isinstance(part, list | tuple):
        return None
    if all(isinstance(item, Variable) for item in part):
        return "outputs"
    pairs = all(isinstance(item, list | tuple) and len(item) == 2 for item in part)
    return "updates" if pairs and all(isinstance(item[0], Variable) for item in part) else None
