"""A loop nest over operands with scalar statements inside it: the base of elementwise kernels and reductions.

The dims of a nest are numbered from the outermost. Adjacent dims that no operand tells apart become one
loop: a nest over contiguous operands is one flat loop, whatever its rank.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from engine.lowering.kernels.building import KernelBuilder
from engine.lowering.loops import (
    Carried,
    Compute,
    Fail,
    If,
    Loop,
    Node,
    Number,
    Place,
    ReadElement,
)
from engine.lowering.statements import Ref, ScalarRepeat, Statement, dtype_of
from engine.runtime.errors import InvalidKernel
from engine.runtime.kernel_interface import ITEM_SIZES, NEGATIVE_POWER

_TRUE: Ref = ("constant", "bool", b"\1")
_ZERO: Ref = ("constant", "int64", bytes(8))


class NestOperand(Struct, frozen=True):
    """An input of `dtype`; `broadcast` says for each dim if it has one element there for all of the nest.

    It is `strided` unless it is C-contiguous over the other dims. A strided operand may have its elements
    side by side along `unit`, a dim before the last: a transposed matrix, say. One that `is_indexed` is a
    contiguous vector, of which statements `take` elements, and is broadcast over all dims.
    """

    dtype: str
    broadcast: tuple[bool, ...]
    strided: bool = False
    unit: int | None = None
    is_indexed: bool = False


class Axis(Struct, frozen=True):
    """One loop of a nest: the dims it runs over, and the names of its index and its extent."""

    dims: tuple[int, ...]
    index: str
    extent: str


def collapse(operands: Sequence[NestOperand], rank: int, kinds: Sequence[object] = ()) -> tuple[Axis, ...]:
    """Return the axes of a nest over `rank` dims; dims of different `kinds` stay apart."""
    for position, operand in enumerate(operands):
        if len(operand.broadcast) != rank:
            found = f"its pattern has {len(operand.broadcast)} dims, the nest {rank}"
            raise InvalidKernel("collapsing dims of", f"operand {position}", found)
    groups: list[list[int]] = []
    for dim in range(rank):
        joins = dim > 0 and (not kinds or kinds[dim] == kinds[dim - 1])
        if joins and all(_joins_previous_dim(operand, dim) for operand in operands):
            groups[-1].append(dim)
        else:
            groups.append([dim])
    return tuple(Axis(tuple(dims), f"i{n}", f"n{n}") for n, dims in enumerate(groups))


def _joins_previous_dim(operand: NestOperand, dim: int) -> bool:
    here, before = operand.broadcast[dim], operand.broadcast[dim - 1]
    return here == before and (here or not operand.strided)


def declare(builder: KernelBuilder, operands: Sequence[NestOperand], axes: Sequence[Axis]) -> None:
    """Add the parameters of `operands` (pointers x0, x1, ..), of `axes`, and of strides."""
    for position, operand in enumerate(operands):
        builder.pointer(f"x{position}", operand.dtype, ("input", position))
    for axis in axes:
        builder.integer(axis.extent, ("extent", axis.dims))
    for position, operand in enumerate(operands):
        for axis in _strided_axes(operand, axes):
            builder.integer(_stride(position, axis), ("stride", position, axis.dims[0]))


def _strided_axes(operand: NestOperand, axes: Sequence[Axis]) -> list[Axis]:
    return [axis for axis in axes if operand.strided and not operand.broadcast[axis.dims[0]]]


def _stride(position: int, axis: Axis) -> str:
    return f"s{position}_{axis.dims[0]}"


def contiguous_terms(axes: Sequence[Axis]) -> tuple[tuple[str, ...], ...]:
    """Return the index of an element of an array that is C-contiguous over `axes`."""
    return tuple((axis.index, *(a.extent for a in axes[n + 1 :])) for n, axis in enumerate(axes))


def end_of(start: str, size: str, stop: str) -> tuple[Node, ...]:
    """Return the nodes of `{start}_end`: `start` plus `size`, but at most `stop`."""
    return (
        Compute(f"{start}_full", "add", (start, size), "int64"),
        Compute(f"{start}_end", "minimum", (f"{start}_full", stop), "int64"),
    )


class Fused:
    """The reads and statements of a nest whose loops are `axes`, outermost first.

    Each is emitted at the depth (the number of loops around it) where all its operands are known, so
    that no inner loop repeats it.
    """

    def __init__(
        self,
        operands: Sequence[NestOperand],
        statements: Sequence[Statement | ScalarRepeat],
        axes: Sequence[Axis],
        order: Sequence[Axis],
    ) -> None:
        self.operands = operands
        self.statements = statements
        self.axes = axes
        self.order = order
        """The same axes, in the order of memory."""
        self._constants: dict[Ref, str] = {}
        self._input_depths = [self._input_depth(operand) for operand in self.operands]
        self._value_depths: list[int] = []
        for statement in self.statements:
            self._value_depths.append(self._statement_depth(statement))

    @property
    def depth(self) -> int:
        return len(self.axes)

    def dtype(self, ref: Ref) -> str:
        """Return the dtype of what `ref` names; raises InvalidKernel if there is no such thing."""
        return dtype_of(ref, [operand.dtype for operand in self.operands], self.statements)

    def name(self, ref: Ref) -> str:
        """Return the name of the value of `ref`."""
        self.dtype(ref)
        if ref[0] == "constant":
            return self._constant(ref)
        result = f"_{ref[2]}" if ref[0] == "result" else ""
        return f"{'a' if ref[0] == 'input' else 'v'}{ref[1]}{result}"

    def constants(self) -> tuple[Node, ...]:
        """Return the definitions of all constants named so far."""
        return tuple(
            Number(name, str(ref[1]), ref[2])
            for ref, name in self._constants.items()
            if isinstance(ref[-1], bytes)
        )

    def nodes(self, depth: int) -> tuple[Node, ...]:
        """Return the reads and statements at `depth`."""
        nodes: list[Node] = []
        for position, at in enumerate(self._input_depths):
            if at == depth and not self.operands[position].is_indexed:
                nodes.append(ReadElement(self.name(("input", position)), self.place(position)))
        for position, at in enumerate(self._value_depths):
            if at == depth:
                nodes.extend(self._statement(position))
        return tuple(nodes)

    def _statement(self, position: int) -> tuple[Node, ...]:
        statement = self.statements[position]
        arguments = tuple(self.name(ref) for ref in statement.arguments)
        if statement.op == "take":
            return self._taken(f"v{position}", statement.arguments[0], arguments[1:])
        return _nodes_of(statement, f"v{position}", arguments, self._constant)

    def _taken(self, target: str, vector: Ref, arguments: tuple[str, ...]) -> tuple[Node, ...]:
        """Return the nodes of `take`: the element of a vector at an index, from the end if it is negative.

        The other arguments are the index, which has been checked, and the number that is added to it if it is
        negative, int64s.
        """
        index, from_end = arguments
        names = [f"{target}_{name}" for name in ("is_negative", "wrapped", "place")]
        is_negative, wrapped, place = names
        return (
            Compute(is_negative, "lt", (index, self._constant(_ZERO)), "bool"),
            Compute(wrapped, "add", (index, from_end), "int64"),
            Compute(place, "where", (is_negative, wrapped, index), "int64"),
            ReadElement(target, Place(f"x{vector[1]}", ((place,),))),
        )

    def _constant(self, ref: Ref) -> str:
        return self._constants.setdefault(ref, f"c{len(self._constants)}")

    def place(self, position: int) -> Place:
        """Return the place of an input's element."""
        operand = self.operands[position]
        moving = [axis for axis in self.order if not operand.broadcast[axis.dims[0]]]
        if operand.strided:
            return Place(f"x{position}", tuple((axis.index, _stride(position, axis)) for axis in moving))
        return Place(f"x{position}", contiguous_terms(moving))

    def _input_depth(self, operand: NestOperand) -> int:
        return max(
            (n + 1 for n, axis in enumerate(self.axes) if not operand.broadcast[axis.dims[0]]), default=0
        )

    def _statement_depth(self, statement: Statement | ScalarRepeat) -> int:
        if statement.may_fail:
            return self.depth
        return max((self._depth_of(ref) for ref in statement.arguments), default=0)

    def _depth_of(self, ref: Ref) -> int:
        self.dtype(ref)
        if ref[0] == "constant":
            return 0
        if ref[0] == "input":
            return self._input_depths[ref[1]]
        if ref[1] < len(self._value_depths):
            return self._value_depths[ref[1]]
        raise InvalidKernel("resolving", f"value {ref[1]}", "it is used before it is computed")


