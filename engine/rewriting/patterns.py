"""`PatternNodeRewriter`: a rewrite given as a pattern of Ops and what replaces its matches.

    pattern := (op, pattern...)                          a node of this Op; those of add and mul match its
                                                         arguments in any order
             | (OpPattern(class, parameter=...), pattern...)
             | {"pattern": pattern, "constraint": f}     only if f(variable) is true
             | "name"                                    any variable, the same in all places
             | number | constant                         a constant equal to it
    result  := (op, result...) | "name" | number | constant | f(fgraph, node, found)

The grammar is PyTensor's (`pytensor.graph.rewriting.basic.PatternNodeRewriter`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from engine import scalar
from engine.graph import Apply, Constant, FunctionGraph, Op, Variable
from engine.rewriting.rewriters import NodeRewriter, Replacements, Tracked
from engine.tensor.conversion import constant
from engine.tensor.elemwise import Elemwise, cast
from engine.tensor.matching import scalar_value

Found = dict[str, Any]
"""Variables and parameters of Ops, by the names of a pattern."""

COMMUTATIVE = (
    *(scalar.add, scalar.mul, scalar.maximum, scalar.minimum, scalar.eq, scalar.neq),
    *(scalar.and_, scalar.or_, scalar.xor),
)


class LiteralString:
    """A string that an OpPattern compares with a parameter, instead of a name."""

    def __init__(self, value: str) -> None:
        self.value = value


class OpPattern:
    """An Op of a class whose parameters equal those given; strings among these are names."""

    def __init__(
        self,
        op_type: type[Op] | tuple[type[Op], ...],
        parameters: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> None:
        self.op_type = op_type
        self.parameters = {**(parameters or {}), **more}


class PatternNodeRewriter(NodeRewriter):
    """A rewrite of the nodes that match `in_pattern`.

    Nodes within a match have no other clients, unless `allow_multiple_clients`. A result of another type
    is cast if `allow_cast`, and else refused, as is a result of None or False from a function. With
    `tracks`, `get_nodes(fgraph, node)` gives the nodes to try for each node of a tracked Op. Raises
    TypeError for a pattern that is not a tuple which begins with an Op.
    """

    def __init__(
        self,
        in_pattern: tuple[Any, ...],
        out_pattern: Any,
        allow_multiple_clients: bool = False,
        name: str | None = None,
        tracks: Sequence[Tracked] = (),
        get_nodes: Callable[[FunctionGraph, Apply], Iterator[Apply | None]] | None = None,
        allow_cast: bool = True,
    ) -> None:
        if not isinstance(in_pattern, tuple) or not isinstance(in_pattern[0], Op | OpPattern):
            raise TypeError(
                f"Making a PatternNodeRewriter: the pattern is {in_pattern!r}; it must be a tuple that "
                "begins with an Op or an OpPattern"
            )
        if tracks and get_nodes is None:
            raise ValueError("Making a PatternNodeRewriter: with `tracks`, `get_nodes` is needed too")
        self.in_pattern, self.out_pattern = in_pattern, out_pattern
        self.allow_multiple_clients, self.allow_cast = allow_multiple_clients, allow_cast
        self.name = name or f"{in_pattern} -> {out_pattern}"
        self._tracks, self.get_nodes = tuple(tracks), get_nodes

    def tracks(self) -> Sequence[Tracked]:
        if self._tracks:
            return self._tracks
        first = self.in_pattern[0]
        if isinstance(first, Op):
            return (first,)
        return first.op_type if isinstance(first.op_type, tuple) else (first.op_type,)

    def transform(self, fgraph: FunctionGraph, node: Apply) -> Replacements:
        """Return what replaces the first output of `node`, or of the nodes that `get_nodes` gives for it."""
        if self.get_nodes is None or not self._tracks:
            return self._replacement(fgraph, node)
        for other in self.get_nodes(fgraph, node):
            found = None if other is None else self._replacement(fgraph, other)
            if found and other is not None:
                fgraph.replace(other.outputs[0], found[0], reason=self.name)
                return None
        return None

    def _replacement(self, fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
        if len(node.outputs) != 1:
            return None
        output = node.outputs[0]
        matching = _Matching(fgraph, output, self.allow_multiple_clients)
        found = next(matching.of(self.in_pattern, output, {}), None)
        if found is None:
            return None
        result = self._built(fgraph, node, found)
        if result is None or output.type.is_super(result.type):
            return None if result is None else [result]
        if not self.allow_cast or result.type.ndim != output.type.ndim:
            return None
        converted = cast(result, output.type.dtype)
        return [converted] if output.type.is_super(converted.type) else None

    def _built(self, fgraph: FunctionGraph, node: Apply, found: Found) -> Variable | None:
        if callable(self.out_pattern) and not isinstance(self.out_pattern, Variable):
            result = self.out_pattern(fgraph, node, found)
            return result if isinstance(result, Variable) else None
        built = _build(self.out_pattern, found)
        if isinstance(built, Variable):
            return built
        return constant(np.asarray(built, dtype=node.outputs[0].type.dtype))


class _Matching:
    """The search for matches below `root`."""

    def __init__(self, fgraph: FunctionGraph, root: Variable, shared: bool) -> None:
        self.fgraph, self.root, self.shared = fgraph, root, shared

    def of(self, pattern: Any, variable: Variable, found: Found) -> Iterator[Found]:
        """Yield `found` extended by each match of `pattern` with `variable`."""
        if isinstance(pattern, dict):
            constraint = pattern["constraint"]
            yield from (f for f in self.of(pattern["pattern"], variable, found) if constraint(variable))
        elif isinstance(pattern, str):
            if found.get(pattern, variable) is variable:
                yield {**found, pattern: variable}
        elif isinstance(pattern, tuple):
            yield from self._of_node(pattern, variable, found)
        elif _is_constant(variable, pattern):
            yield found

    def _of_node(self, pattern: tuple[Any, ...], variable: Variable, found: Found) -> Iterator[Found]:
        node = variable.owner
        if node is None or len(node.inputs) != len(pattern) - 1:
            return
        if variable is not self.root and not self.shared and len(self.fgraph.clients[variable]) > 1:
            return
        for start in _match_op(pattern[0], node.op, found):
            for inputs in _orders(node):
                yield from self._of_all(pattern[1:], inputs, start)

    def _of_all(
        self, patterns: Sequence[Any], variables: Sequence[Variable], found: Found
    ) -> Iterator[Found]:
        if not patterns:
            yield found
            return
        for first in self.of(patterns[0], variables[0], found):
            yield from self._of_all(patterns[1:], variables[1:], first)


def _orders(node: Apply) -> Iterator[Sequence[Variable]]:
    """Yield the inputs of `node` in each order in which they mean the same."""
    yield node.inputs
    if isinstance(node.op, Elemwise) and node.op.scalar_op in COMMUTATIVE:
        yield node.inputs[::-1]


def _match_op(pattern: Op | OpPattern, op: Op, found: Found) -> Iterator[Found]:
    if isinstance(pattern, Op):
        if pattern == op:
            yield found
        return
    if not isinstance(op, pattern.op_type):
        return
    for name, wanted in pattern.parameters.items():
        value = getattr(op, name)
        if isinstance(wanted, OpPattern):
            matched = next(_match_op(wanted, value, found), None)
            if matched is None:
                return
            found = matched
        elif isinstance(wanted, str):
            if found.get(wanted, value) != value:
                return
            found = {**found, wanted: value}
        elif (wanted.value if isinstance(wanted, LiteralString) else wanted) != value:
            return
    yield found


def _is_constant(variable: Variable, wanted: Any) -> bool:
    """Return True for a constant equal to a number, or equal in type and value to another constant."""
    if isinstance(wanted, Constant):
        return isinstance(variable, Constant) and variable.signature() == wanted.signature()
    return bool(scalar_value(variable) == wanted)


def _build(pattern: Any, found: Found) -> Any:
    """Return the variable that a result describes, or the number that it is."""
    if isinstance(pattern, str):
        return found[pattern]
    if not isinstance(pattern, tuple):
        return pattern
    return pattern[0](*(_build(part, found) for part in pattern[1:]))
