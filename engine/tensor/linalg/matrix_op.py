"""`MatrixOp`: the common base of the Ops of linear algebra."""

from __future__ import annotations

from typing import Any

from engine.graph.op import Op


class MatrixOp(Op):
    """Base class of Ops on matrices, which `batched` applies over leading axes.

    `gufunc_signature` names their own axes.
    """

    gufunc_signature: Any

    @property
    def core_op(self) -> MatrixOp:
        """This Op: that of one matrix, as PyTensor asks its Blockwise for it."""
        return self
