"""Straight-line code: several kernels as one body without loops and branches.

`StraightLine` runs kernels one after the other while the program is lowered. It computes the integers that
are known, opens loops over known ranges, and collects all other operations. An element that was written is
not read again: its value is used. Equal operations become one. The elements that others need are written at
the end. So every element gets the same value as from the kernels one by one; only what these add in any
order is added in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from cachegraph.named_tuples import NamedTuple
from engine.lowering.kernels.building import KernelBuilder
from engine.lowering.loops import (
    Array,
    Bound,
    Compute,
    If,
    Kernel,
    Loop,
    Node,
    Number,
    Place,
    ReadElement,
    WriteElement,
)
from engine.runtime.kernel_interface import ITEM_SIZES
from engine.scalar.embedded import Embedded

_FOLDED: dict[str, Callable[..., int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floor_div": lambda a, b: a // b if b else 0,
    "maximum": max,
    "minimum": min,
    "eq": lambda a, b: a == b,
    "lt": lambda a, b: a < b,
    "identity": lambda a: a,
}
_MOST = 2**63 - 1


class NotStraight(Exception):
    """A kernel has work that depends on numbers known only in a call, or too much of it."""


class Element(NamedTuple):
    """An element in memory: `offset` elements behind the address in the register `root`; `dtype` is its type.

    A negative root is an array within a kernel.
    """

    root: int
    dtype: str
    offset: int


class Known(NamedTuple):
    """A number that is known: its dtype and its little-endian bytes."""

    dtype: str
    value: bytes

    def integer(self) -> int:
        """Return the number as an int; raises NotStraight for floats."""
        if self.dtype not in ("int64", "bool"):
            raise NotStraight
        return int.from_bytes(self.value, "little", signed=self.dtype == "int64")


Operand = str | Known
Given = Element | Known | int
"""The argument for one parameter: the first element, a known int64, or the register of an int64."""


def known_integer(number: int) -> Known:
    """Return the int64 `number`."""
    return Known("int64", number.to_bytes(8, "little", signed=True))


class StraightLine:
    """The body under construction. It refuses (NotStraight) more than `limit` operations."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.builder = KernelBuilder()
        self.registers: list[int] = []
        """The register to pass for each parameter."""
        self.size = 0
        """The number of operations and of elements written."""
        self._numbers: dict[Known, Number] = {}
        self._nodes: list[Node] = []
        self._computed: dict[tuple[str, tuple[Operand, ...], str], str] = {}
        self._elements: dict[Element, Operand] = {}
        self._written: dict[Element, Operand] = {}
        self._parameters: dict[tuple[int, str], str] = {}
        self._arrays = 0

    def run(self, kernel: Kernel, given: Sequence[Given]) -> None:
        """Append the work of `kernel`, whose parameters are what is `given`."""
        values: dict[str, Operand] = {}
        pointers: dict[str, Element] = {}
        for parameter, argument in zip(kernel.parameters, given, strict=True):
            if isinstance(argument, Element):
                pointers[parameter.name] = argument
            elif isinstance(argument, Known):
                values[parameter.name] = argument
            else:
                values[parameter.name] = self._parameter(argument, "")
        _Run(self, values, pointers).body(kernel.body)

    def compute(self, node: Compute, arguments: tuple[Operand, ...]) -> Operand:
        """Return the value of `node`: a known number, that of an equal operation, or a new one."""
        if isinstance(node.op, Embedded):
            raise NotStraight
        folded = _folded(node, arguments)
        if folded is not None:
            return folded
        key = (node.op, arguments, node.dtype)
        found = self._computed.get(key)
        if found is None:
            self._count()
            found = self._computed[key] = f"v{len(self._nodes)}"
            names = tuple(map(self._name, arguments))
            self._nodes.append(replace(node, target=found, arguments=names))
        return found

    def read(self, element: Element) -> Operand:
        """Return the value of `element`."""
        found = self._elements.get(element)
        if found is None:
            if element.root < 0:
                raise NotStraight
            found = self._elements[element] = f"v{len(self._nodes)}"
            self._nodes.append(ReadElement(found, self._place(element)))
        return found

    def write(self, element: Element, value: Operand) -> None:
        """Make `value` that of `element`."""
        self._elements[element] = value
        if element.root >= 0:
            self._count()
            self._written[element] = value

    def array(self) -> int:
        """Return the root of a new array within a kernel."""
        self._arrays += 1
        return -self._arrays

    def _count(self) -> None:
        self.size += 1
        if self.size > self.limit:
            raise NotStraight

    def kernel(self, is_needed: Callable[[int], bool]) -> Kernel:
        """Return the kernel, which writes the elements whose roots are needed."""
        writes = [
            WriteElement(self._place(element), self._name(value))
            for element, value in self._written.items()
            if is_needed(element.root)
        ]
        nodes = _used(self._nodes, writes)
        names = {name for node in nodes for name in _names(node)}
        numbers = [number for number in self._numbers.values() if number.target in names]
        kept = [k for k, parameter in enumerate(self.builder.parameters) if parameter.name in names]
        self.registers = [self.registers[k] for k in kept]
        self.builder.parameters = [self.builder.parameters[k] for k in kept]
        self.builder.arguments = [self.builder.arguments[k] for k in kept]
        operations = ", ".join(str(node.op) for node in nodes if isinstance(node, Compute)) or "copy"
        summary = f"straight line: {operations}, {len(writes)} elements"
        return self.builder.kernel((*numbers, *nodes), summary)

    def _place(self, element: Element) -> Place:
        pointer = self._parameter(element.root, element.dtype)
        terms = ((self._name(known_integer(element.offset)),),) if element.offset else ()
        return Place(pointer, terms)

    def _parameter(self, register: int, dtype: str) -> str:
        found = self._parameters.get((register, dtype))
        if found is None:
            add = self.builder.pointer if dtype else None
            argument = ("given", len(self.registers))
            name = f"p{len(self.registers)}"
            found = add(name, dtype, argument) if add else self.builder.integer(name, argument)
            self._parameters[(register, dtype)] = found
            self.registers.append(register)
        return found

    def _name(self, operand: Operand) -> str:
        if isinstance(operand, str):
            return operand
        number = Number(f"c{len(self._numbers)}", operand.dtype, operand.value)
        return self._numbers.setdefault(operand, number).target


