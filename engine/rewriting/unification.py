"""Unification: patterns of Ops and variables, their matches in a graph, and graphs built from patterns.

A pattern is written with tuples and strings; `convert_strs_to_vars` makes it an object:

    pattern := (op, pattern...)                         a node of this Op; those of commutative Ops match
                                                        their inputs in any order
             | (OpPattern(class, parameter=...), pattern...)
             | "name"                                   any variable, the same in all places
             | {"pattern": "name", "constraint": f}     only if f(variable) is true
             | Asterisk("name")                         all further inputs, as a tuple; in the last place.
                                                        Those of a sum or product of several are its terms
             | number | array | constant                a constant equal to it

The names and the grammar are PyTensor's (`pytensor.graph.rewriting.unify`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import UnionType
from typing import Any

import numpy as np
from msgspec import Struct

from engine import scalar
from engine.graph import Apply, Constant, Op, Variable
from engine.tensor.axes import with_axis
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.matching import scalar_value, tensor_type_of
from engine.tensor.reduction import Reduction

COMMUTATIVE = frozenset(
    (
        *(scalar.add, scalar.mul, scalar.maximum, scalar.minimum, scalar.eq, scalar.neq),
        *(scalar.and_, scalar.or_, scalar.xor),
    )
)


ASSOCIATIVE = COMMUTATIVE - {scalar.eq, scalar.neq}


class LiteralString(Struct, frozen=True):
    """A string that an OpPattern compares with a parameter, instead of a name."""

    value: str


class PatternVar:
    """A name in a pattern: any variable for which `constraint` is true."""

    def __init__(self, token: str, constraint: Callable[[Any], bool] | None = None) -> None:
        self.token, self.constraint = token, constraint

    def __repr__(self) -> str:
        return f"PatternVar({self.token!r}{'' if self.constraint is None else ', constraint=...'})"


class ConstrainedVar(PatternVar):
    """A `PatternVar` that begins with its constraint."""

    def __init__(self, constraint: Callable[[Any], bool], token: str | None = None, prefix: str = "") -> None:
        super().__init__(f"{prefix}_constrained" if token is None else token, constraint)


class Asterisk:
    """A name for all inputs of a node from here on: a tuple of variables."""

    def __init__(self, token: str) -> None:
        self.token = token

    def __repr__(self) -> str:
        return f"Asterisk({self.token!r})"


Bindings = Mapping[PatternVar | Asterisk, Any]
"""Variables and parameters of Ops by the parts of a pattern that stand for them."""
Names = dict[str, "PatternVar | Asterisk"]


class OpPattern:
    """An Op of a class, or of one of several, whose parameters equal those given; other ones are free.

    A parameter is a value, a name, a `LiteralString` or another OpPattern.
    """

    def __init__(
        self,
        op_type: type | tuple[type, ...] | UnionType,
        parameters: Mapping[str, Any] | Sequence[tuple[str, Any]] | None = None,
        **more: Any,
    ) -> None:
        if more and parameters is not None:
            raise ValueError(f"Making an OpPattern of {op_type}: give `parameters` or keywords, not both")
        self.op_type = op_type
        self.parameters = tuple(sorted(dict(parameters or more).items()))

    def match_op(self, op: Op) -> bool:
        """Return True if `op` is of the class, with these parameters."""
        return isinstance(op, self.op_type) and self.match_parameters(op)

    def match_parameters(self, op: Op) -> bool:
        """Return True if the parameters of `op`, which is of the class, are these."""
        return next(_parameters_of(self, op, {}), None) is not None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OpPattern):
            return NotImplemented
        return self.op_type == other.op_type and self.parameters == other.parameters

    def __hash__(self) -> int:
        return hash((self.op_type, self.parameters))

    def __repr__(self) -> str:
        return f"OpPattern({self.op_type}, {', '.join(f'{name}={v}' for name, v in self.parameters)})"


class PatternNode:
    """A node in a pattern: an Op or an OpPattern, and patterns of its inputs."""

    def __init__(self, op_match: Op | OpPattern, inputs: tuple[Any, ...]) -> None:
        if any(isinstance(item, Asterisk) for item in inputs[:-1]):
            raise TypeError(f"Making a pattern of {op_match}: an Asterisk must be the last of {inputs}")
        self.op_match, self.inputs = op_match, inputs

    def __repr__(self) -> str:
        return f"PatternNode({self.op_match!r}, {self.inputs!r})"


def convert_strs_to_vars(pattern: Any, var_map: Names | None = None) -> Any:
    """Return a pattern written with tuples and strings as an object; other things stay as they are.

    `var_map` has the objects for names, and gets those of new ones. Raises TypeError for a tuple that does
    not begin with an Op or OpPattern, a constraint of something else than a name, and a name of both a
    variable and an Asterisk; ValueError for a name with two constraints.
    """
    names = {} if var_map is None else var_map
    if isinstance(pattern, str):
        return _named(names, PatternVar(pattern))
    if isinstance(pattern, Asterisk):
        return _named(names, pattern)
    if isinstance(pattern, LiteralString):
        return pattern.value
    if isinstance(pattern, dict):
        if not isinstance(pattern["pattern"], str):
            raise TypeError(f"Making a pattern: the constraint in {pattern} is not for a name")
        return _named(names, PatternVar(pattern["pattern"], pattern["constraint"]))
    if isinstance(pattern, OpPattern):
        return OpPattern(pattern.op_type, [(k, _parameter(v, names)) for k, v in pattern.parameters])
    if isinstance(pattern, tuple):
        return _node_of(pattern, names)
    return as_tensor_variable(pattern) if isinstance(pattern, np.ndarray) else pattern


def _parameter(value: Any, names: Names) -> Any:
    """Return a parameter of an OpPattern; tuples and arrays in it are values."""
    is_pattern = isinstance(value, str | LiteralString | OpPattern | dict)
    return convert_strs_to_vars(value, names) if is_pattern else value


def _node_of(pattern: tuple[Any, ...], names: Names) -> PatternNode:
    if not pattern or not isinstance(pattern[0], Op | OpPattern):
        raise TypeError(
            f"Making a pattern of {pattern!r}: it must be a tuple that begins with an Op or an OpPattern"
        )
    head = convert_strs_to_vars(pattern[0], names)
    return PatternNode(head, tuple([convert_strs_to_vars(part, names) for part in pattern[1:]]))


def _named(names: Names, new: PatternVar | Asterisk) -> PatternVar | Asterisk:
    """Return the object that has the name of `new`, with its constraint; `new` if it is the first."""
    found = names.setdefault(new.token, new)
    if isinstance(found, Asterisk) != isinstance(new, Asterisk):
        raise TypeError(f"Making a pattern: {new.token!r} is both an Asterisk and one variable")
    if isinstance(found, PatternVar) and isinstance(new, PatternVar) and new.constraint is not None:
        if found.constraint not in (None, new.constraint):
            raise ValueError(f"Making a pattern: {new.token!r} has two constraints")
        found.constraint = new.constraint
    return found


def match_pattern(
    pattern: PatternNode,
    node: Apply,
    subs: Bindings | None = None,
    may_go: Callable[[Variable], bool] = lambda variable: True,
) -> Bindings | None:
    """Return `subs` with what the names of `pattern` stand for in `node`; None if it does not match.

    The variables between the names and `node` are only those for which `may_go` is true.
    """
    return next(_matches(pattern, node, dict(subs or {}), may_go), None)


def _matches(
    pattern: PatternNode, node: Apply, bound: Bindings, may_go: Callable[[Variable], bool]
) -> Iterator[Bindings]:
    any_number = bool(pattern.inputs) and isinstance(pattern.inputs[-1], Asterisk)
    inputs = _terms_of(node, may_go) if any_number else tuple(node.inputs)
    missing = len(pattern.inputs) - any_number - len(inputs)
    if missing > 0 or (missing < 0 and not any_number):
        return
    in_any_order = _is_commutative(node.op)
    for op in _forms_of(node):
        for start in _ops_of(pattern.op_match, op, bound):
            yield from _assigned(pattern.inputs, inputs, in_any_order, start, may_go)


def _terms_of(node: Apply, may_go: Callable[[Variable], bool]) -> tuple[Variable, ...]:
    """Return the inputs of `node`; of an associative operation those of the same one within, too.

    One that computes in another dtype rounds or wraps by itself: it is a term.
    """
    if getattr(node.op, "scalar_op", node.op) not in ASSOCIATIVE:
        return tuple(node.inputs)
    due, terms, waiting = node.outputs[0].type.dtype, list[Variable](), list(node.inputs)[::-1]
    while waiting:
        variable = waiting.pop()
        inner = variable.owner
        if inner is not None and inner.op == node.op and variable.type.dtype == due and may_go(variable):
            waiting += inner.inputs[::-1]
        else:
            terms.append(variable)
    return tuple(terms)


def _forms_of(node: Apply) -> Iterator[Op]:
    """Yield the Op of `node`, and of a reduction over all axes the one that has None for them."""
    yield node.op
    if isinstance(node.op, Reduction) and len(node.op.axis) == tensor_type_of(node.inputs[0]).ndim:
        yield with_axis(node.op, None)


def _is_commutative(op: Any) -> bool:
    scalar_op = getattr(op, "scalar_op", op)
    return scalar_op in COMMUTATIVE or bool(getattr(scalar_op, "commutative", False))


def _assigned(
    patterns: Sequence[Any],
    variables: tuple[Variable, ...],
    in_any_order: bool,
    bound: Bindings,
    may_go: Callable[[Variable], bool],
) -> Iterator[Bindings]:
    """Yield `bound` extended by each match of all `patterns` with all `variables`."""
    if not patterns:
        yield bound
    elif isinstance(patterns[0], Asterisk):
        yield from _bound_to(patterns[0], variables, bound)
    else:
        for place in range(len(variables) if in_any_order else 1):
            rest = (*variables[:place], *variables[place + 1 :])
            for found in _of_variable(patterns[0], variables[place], bound, may_go):
                yield from _assigned(patterns[1:], rest, in_any_order, found, may_go)


def _of_variable(
    pattern: Any, variable: Variable, bound: Bindings, may_go: Callable[[Variable], bool]
) -> Iterator[Bindings]:
    if isinstance(pattern, PatternVar):
        yield from _bound_to(pattern, variable, bound)
    elif isinstance(pattern, PatternNode):
        if variable.owner is not None and may_go(variable):
            yield from _matches(pattern, variable.owner, bound, may_go)
    elif _is_same(pattern, variable):
        yield bound


def _bound_to(name: PatternVar | Asterisk, value: Any, bound: Bindings) -> Iterator[Bindings]:
    if name in bound:
        if _is_same(bound[name], value):
            yield bound
    elif isinstance(name, Asterisk) or name.constraint is None or name.constraint(value):
        yield {**bound, name: value}


def _is_same(first: Any, second: Any) -> bool:
    """Return True for one variable, equal constants, a number and a constant, tuples of such, or values."""
    if first is second:
        return True
    if isinstance(first, tuple) and isinstance(second, tuple):
        return len(first) == len(second) and all(map(_is_same, first, second))
    if isinstance(first, Constant) and isinstance(second, Constant):
        value = scalar_value(first)
        return value == scalar_value(second) if value is not None else first.signature() == second.signature()
    if isinstance(first, Variable):
        return False
    return bool(first == (scalar_value(second) if isinstance(second, Variable) else second))


def _ops_of(pattern: Op | OpPattern, op: Op, bound: Bindings) -> Iterator[Bindings]:
    if isinstance(pattern, OpPattern):
        if isinstance(op, pattern.op_type):
            yield from _parameters_of(pattern, op, bound)
    elif op == pattern:
        yield bound


def _parameters_of(pattern: OpPattern, op: Op, bound: Bindings) -> Iterator[Bindings]:
    """Yield `bound` with the parameters of `op` that `pattern` names, if the others are equal."""
    for name, wanted in pattern.parameters:
        value = getattr(op, name)
        if isinstance(wanted, OpPattern):
            found = next(_ops_of(wanted, value, bound), None)
        elif isinstance(wanted, PatternVar):
            found = next(_bound_to(wanted, value, bound), None)
        else:
            found = bound if value == wanted else None
        if found is None:
            return
        bound = found
    yield bound


def reify_pattern(pattern: Any, subs: Bindings) -> Any:
    """Return the variable that `pattern` describes, with `subs` in place of its names.

    An OpPattern of one class is an Op made with its parameters. Raises ValueError for a name that stands
    for nothing, and for an OpPattern of several classes.
    """
    if isinstance(pattern, PatternVar | Asterisk):
        if pattern not in subs:
            raise ValueError(f"Building a graph from a pattern: nothing is bound to {pattern.token!r}")
        return subs[pattern]
    if isinstance(pattern, PatternNode):
        inputs: list[Any] = []
        for part in pattern.inputs:
            found = reify_pattern(part, subs)
            inputs += found if isinstance(part, Asterisk) else [found]
        return reify_pattern(pattern.op_match, subs)(*inputs)
    if isinstance(pattern, OpPattern):
        if not isinstance(pattern.op_type, type):
            raise ValueError(f"Building a graph from a pattern: {pattern} has several classes of Ops")
        return pattern.op_type(**{name: reify_pattern(part, subs) for name, part in pattern.parameters})
    return pattern
