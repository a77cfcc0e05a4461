"""LLVM IR as text: types, values, and a writer of one function, instruction by instruction.

The methods have the names of LLVM's instructions. They check nothing: LLVM's verifier does, before any
pass.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from msgspec import Struct, field


class LlvmType(Struct, frozen=True):
    """A type by its `name` in LLVM; floating-point ones have the `suffix` of intrinsics (llvm.exp.f64).

    A vector has `lanes` elements of the type `element`.
    """

    name: str
    suffix: str = ""
    element: LlvmType | None = None
    lanes: int = 0

    def __call__(self, number: float) -> LlvmValue:
        """Return the constant `number` of this type, rounded to it if it is a floating-point type.

        All elements of a vector are that number.
        """
        if self.element is not None:
            return LlvmValue(self, f"splat ({self.element(number)})")
        return LlvmValue(self, _float_text(number, self) if self.suffix else str(int(number)))

    @property
    def scalar(self) -> LlvmType:
        """The type of an element of a vector; of other types, the type itself."""
        return self if self.element is None else self.element

    def vector(self, lanes: int) -> LlvmType:
        """Return the type of vectors of `lanes` elements of this type; of none, the type itself."""
        if not lanes:
            return self
        return LlvmType(f"<{lanes} x {self.name}>", self.suffix and f"v{lanes}{self.suffix}", self, lanes)


class LlvmValue(Struct, frozen=True):
    """A value: its type, and its name or constant expression."""

    type: LlvmType
    text: str

    def __str__(self) -> str:
        return f"{self.type.name} {self.text}"


DOUBLE = LlvmType("double", "f64")
FLOAT = LlvmType("float", "f32")
WORD = LlvmType("i64")
INT32 = STATUS = LlvmType("i32")
BYTE = LlvmType("i8")
BIT = LlvmType("i1")
POINTER = LlvmType("ptr")


WIDTH_OF_64_BITS, WIDTH_OF_32_BITS = "!0", "!1"
"""Nodes of a module: how many passes of a loop over numbers of so many bits make a vector."""
FIRST_NODE = 2


def _float_text(number: float, of: LlvmType) -> str:
    """Return the bits of a double, by which LLVM writes both types; those of a float must be exact."""
    if of is FLOAT and math.isfinite(number):
        (number,) = struct.unpack("<f", struct.pack("<f", number))
    return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"


class FunctionText(Struct):
    """A function under construction; the block begun last is the current one.

    `entry` has the code that runs first (stack slots), `declarations` the functions that it calls,
    `metadata` what the function says of loops (a module has nodes of its own before FIRST_NODE). Reads and
    writes belong to `access_group` if there is one. `elementary` has a name for each call of a function that
    the module defines, `loop_depth` the number of loops around the code. Fused operations need a CPU level
    that `has_fma`.
    """

    entry: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    declarations: dict[str, str] = field(default_factory=dict)
    metadata: list[str] = field(default_factory=list)
    access_group: str = ""
    elementary: list[str] = field(default_factory=list)
    block: str = "start"
    is_ended: bool = False
    has_fma: bool = False
    loop_depth: int = 0
    _count: int = 0

    # ---- names and blocks

    def fresh(self, stem: str = "v") -> str:
        """Return a name that is not used in the function yet."""
        self._count += 1
        return f"{stem}{self._count}"

    def begin_block(self, name: str) -> None:
        """Begin the block `name`; the code before it must have jumped."""
        self.lines.append(f"{name}:")
        self.block, self.is_ended = name, False

    def branch(self, target: str) -> None:
        """End the block with a jump to `target`."""
        self._end(f"br label %{target}")

    def cbranch(self, condition: LlvmValue, then: str, otherwise: str, metadata: str = "") -> None:
        """End the block with a jump to `then` if `condition` is true, else to `otherwise`."""
        self._end(f"br i1 {condition.text}, label %{then}, label %{otherwise}{metadata}")

    def ret(self, status: int) -> None:
        """End the block, and the function, with `status`."""
        self._end(f"ret i32 {status}")

    def _end(self, instruction: str) -> None:
        if not self.is_ended:  # code behind a return never runs
            self.lines.append(f"  {instruction}")
        self.is_ended = True

    def value(self, of: LlvmType, instruction: str) -> LlvmValue:
        """Append `instruction` and return its value, which is of type `of`."""
        value = LlvmValue(of, f"%{self.fresh()}")
        self.define(value, instruction)
        return value

    def define(self, value: LlvmValue, instruction: str) -> None:
        """Append `instruction`, which computes `value`: its name was chosen before."""
        if not self.is_ended:
            self.lines.append(f"  {value.text} = {instruction}")

    def effect(self, instruction: str) -> None:
        """Append `instruction`, which has no value."""
        if not self.is_ended:
            self.lines.append(f"  {instruction}")

    def phi(self, value: LlvmValue, incoming: Sequence[tuple[LlvmValue, str]]) -> None:
        """Define `value`: that of the block in `incoming` from which control arrives."""
        pairs = ", ".join(f"[ {arrived.text}, %{block} ]" for arrived, block in incoming)
        self.lines.append(f"  {value.text} = phi {value.type.name} {pairs}")

    def arriving(self, *incoming: tuple[LlvmValue, str]) -> LlvmValue:
        """Return the value of the block in `incoming` from which control arrives."""
        value = LlvmValue(incoming[0][0].type, f"%{self.fresh()}")
        self.phi(value, incoming)
        return value

    # ---- memory

    def slot(self, element: LlvmType, count: int = 1) -> LlvmValue:
        """Return the address of `count` uninitialized elements that live as long as the call."""
        name = f"%{self.fresh('slot')}"
        self.entry.append(f"  {name} = alloca {element.name}, i64 {count}, align 16")
        return LlvmValue(POINTER, name)

    def element(self, of: LlvmType, pointer: LlvmValue, index: LlvmValue) -> LlvmValue:
        """Return the address of an element of type `of`."""
        return self.value(POINTER, f"getelementptr inbounds {of.name}, {pointer}, {index}")

    def load(self, of: LlvmType, address: LlvmValue, align: int) -> LlvmValue:
        """Return the value at `address`."""
        return self.value(of, f"load {of.name}, {address}, align {align}{self._group()}")

    def store(self, value: LlvmValue, address: LlvmValue, align: int) -> None:
        """Write `value` to `address`."""
        self.effect(f"store {value}, {address}, align {align}{self._group()}")

    def _group(self) -> str:
        return self.access_group and f", !llvm.access.group {self.access_group}"

    def new_access_group(self) -> str:
        """Return a new group of reads and writes."""
        return self._node("distinct !{}")

    def loop_metadata(self, access_group: str, interleaved: int | None, width: str) -> str:
        """Return the metadata, of the jump back, of a loop.

        Its passes do not depend on each other through the reads and writes of `access_group` if there is one.
        LLVM may unroll loops of a known length only. Others would mostly be the rest of vectorized loops.
        It has `interleaved` passes side by side, as many as it likes if that is None. The node `width` of the
        module, if there is one, says how many passes make a vector.
        """
        said = ['!{!"llvm.loop.unroll.runtime.disable"}']
        said += [f'!{{!"llvm.loop.parallel_accesses", {access_group}}}'] if access_group else []
        said += [f'!{{!"llvm.loop.interleave.count", i32 {interleaved}}}'] if interleaved else []
        nodes = [self._node(content) for content in said] + ([width] if width else [])
        members = ", ".join([self._next_node(), *nodes])
        return f", !llvm.loop {self._node(f'distinct !{{{members}}}')}"

    def _node(self, content: str) -> str:
        """Append a node of metadata; return its number."""
        number = self._next_node()
        self.metadata.append(f"{number} = {content}")
        return number

    def _next_node(self) -> str:
        return f"!{FIRST_NODE + len(self.metadata)}"

    def ptrtoint(self, pointer: LlvmValue) -> LlvmValue:
        """Return the address as a number."""
        return self.value(WORD, f"ptrtoint {pointer} to i64")

    # ---- calls

    def call(
        self,
        result: LlvmType,
        name: str,
        arguments: Sequence[LlvmValue],
        attributes: str = "",
        flags: str = "",
    ) -> LlvmValue:
        """Return the result of the function `name`, declared with `attributes` and called with `flags`."""
        types = ", ".join(argument.type.name for argument in arguments)
        self.declarations.setdefault(name, f"declare {result.name} @{name}({types}) {attributes}".rstrip())
        called = f"call {flags} {result.name}" if flags else f"call {result.name}"
        return self.value(result, f"{called} @{name}({', '.join(map(str, arguments))})")

    def call_for_effect(self, name: str, arguments: Sequence[LlvmValue]) -> None:
        """Call the function `name`, which returns nothing."""
        types = ", ".join(argument.type.name for argument in arguments)
        self.declarations.setdefault(name, f"declare void @{name}({types})")
        self.effect(f"call void @{name}({', '.join(map(str, arguments))})")

    # ---- arithmetic

    def op(self, instruction: str, x: LlvmValue, *others: LlvmValue) -> LlvmValue:
        """Return the result of `instruction` (fadd, xor, fneg, ...), which has the type of its operands."""
        return self.value(x.type, f"{instruction} {', '.join([str(x), *[other.text for other in others]])}")

    def muladd(self, x: LlvmValue, y: LlvmValue, z: LlvmValue) -> LlvmValue:
        """Return x * y + z: rounded once if the CPU level has fused operations, else twice."""
        if self.has_fma:
            return self.call(x.type, f"llvm.fma.{x.type.suffix}", [x, y, z])
        return self.op("fadd", self.op("fmul", x, y), z)

    def compare(self, instruction: str, x: LlvmValue, y: LlvmValue) -> LlvmValue:
        """Return what `instruction` (such as "fcmp olt" or "icmp eq") computes: a bit, of vectors several."""
        return self.value(BIT.vector(x.type.lanes), f"{instruction} {x}, {y.text}")

    def convert(self, instruction: str, x: LlvmValue, to: LlvmType) -> LlvmValue:
        """Return `x` in the type `to`, by `instruction` (sext, fptosi, ...)."""
        return self.value(to, f"{instruction} {x} to {to.name}")

    def select(self, condition: LlvmValue, x: LlvmValue, y: LlvmValue) -> LlvmValue:
        """Return `x` if the bit `condition` is set, else `y`."""
        return self.value(x.type, f"select {condition}, {x}, {y}")