Named = Callable[[Ref], str]


def _nodes_of(
    statement: Statement | ScalarRepeat, target: str, arguments: tuple[str, ...], constant: Named
) -> tuple[Node, ...]:
    """Return the nodes of one statement: its value is `target`, or its results are `{target}_0`, ..."""
    if isinstance(statement, ScalarRepeat):
        return _Repeated(statement, target, constant).nodes(arguments)
    compute = Compute(target, statement.op, arguments, statement.dtype)
    if statement.op != "pow" or not statement.may_fail:
        return (compute,)
    zero = constant(("constant", statement.dtype, bytes(ITEM_SIZES[statement.dtype])))
    negative = Compute(f"{target}_negative", "lt", (arguments[1], zero), "bool")
    return negative, If(negative.target, (Fail(NEGATIVE_POWER),)), compute


class _Repeated(Struct, frozen=True):
    """The nodes of a ScalarRepeat, whose names begin with `target`."""

    repeat: ScalarRepeat
    target: str
    constant: Named

    def nodes(self, arguments: tuple[str, ...]) -> tuple[Node, ...]:
        steps, *inputs = arguments
        repeat, body = self.repeat, self._body(inputs)
        states = inputs[: len(repeat.following)]
        carried = []
        for number, (initial, ref) in enumerate(zip(states, repeat.following, strict=True)):
            body.append(self._name_for_next_pass(number, ref, inputs))
            carried.append(Carried(f"{self.target}_{number}", initial, f"{self.target}_next{number}"))
        until = ""
        if repeat.until is not None:
            until = f"{self.target}_next{len(states)}"
            body.append(self._name_for_next_pass(len(states), repeat.until, inputs))
            carried.append(Carried(f"{self.target}_{len(states)}", self.constant(_TRUE), until))
        return (Loop(f"{self.target}_i", 0, steps, 1, tuple(body), tuple(carried), until),)

    def _body(self, inputs: Sequence[str]) -> list[Node]:
        nodes: list[Node] = []
        for position, statement in enumerate(self.repeat.body):
            arguments = tuple(self._name(ref, inputs) for ref in statement.arguments)
            nodes += _nodes_of(statement, f"{self.target}_v{position}", arguments, self.constant)
        return nodes

    def _name(self, ref: Ref, inputs: Sequence[str]) -> str:
        dtype_of(ref, self.repeat.dtypes, self.repeat.body)
        if ref[0] == "constant":
            return self.constant(ref)
        if ref[0] == "input":
            position = int(ref[1])
            return f"{self.target}_{position}" if position < len(self.repeat.following) else inputs[position]
        return f"{self.target}_v{ref[1]}" + (f"_{ref[2]}" if ref[0] == "result" else "")

    def _name_for_next_pass(self, number: int, ref: Ref, inputs: Sequence[str]) -> Compute:
        """Return the node that names a value for the next pass: it may be another state."""
        dtype = dtype_of(ref, self.repeat.dtypes, self.repeat.body)
        return Compute(f"{self.target}_next{number}", "identity", (self._name(ref, inputs),), dtype)
