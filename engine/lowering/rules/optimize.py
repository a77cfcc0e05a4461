"""Lowering of solvers: SciPy's, called back by the program, on a compiled function of their own."""

from __future__ import annotations

from typing import cast

from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.inner.optimize_ops import Minimize, MinimizeScalar, Root, RootScalar, SolverOp
from engine.lowering.lower import Lowering
from engine.lowering.op_rule import OpRule
from engine.runtime.callbacks import Callback


def _lower_solver(lowering: Lowering, node: Apply) -> None:
    solution, success = node.outputs
    lengths = lowering.dims_of(node.inputs[0])
    if not (lowering.is_needed(solution) or lowering.is_needed(success)):
        lowering.dims.update({solution: lengths, success: ()})
        return
    op = cast(SolverOp, node.op)
    lowering.invoke(node, Callback("optimize", 1, op.description, (op.fgraph,)), [lengths, ()])


RULES: dict[type[Op], OpRule] = {
    op: OpRule(_lower_solver) for op in (Minimize, MinimizeScalar, Root, RootScalar)
}
