"""What the adapter replaces in PyTensor."""

from __future__ import annotations

from typing import Any


def hooked() -> dict[str, Any]:
    """Return each replaced place -> the object that is there now."""
    from pytensor.compile import rewriting
    from pytensor.compile.mode import Mode
    from pytensor.scan.rewriting import db
    from pytensor.tensor.rewriting import optimize
    from pytensor.tensor.rewriting.basic import unconditional_constant_folding

    return {
        "Mode.function_maker": Mode.__dict__["function_maker"],
        "compile.rewriting": rewriting.rewrite_inner_graph,
        "scan.rewriting": db.rewrite_inner_graph,
        "tensor.rewriting": optimize.rewrite_inner_graph,
        "folding": vars(unconditional_constant_folding).get("transform", "its class's"),
    }
