"""`explain`: who computes the nodes of a function that PyTensor made."""

from __future__ import annotations

from collections import Counter
from typing import Any

from engine.pytensor.linker import EngineStep, StagedProgram
from engine.pytensor.stages import NodeStage


def explain(function: Any) -> str:
    """Return a text of a line for each stage of a function of PyTensor's (or of a PyMC point function).

    It says how many nodes the engine computes and how that code was found, and for each Op that PyTensor
    computes the reason.
    """
    made = getattr(function, "f", function)
    program = getattr(made.vm, "jit_fn", None)
    if not isinstance(program, StagedProgram):
        return f"PyTensor computes it: its linker is {type(made.maker.linker).__name__}, not the engine's"
    lines = []
    for stage, step in zip(program.stages, program.steps, strict=True):
        if isinstance(step, EngineStep):
            found = step.function.cache_info
            lines.append(f"the engine computes {len(stage.nodes)} nodes: {found.outcome}")
        elif isinstance(stage, NodeStage):
            counts = Counter(zip([str(node.op) for node in stage.nodes], stage.reasons, strict=True))
            lines += [f"PyTensor computes {op} ({n}): {why}" for (op, why), n in counts.items()]
    return "\n".join(lines) or "there is nothing to compute"
