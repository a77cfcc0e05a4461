"""Replacements for nodes with one output, refused where their type does not fit."""

from __future__ import annotations

from typing import Any

from engine.graph import Apply, Variable
from engine.tensor.matching import tensor_type_of


def typed(node: Apply, result: Any) -> list[Variable] | None:
    """Return `result` for the output of `node`; None if its type is not the output's or a narrower one."""
    return [result] if node.outputs[0].type.is_super(result.type) else None


def typed_alike(node: Apply, result: Any) -> list[Variable] | None:
    """Return what `typed` does, or None if other axes of `result` broadcast than of the output of `node`."""
    alike = tensor_type_of(result).broadcastable == tensor_type_of(node.outputs[0]).broadcastable
    return typed(node, result) if alike else None
