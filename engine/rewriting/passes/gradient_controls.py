"""Ops that change gradients alone: once gradients are taken, they are their inputs."""

from __future__ import annotations

from engine.graph import Apply, FunctionGraph, Variable
from engine.rewriting.rewriters import node_rewriter
from engine.tensor.gradient_control import GradientControl


@node_rewriter([GradientControl])
def local_gradient_control(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """zero_grad(x), disconnected_grad(x), grad_clip(x, ...), ... -> x"""
    return [node.inputs[0]]
