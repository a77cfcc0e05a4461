"""`explain`: who computes the nodes of a function that PyTensor made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from engine.pytensor.nodes import NodeStage
from engine.pytensor.program import StagedProgram
from engine.pytensor.steps import EngineStep


def explain(function: Any) -> str:
    """Return a text of a line for each stage of a function of PyTensor's (or of a PyMC point function).

    It says how many nodes the engine computes, how that code was found and the seconds it took, and for each
    Op that PyTensor computes the reason. What is computed once, of data alone, comes first. Of a model that
    nutpie compiled it shows both functions.
    """
    if hasattr(function, "expand_func"):
        parts = {"density": function.logp_func, "all variables": function.expand_func}
        return "\n".join(
            f"{name}: {line}" for name, part in parts.items() for line in explain(part).split("\n")
        )
    made = getattr(function, "f", function)
    program = getattr(made.vm, "jit_fn", None)
    if not isinstance(program, StagedProgram):
        other = f"PyTensor computes it: its linker is {type(made.maker.linker).__name__}, not the engine's"
        why = getattr(getattr(made.maker, "cache_info", None), "reason", "")
        return f"{other} ({why})" if why else other
    lines = [f"once, of data alone: {line}" for line in _lines(program.once_stages, program.once_steps)]
    lines += _lines(program.stages, program.steps)
    return "\n".join(lines) or "there is nothing to compute"


def _lines(stages: Sequence[Any], steps: Sequence[Any]) -> list[str]:
    lines = []
    for stage, step in zip(stages, steps, strict=True):
        if isinstance(step, EngineStep):
            found = step.function.cache_info
            spent = f", {found.seconds['total']:.2f} s" if "total" in found.seconds else ""
            lines.append(f"the engine computes {len(stage.nodes)} nodes: {found.outcome}{spent}")
            lines += [f"PyTensor computed them in {n} calls: {why}" for why, n in step.repeats.items()]
        elif isinstance(stage, NodeStage):
            counts = Counter(zip([str(node.op) for node in stage.nodes], stage.reasons, strict=True))
            lines += [f"PyTensor computes {op} ({n}): {why}" for (op, why), n in counts.items()]
    return lines
