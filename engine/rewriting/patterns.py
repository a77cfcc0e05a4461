"""`PatternNodeRewriter`: a rewrite given as a pattern of Ops and what replaces its matches.

Patterns are those of `unification`. A result is a pattern, or a function f(fgraph, node, found) of what was
found by name. The grammar is PyTensor's (`pytensor.graph.rewriting.basic.PatternNodeRewriter`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from engine.graph import Apply, FunctionGraph, Op, Variable
from engine.rewriting.rewriters import NodeRewriter, Replacements, Tracked
from engine.rewriting.unification import (
    Asterisk,
    Bindings,
    Names,
    PatternNode,
    PatternVar,
    convert_strs_to_vars,
    match_pattern,
    reify_pattern,
)
from engine.tensor.conversion import constant
from engine.tensor.elemwise import cast
from engine.tensor.type import TensorType


class PatternNodeRewriter(NodeRewriter):
    """A rewrite of the nodes that match `in_pattern`.

    Nodes within a match have no other clients, unless `allow_multiple_clients`. A result of another type
    is cast if `allow_cast`, and else refused, as is a result of None or False from a function. With
    `tracks`, `get_nodes(fgraph, node)` gives the nodes to try for each node of a tracked Op. The result gets
    the tag `values_eq_approx`, which says how its values may be compared with those it replaces. Raises
    TypeError for a pattern that is not a tuple which begins with an Op.
    """

    def __init__(
        self,
        in_pattern: tuple[Any, ...],
        out_pattern: Any,
        allow_multiple_clients: bool = False,
        name: str | None = None,
        tracks: Sequence[Tracked] = (),
        get_nodes: Callable[[FunctionGraph, Apply], Iterable[Apply | None]] | None = None,
        values_eq_approx: Callable[[Any, Any], bool] | None = None,
        allow_cast: bool = True,
    ) -> None:
        names: Names = {}
        self.in_pattern = convert_strs_to_vars(in_pattern, names)
        if not isinstance(self.in_pattern, PatternNode):
            raise TypeError(
                f"Making a PatternNodeRewriter: the pattern is {in_pattern!r}; it must be a tuple that "
                "begins with an Op or an OpPattern"
            )
        if tracks and get_nodes is None:
            raise ValueError("Making a PatternNodeRewriter: with `tracks`, `get_nodes` is needed too")
        self.out_pattern = convert_strs_to_vars(out_pattern, names)
        self.allow_multiple_clients, self.allow_cast = allow_multiple_clients, allow_cast
        self.values_eq_approx = values_eq_approx
        self.name = name or f"{_text(self.in_pattern)} -> {_text(self.out_pattern)}"
        self._tracks, self.get_nodes = tuple(tracks), get_nodes

    def tracks(self) -> Sequence[Tracked]:
        if self._tracks:
            return self._tracks
        first = self.in_pattern.op_match
        if isinstance(first, Op):
            return (first,)
        return getattr(first.op_type, "__args__", first.op_type) if _is_several(first) else (first.op_type,)

    def transform(self, fgraph: FunctionGraph, node: Apply) -> Replacements:
        """Return what replaces the output of `node`, or of the first of `get_nodes` that matches."""
        if self.get_nodes is None:
            return self._replacement(fgraph, node)
        for other in self.get_nodes(fgraph, node):
            found = None if other is None else self._replacement(fgraph, other)
            if found and other is not None:
                return dict(zip(other.outputs, found, strict=True))
        return None

    def _replacement(self, fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
        if len(node.outputs) != 1:
            return None
        old = node.outputs[0]

        def may_go(variable: Variable) -> bool:
            return self.allow_multiple_clients or len(fgraph.clients[variable]) == 1

        found = match_pattern(self.in_pattern, node, may_go=may_go)
        result = None if found is None else self._built(fgraph, node, found)
        if result is not None and not old.type.is_super(result.type):
            result = self._as_type(result, old.type)
        if result is None:
            return None
        if self.values_eq_approx is not None:
            result.tag.values_eq_approx = self.values_eq_approx
        return [result]

    def _built(self, fgraph: FunctionGraph, node: Apply, found: Bindings) -> Variable | None:
        pattern = self.out_pattern
        if callable(pattern) and not isinstance(pattern, Variable):
            result = pattern(fgraph, node, {name.token: value for name, value in found.items()})
        else:
            result = reify_pattern(pattern, found)
            type = node.outputs[0].type
            if not isinstance(result, Variable) and isinstance(type, TensorType):
                result = constant(np.asarray(result, dtype=type.dtype))
        return result if isinstance(result, Variable) else None

    def _as_type(self, result: Variable, wanted: Any) -> Variable | None:
        is_tensor = isinstance(result.type, TensorType) and isinstance(wanted, TensorType)
        if not self.allow_cast or not is_tensor or result.type.ndim != wanted.ndim:
            return None
        converted: Variable = cast(result, wanted.dtype)
        return converted if wanted.is_super(converted.type) else None


def _is_several(pattern: Any) -> bool:
    return not isinstance(pattern.op_type, type)


def _text(pattern: Any) -> str:
    """Return a pattern as text."""
    if isinstance(pattern, PatternNode):
        return f"{pattern.op_match}({', '.join(map(_text, pattern.inputs))})"
    if isinstance(pattern, PatternVar):
        return pattern.token if pattern.constraint is None else f"{pattern.token} subject to a constraint"
    return f"*{pattern.token}" if isinstance(pattern, Asterisk) else str(pattern)
