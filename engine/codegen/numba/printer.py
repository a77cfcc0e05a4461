"""The printer of kernels as Python functions for numba: one statement per value, always the same text.

Every operation is the call of an intrinsic, whose name states the operation and its dtypes: Python's
operators would promote (int32 + int32 is int64 to numba) and raise. intrinsics.py makes each from its
`Intrinsic`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from engine.lowering.check import Names, check_kernel
from engine.lowering.loops import (
    Address,
    Array,
    Call,
    Compute,
    Evaluate,
    Fail,
    If,
    Kernel,
    Literal,
    Loop,
    Node,
    Number,
    Place,
    Pointer,
    ReadElement,
    Reference,
    WriteElement,
)
from engine.scalar.embedded import Embedded

FUNCTION_NAME = "kernel"
_INDENT = "    "


@dataclass(frozen=True, slots=True)
class Intrinsic:
    """A function that printed source calls: its `kind`, and its differences within the kind."""

    kind: str
    op: str = ""
    dtypes: tuple[str, ...] = ()
    value: bytes = b""
    size: int = 0

    @property
    def name(self) -> str:
        """Return a Python identifier made of all fields."""
        size = str(self.size) if self.size else ""
        return "_".join(part for part in (self.kind, self.op, *self.dtypes, self.value.hex(), size) if part)


@dataclass(frozen=True, slots=True)
class Source:
    """A printed kernel: `text` defines FUNCTION_NAME(arguments), which refers to nothing but `intrinsics`.

    Some of these call user functions, which are in `functions`.
    """

    text: str
    intrinsics: tuple[Intrinsic, ...]
    functions: tuple[Embedded, ...]


def print_kernel(kernel: Kernel) -> Source:
    """Return `kernel` as Python source; raises InvalidKernel if it contradicts itself."""
    printer = _PythonPrinter(check_kernel(kernel))
    lines = [f"def {FUNCTION_NAME}(arguments):", *printer.parameters(kernel), *printer.body(kernel.body, 1)]
    lines.append(f"{_INDENT}return 0")
    return Source("\n".join(lines) + "\n", tuple(printer.used.values()), tuple(printer.functions.values()))


@dataclass
class _PythonPrinter:
    names: Names
    used: dict[str, Intrinsic] = field(default_factory=dict)
    positions: dict[str, int] = field(default_factory=dict)
    functions: dict[str, Embedded] = field(default_factory=dict)

    def parameters(self, kernel: Kernel) -> Iterator[str]:
        for position, parameter in enumerate(kernel.parameters):
            self.positions[parameter.name] = position
            value = f"{self.use(Intrinsic('load', dtypes=('int64',)))}(arguments, {position})"
            if isinstance(parameter, Pointer):
                value = f"{self.use(Intrinsic('pointer', dtypes=(parameter.dtype,)))}({value})"
            yield f"{_INDENT}{parameter.name} = {value}"

    def body(self, body: tuple[Node, ...], depth: int) -> Iterator[str]:
        for node in body:
            match node:
                case Loop():
                    yield from self.loop(node, depth)
                case If():
                    yield from self.branch(node, depth)
                case Fail():
                    yield from (_INDENT * depth + line for line in self.fail(node))
                case _:
                    yield _INDENT * depth + self.statement(node)

    def statement(self, node: Number | Compute | Evaluate | ReadElement | WriteElement | Array | Call) -> str:
        match node:
            case Number(target, dtype, value):
                return f"{target} = {self.use(Intrinsic('constant', dtypes=(dtype,), value=value))}()"
            case Compute(target, op, arguments, dtype):
                operation = self.operation(op, arguments, dtype)
                return f"{target} = {self.use(operation)}({', '.join(arguments)})"
            case Evaluate(target, function, arrays):
                words = ", ".join(word for array in arrays for word in (array.pointer, *array.lengths))
                return f"{target} = {self.use(self.evaluation(function))}({words})"
            case ReadElement(target, place):
                return (
                    f"{target} = {self.use(self.access('load', place))}({place.pointer}, {index_of(place)})"
                )
            case WriteElement(place, value):
                store = self.use(self.access("store", place))
                return f"{store}({place.pointer}, {index_of(place)}, {value})"
            case Array(name, dtype, size):
                return f"{name} = {self.use(Intrinsic('array', dtypes=(dtype,), size=size))}()"
            case Call(external, arguments):
                call = Intrinsic("call", external, size=len(arguments))
                return f"{self.use(call)}({', '.join(self.address(argument) for argument in arguments)})"

    def loop(self, node: Loop, depth: int) -> Iterator[str]:
        outside, inside = _INDENT * depth, _INDENT * (depth + 1)
        for carried in node.carried:
            yield f"{outside}{carried.name} = {carried.initial}"
        bounds = (
            f"{node.start}, {node.stop}, {node.step}" if (node.start, node.step) != (0, 1) else str(node.stop)
        )
        yield f"{outside}for {node.index} in range({bounds}):"
        yield from self.body(node.body, depth + 1)
        for carried in node.carried:
            yield f"{inside}{carried.name} = {carried.following}"
        if node.until:
            yield f"{inside}if {node.until}:"
            yield f"{inside}{_INDENT}break"

    def branch(self, node: If, depth: int) -> Iterator[str]:
        yield f"{_INDENT * depth}if {node.condition}:"
        yield from self.body(node.then, depth + 1)
        if node.otherwise:
            yield f"{_INDENT * depth}else:"
            yield from self.body(node.otherwise, depth + 1)

    def fail(self, node: Fail) -> Iterator[str]:
        for position, name in enumerate(node.details):
            store = self.use(Intrinsic("store", dtypes=("int64",)))
            yield f"{store}({node.pointer}, {position}, {name})"
        yield f"return {node.status}"

    def address(self, argument: Address | Reference | Literal) -> str:
        match argument:
            case Address(place):
                return f"{self.use(self.access('address', place))}({place.pointer}, {index_of(place)})"
            case Reference(parameter):
                address = self.use(Intrinsic("address", dtypes=("int64",)))
                return f"{address}(arguments, {self.positions[parameter]})"
            case Literal(value):
                return f"{self.use(Intrinsic('literal', value=value))}()"

    def access(self, kind: str, place: Place) -> Intrinsic:
        return Intrinsic(kind, dtypes=(self.names.pointers[place.pointer],))

    def operation(self, op: str | Embedded, arguments: tuple[str, ...], dtype: str) -> Intrinsic:
        if isinstance(op, Embedded):
            self.functions[op.name] = op
            return Intrinsic("function", op.name, (*op.arguments, op.result))
        return Intrinsic("compute", op, self.dtypes_of(arguments, op, dtype))

    def evaluation(self, function: Embedded) -> Intrinsic:
        self.functions[function.name] = function
        ranks = bytes(function.ranks or ())
        return Intrinsic("evaluate", function.name, (*function.arguments, function.result), ranks)

    def dtypes_of(self, arguments: tuple[str, ...], op: str, dtype: str) -> tuple[str, ...]:
        operand = self.names.values[arguments[-1]]
        return (operand, dtype) if op == "cast" else (operand,)

    def use(self, intrinsic: Intrinsic) -> str:
        self.used[intrinsic.name] = intrinsic
        return intrinsic.name


def index_of(place: Place) -> str:
    """Return the Python expression of an element's index."""
    return " + ".join(" * ".join(term) for term in place.terms) or "0"
