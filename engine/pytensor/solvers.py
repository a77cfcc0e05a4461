"""PyTensor's `minimize` and `root` on functions of the engine.

PyTensor's own `perform` calls SciPy. SciPy calls a function at each point: the objective or the equations,
with their derivatives. PyTensor would link it itself, and compile a module of C for each of its nodes.
"""

from __future__ import annotations

from copy import copy
from typing import Any

from pytensor.compile.inner_function import link_only_mode
from pytensor.compile.mode import predefined_linkers
from pytensor.graph.basic import Apply
from pytensor.tensor.optimize import ScipyWrapperOp

LINKER = "engine"
"""The engine's linker in PyTensor's registry."""


def solving_by_engine(node: Any) -> Any:
    """Return a node that does what `node` does, but whose Op, if it is a solver, has its function from the
    engine; `node` where the engine is not registered."""
    if not isinstance(node.op, ScipyWrapperOp) or LINKER not in predefined_linkers:
        return node
    op = copy(node.op)
    op._fn_wrapped = None
    op._fn = op.compile_fn(link_only_mode(LINKER))
    return Apply(op, node.inputs, [output.clone() for output in node.outputs])