class _Run(Struct):
    """One kernel being run: what its names mean so far."""

    line: StraightLine
    values: dict[str, Operand]
    pointers: dict[str, Element]

    def body(self, body: Sequence[Node]) -> None:
        for node in body:
            match node:
                case Compute(target, _, arguments):
                    operands = tuple([self.values[name] for name in arguments])
                    self.values[target] = self.line.compute(node, operands)
                case ReadElement(target, place):
                    self.values[target] = self.line.read(self.element(place))
                case WriteElement(place, value):
                    self.line.write(self.element(place), self.values[value])
                case Number(target, dtype, value):
                    self.values[target] = Known(dtype, value)
                case Loop():
                    self.loop(node)
                case If(condition, then, otherwise):
                    self.body(then if self.integer(condition) else otherwise)
                case Array(name, dtype):
                    self.pointers[name] = Element(self.line.array(), dtype, 0)
                case _:
                    raise NotStraight

    def loop(self, node: Loop) -> None:
        passes = range(self.integer(node.start), self.integer(node.stop), node.step)
        if node.until or len(passes) > self.line.limit:
            raise NotStraight
        self.values.update({carried.name: self.values[carried.initial] for carried in node.carried})
        for index in passes:
            self.values[node.index] = known_integer(index)
            self.body(node.body)
            self.values.update({carried.name: self.values[carried.following] for carried in node.carried})

    def integer(self, bound: Bound) -> int:
        if isinstance(bound, int):
            return bound
        found = self.values[bound]
        if isinstance(found, str):
            raise NotStraight
        return found.integer()

    def element(self, place: Place) -> Element:
        first = self.pointers[place.pointer]
        offset = first.offset
        for term in place.terms:
            product = 1
            for factor in term:
                product *= self.integer(factor)
            offset += product
        return first._replace(offset=offset)


def _folded(node: Compute, arguments: tuple[Operand, ...]) -> Operand | None:
    """Return what `node` is if its arguments are known integers, or if it changes nothing; else None."""
    if (
        node.op in ("identity", "cast")
        and isinstance(arguments[0], Known)
        and arguments[0].dtype == node.dtype
    ):
        return arguments[0]
    known = [argument for argument in arguments if isinstance(argument, Known) and argument.dtype == "int64"]
    if len(known) < len(arguments) or node.op not in _FOLDED or node.dtype not in ("int64", "bool"):
        return None
    result = _FOLDED[str(node.op)](*[number.integer() for number in known])
    if node.dtype == "bool":
        return Known("bool", bytes([result]))
    return known_integer(result) if abs(result) <= _MOST else None


def _used(nodes: Sequence[Node], writes: Sequence[WriteElement]) -> list[Node]:
    """Return `nodes` without those that no other and none of `writes` use, then `writes`."""
    used: set[str] = set()
    found: list[Node] = []
    for node in (*reversed(writes), *reversed(nodes)):
        if isinstance(node, WriteElement) or getattr(node, "target", "") in used:
            used.update(_names(node))
            found.append(node)
    return found[::-1]


def _names(node: Node) -> list[str]:
    """Return the names that `node` reads."""
    match node:
        case Compute(_, _, arguments):
            return list(arguments)
        case ReadElement(_, place):
            return [place.pointer, *(name for term in place.terms for name in term)]
        case WriteElement(place, value):
            return [place.pointer, value, *(name for term in place.terms for name in term)]
    return []


def first_element(
    register: int, dtype: str, addresses: Mapping[int, tuple[int, int]], number: Callable[[int], int | None]
) -> Element:
    """Return the element at the address in `register`, counted from the address that it is computed from.

    `addresses` has the base address and the distance of each view (registers); `number` returns what
    is known of a distance.
    """
    offset = 0
    while register in addresses:
        base, distance = addresses[register]
        nbytes = number(distance)
        if nbytes is None or nbytes % ITEM_SIZES[dtype]:
            break
        register, offset = base, offset + nbytes // ITEM_SIZES[dtype]
    return Element(register, dtype, offset)
