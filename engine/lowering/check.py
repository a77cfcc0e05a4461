"""The check of a kernel before a compiler sees it, which also finds the dtype of everything that it names.

LLVM aborts the process on some malformed input, so nothing doubtful may reach it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from keyword import iskeyword

from msgspec import Struct, field

from engine.lowering.loops import (
    ROW_PRODUCTS,
    Address,
    Array,
    Bound,
    Call,
    Carried,
    Compute,
    Evaluate,
    Fail,
    If,
    Integer,
    Kernel,
    Literal,
    Loop,
    Node,
    Number,
    Place,
    Pointer,
    ReadElement,
    Reference,
    Word,
    WriteElement,
)
from engine.lowering.operations import check_operation
from engine.runtime.errors import InvalidKernel
from engine.runtime.externals import EXTERNALS
from engine.runtime.kernel_interface import ITEM_SIZES

_NAME = re.compile(r"[a-z][a-z0-9_]*\Z")
_LARGEST = 2**63 - 1


class Names(Struct, frozen=True):
    """The names in a kernel: `values` and `pointers`, each with its dtype."""

    values: dict[str, str]
    pointers: dict[str, str]


def check_kernel(kernel: Kernel) -> Names:
    """Return the names in `kernel`.

    Raises InvalidKernel if a name is defined twice or not in scope, or a dtype is wrong.
    """
    if len(kernel.parameters) != len(kernel.arguments):
        raise InvalidKernel(
            "checking",
            kernel.summary,
            f"{len(kernel.arguments)} arguments for {len(kernel.parameters)} parameters",
        )
    checker = _Checker(kernel.summary)
    for parameter in kernel.parameters:
        if isinstance(parameter, Pointer):
            checker.define_pointer(parameter.name, parameter.dtype)
        else:
            checker.define(parameter.name, "int64")
    checker.integers = {p.name for p in kernel.parameters if isinstance(p, Integer)}
    checker.check(kernel.body)
    return Names(checker.values, checker.pointers)


class _Checker(Struct):
    subject: str
    values: dict[str, str] = field(default_factory=dict)
    pointers: dict[str, str] = field(default_factory=dict)
    integers: set[str] = field(default_factory=set)
    visible: set[str] = field(default_factory=set)

    def check(self, body: Iterable[Node]) -> None:
        for node in body:
            match node:
                case Loop():
                    self.loop(node)
                case If():
                    self.branch(node)
                case Call():
                    self.call(node)
                case Fail():
                    self.fail(node)
                case Array():
                    self.require(node.size > 0, f"array {node.name} of {node.size} elements")
                    self.define_pointer(node.name, node.dtype)
                case _:
                    self.scalar(node)

    def scalar(self, node: Number | Compute | Evaluate | ReadElement | WriteElement) -> None:
        match node:
            case Number(target, dtype, value):
                size = ITEM_SIZES.get(dtype)
                self.require(size == len(value), f"constant {target} of {dtype} in {len(value)} bytes")
                self.define(target, dtype)
            case Compute(target, op, arguments, dtype):
                check_operation(op, tuple(self.value(name) for name in arguments), dtype)
                self.define(target, dtype)
            case Evaluate(target, function, arrays):
                given = tuple((self.place(Place(array.pointer)), len(array.lengths)) for array in arrays)
                due = tuple(zip(function.arguments, function.ranks or (), strict=True))
                self.require(given == due, f"{function} of {given}, which takes {due}")
                for length in (length for array in arrays for length in array.lengths):
                    self.require(self.value(length) == "int64", f"length {length} is not an int64")
                self.define(target, function.result)
            case ReadElement(target, place):
                self.define(target, self.place(place))
            case WriteElement(place, value):
                dtype = self.place(place)
                self.require(self.value(value) == dtype, f"{value} is stored as {dtype}")

    def loop(self, node: Loop) -> None:
        self.require(node.step > 0, f"a loop over {node.index} in steps of {node.step}")
        self.bound(node.start)
        self.bound(node.stop)
        for carried in node.carried:
            self.define(carried.name, self.value(carried.initial))
        with self.scope():
            self.define(node.index, "int64")
            self.check(node.body)
            for carried in node.carried:
                self.carry(carried, {c.name for c in node.carried})
                self.require(
                    not carried.unordered or _accumulates(carried, node), f"{carried.name} in any order"
                )
            if node.until:
                self.require(self.value(node.until) == "bool", f"condition {node.until} is not a bool")

    def carry(self, carried: Carried, names: set[str]) -> None:
        dtype = self.values[carried.name]
        self.require(self.value(carried.following) == dtype, f"{carried.name} changes its dtype from {dtype}")
        self.require(carried.following not in names, f"{carried.name} is handed on as another's old value")

    def branch(self, node: If) -> None:
        self.require(self.value(node.condition) == "bool", f"condition {node.condition} is not a bool")
        for body in (node.then, node.otherwise):
            with self.scope():
                self.check(body)

    def call(self, node: Call) -> None:
        count = (EXTERNALS | ROW_PRODUCTS).get(node.external)
        self.require(count == len(node.arguments), f"a call of {node.external}")
        for argument in node.arguments:
            match argument:
                case Address(place):
                    self.place(place)
                case Reference(parameter):
                    self.require(parameter in self.integers, f"{parameter} is not an integer parameter")
                case Literal(value):
                    self.require(len(value) > 0, "a literal of no bytes")
                case Word(name):
                    self.require(self.value(name) == "int64", f"{name} is passed, not an int64")

    def fail(self, node: Fail) -> None:
        self.require(0 < node.status < 2**31, f"a status of {node.status}")
        if node.details:
            self.require(self.place(Place(node.pointer)) == "int64", f"details through {node.pointer}")
        for name in node.details:
            self.require(self.value(name) == "int64", f"detail {name} is not an int64")

    def place(self, place: Place) -> str:
        self.require(
            place.pointer in self.pointers and place.pointer in self.visible, f"pointer {place.pointer}"
        )
        for factor in (factor for term in place.terms for factor in term):
            self.require(self.value(factor) == "int64", f"{factor} is not an int64")
        self.require(all(place.terms), f"an empty product in a place of {place.pointer}")
        return self.pointers[place.pointer]

    def bound(self, bound: Bound) -> None:
        if isinstance(bound, int):
            self.require(0 <= bound <= _LARGEST, f"a loop bound of {bound}")
        else:
            self.require(self.value(bound) == "int64", f"loop bound {bound} is not an int64")

    def value(self, name: str) -> str:
        self.require(name in self.values and name in self.visible, f"no value {name} here")
        return self.values[name]

    def define(self, name: str, dtype: str) -> None:
        self.fresh(name, dtype)
        self.values[name] = dtype

    def define_pointer(self, name: str, dtype: str) -> None:
        self.fresh(name, dtype)
        self.pointers[name] = dtype

    def fresh(self, name: str, dtype: str) -> None:
        # A printer may print names as they are, in Python too.
        self.require(_NAME.match(name) is not None and not iskeyword(name), f"{name!r} as a name")
        self.require(name not in self.values and name not in self.pointers, f"{name} is named twice")
        self.require(dtype in ITEM_SIZES, f"{name} of dtype {dtype}")
        self.visible.add(name)

    @contextmanager
    def scope(self) -> Iterator[None]:
        outside = set(self.visible)
        yield
        self.visible = outside

    def require(self, condition: bool, found: str) -> None:
        if not condition:
            raise InvalidKernel("checking", self.subject, found)


def _accumulates(carried: Carried, loop: Loop) -> bool:
    """Return True if the value is only added to, once in each pass."""
    reads = [n for n in loop.body if isinstance(n, Compute) and carried.name in n.arguments]
    return (
        len(reads) == 1
        and reads[0].op == "add"
        and reads[0].target == carried.following
        and reads[0].arguments.count(carried.name) == 1
    )
