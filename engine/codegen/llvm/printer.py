"""The printer of kernels as LLVM IR: one function `i32 symbol(ptr)`, in SSA form like the loop language."""

from __future__ import annotations

from msgspec import Struct, field

from engine.codegen.llvm.arithmetic_loops import width_of_arithmetic
from engine.codegen.llvm.blocks import BlockWrite, block_write
from engine.codegen.llvm.elementary.library import (
    call_quotient,
    calls_variants,
    define_elementary,
    vector_width,
)
from engine.codegen.llvm.ir_text import (
    BIT,
    BYTE,
    POINTER,
    STATUS,
    WIDTH_OF_32_BITS,
    WORD,
    FunctionText,
    LlvmType,
    LlvmValue,
)
from engine.codegen.llvm.row_products import define_row_products
from engine.codegen.llvm.scalar_code import LLVM_TYPES, constant_of, emit_operation
from engine.lowering.check import Names, check_kernel
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
    Kernel,
    Literal,
    Loop,
    Node,
    Number,
    Passed,
    Place,
    Pointer,
    ReadElement,
    Reference,
    Word,
    WriteElement,
)
from engine.lowering.operations import FLOATS
from engine.runtime.kernel_interface import FUNCTION_RAISED, ITEM_SIZES, OK
from engine.scalar.embedded import Embedded

_ARGUMENTS = LlvmValue(POINTER, "%arguments")


class KernelText(Struct, frozen=True):
    """A printed kernel: its `text`, and what it calls: user `functions` by `entry_name`, elementary ones.

    `declarations` has the others.
    """

    text: str
    functions: tuple[Embedded, ...]
    elementary: tuple[str, ...]
    declarations: dict[str, str]

    def module(self, level: str) -> str:
        """Return the text of a module with the kernel, for the CPU level `level`."""
        lines = define_elementary(self.elementary, level, self.declarations, self.has_loops)
        return "\n".join([self.text, *lines, ""])

    @property
    def has_loops(self) -> bool:
        """True if some code may run more than once in a call."""
        return " = phi " in self.text


def entry_name(function: Embedded) -> str:
    """Return the symbol under which kernels call `function`."""
    return f"user_{function.name}"


def print_kernel(kernel: Kernel, symbol: str) -> KernelText:
    """Return `kernel` as the function `symbol`; raises InvalidKernel if it contradicts itself."""
    printer = _KernelPrinter(check_kernel(kernel))
    printer.print(kernel)
    function = printer.function
    body = [*function.entry, "  br label %start", "start:", *function.lines]
    lines = [
        *printer.literals,
        f'define i32 @"{symbol}"(ptr %arguments) nounwind {{',
        "entry:",
        *body,
        "}",
        *function.metadata,
    ]
    functions = tuple(printer.functions.values())
    return KernelText("\n".join(lines), functions, tuple(function.elementary), function.declarations)


class _KernelPrinter(Struct):
    """One kernel being printed; `values` maps the kernel's names to their LLVM values at this point."""

    names: Names
    function: FunctionText = field(default_factory=FunctionText)
    values: dict[str, LlvmValue] = field(default_factory=dict)
    positions: dict[str, int] = field(default_factory=dict)
    functions: dict[str, Embedded] = field(default_factory=dict)
    literals: list[str] = field(default_factory=list)
    unordered: set[str] = field(default_factory=set)
    constants: dict[str, bytes] = field(default_factory=dict)
    outside: frozenset[str] = frozenset()
    """The names that keep their value in all passes of the innermost loop."""

    def print(self, kernel: Kernel) -> None:
        for position, parameter in enumerate(kernel.parameters):
            self.positions[parameter.name] = position
            of = POINTER if isinstance(parameter, Pointer) else WORD
            self.values[parameter.name] = self.function.load(of, self.argument(position), 8)
        self.body(kernel.body)
        self.function.ret(OK)

    def argument(self, position: int) -> LlvmValue:
        return self.function.element(WORD, _ARGUMENTS, WORD(position))

    def body(self, body: tuple[Node, ...]) -> None:
        for node in body:
            match node:
                case Loop():
                    block = self.block(node)
                    if block is None:
                        self.loop(node)
                    else:
                        self.write_block(node, block)
                case If():
                    self.branch(node)
                case Fail():
                    self.fail(node)
                case WriteElement(place, value):
                    self.store(place, self.values[value])
                case Array(name, dtype, size):
                    self.values[name] = self.function.slot(_stored(dtype), size)
                case Call(external, arguments):
                    if external in ROW_PRODUCTS:
                        self.define(external)
                    self.function.call_for_effect(external, [self.passed(argument) for argument in arguments])
                case _:
                    self.values[node.target] = self.computed(node)

    def computed(self, node: Number | Compute | Evaluate | ReadElement) -> LlvmValue:
        match node:
            case Number(target, dtype, value):
                self.constants[target] = value
                return constant_of(dtype, value)
            case ReadElement(_, place):
                return self.load(place)
            case Evaluate(_, function, arrays):
                words = [self.values[word] for array in arrays for word in (array.pointer, *array.lengths)]
                return self.called(function, words)
            case Compute(_, op, arguments, dtype):
                values = [self.values[name] for name in arguments]
                if isinstance(op, Embedded):
                    return self.called(op, values)
                operand = self.names.values[arguments[-1]]
                if node.target in self.unordered and operand in FLOATS:
                    return self.function.op("fadd reassoc", *values)
                if op == "true_div" and operand == "float64" and arguments[1] in self.outside:
                    return call_quotient(self.function, *values)
                dtypes = tuple([self.names.values[name] for name in arguments])
                dtypes = (operand, dtype) if op == "cast" else dtypes
                return emit_operation(self.function, op, dtypes, values)

    def define(self, function: str) -> None:
        """Define `function`, one of ROW_PRODUCTS, in the module."""
        text, declarations = define_row_products(function)
        self.function.declarations |= {**declarations, function: text}

    def called(self, function: Embedded, values: list[LlvmValue]) -> LlvmValue:
        """Return the result of `function` for `values`; if it raises, the kernel ends."""
        self.functions[function.name] = function
        b, of = self.function, _stored(function.result)
        result = b.slot(of)
        words = [b.convert("zext", value, BYTE) if value.type.name == "i1" else value for value in values]
        status = b.call(STATUS, entry_name(function), [*words, result])
        raised, after = b.fresh("raised"), b.fresh("returned")
        b.cbranch(b.compare("icmp eq", status, STATUS(0)), after, raised)
        b.begin_block(raised)
        b.ret(FUNCTION_RAISED)
        b.begin_block(after)
        return self.as_value(b.load(of, result, ITEM_SIZES[function.result]), function.result)

    # ---- control

    def loop(self, node: Loop) -> None:
        """Print a loop with its test at the end, entered only if there is a first pass."""
        b = self.function
        body, after = b.fresh("loop"), b.fresh("after")
        start, stop = self.bound(node.start), self.bound(node.stop)
        initial = [self.values[carried.initial] for carried in node.carried]
        before = b.block
        b.cbranch(b.compare("icmp slt", start, stop), body, after)
        b.begin_block(body)
        head = len(b.lines)  # the phis need values of the body
        outside, self.outside = self.outside, frozenset(self.values)
        index = self.values[node.index] = LlvmValue(WORD, f"%{b.fresh()}")
        states = [LlvmValue(value.type, f"%{b.fresh()}") for value in initial]
        self.values.update(zip([carried.name for carried in node.carried], states, strict=True))
        self.unordered.update(carried.following for carried in node.carried if carried.unordered)
        outer_group = b.access_group
        group = b.access_group = b.new_access_group() if node.independent else ""
        b.loop_depth += 1
        self.body(node.body)
        b.loop_depth -= 1
        self.outside = outside
        b.access_group = outer_group
        following_index = self.function.value(WORD, f"add nsw {index}, {node.step}")
        latch = b.block
        arriving = [
            [(first, before), (self.values[carried.following], latch)]
            for first, carried in zip(initial, node.carried, strict=True)
        ]
        printed = b.lines[head:]
        width = self.width(node, printed)
        metadata = b.loop_metadata(group, _interleaved(node, printed, width), width)
        b.cbranch(self.goes_on(node, following_index, stop), body, after, metadata)
        rest = b.lines[head:]
        del b.lines[head:]
        b.phi(index, [(start, before), (following_index, latch)])
        for state, incoming in zip(states, arriving, strict=True):
            b.phi(state, incoming)
        b.lines += rest
        b.begin_block(after)
        self.carry_out(node.carried, arriving)

    def block(self, node: Loop) -> BlockWrite | None:
        """Return what a loop writes if that is one block, and no loop is around it: a call in each pass would
        cost more than the elements of a short row."""
        return None if self.function.loop_depth else block_write(node, self.names.pointers, self.constants)

    def write_block(self, node: Loop, block: BlockWrite) -> None:
        """Print the loop `node`, which writes `block`, as one call, if there is a first pass."""
        b = self.function
        write, after = b.fresh("write"), b.fresh("after")
        start, stop = self.bound(node.start), self.bound(node.stop)
        b.cbranch(b.compare("icmp slt", start, stop), write, after)
        b.begin_block(write)
        self.values[node.index] = start
        size = b.op("mul nsw", b.op("sub nsw", stop, start), WORD(block.size))
        if isinstance(block.content, Place):
            content, name = self.at(block.content), "llvm.memcpy.p0.p0.i64"
        else:
            content, name = BYTE(block.content), "llvm.memset.p0.i64"
        b.call_for_effect(name, [self.at(block.target), content, size, BIT(0)])
        b.branch(after)
        b.begin_block(after)

    def width(self, node: Loop, printed: list[str]) -> str:
        """Return the node that says how wide the vectors of a loop are, or ""."""
        of_functions = vector_width(printed) if _is_in_any_order(node) else ""
        return of_functions or width_of_arithmetic(node, self.names.pointers)

    def goes_on(self, node: Loop, following_index: LlvmValue, stop: LlvmValue) -> LlvmValue:
        b = self.function
        more = b.compare("icmp slt", following_index, stop)
        if not node.until:
            return more
        return b.select(self.values[node.until], LLVM_TYPES["bool"](0), more)

    def carry_out(self, carried: tuple[Carried, ...], arriving: list[list[tuple[LlvmValue, str]]]) -> None:
        """Define the last value of each state, which its name means after the loop."""
        for state, incoming in zip(carried, arriving, strict=True):
            last = LlvmValue(incoming[0][0].type, f"%{self.function.fresh()}")
            self.function.phi(last, incoming)
            self.values[state.name] = last

    def branch(self, node: If) -> None:
        b = self.function
        then, otherwise, after = b.fresh("then"), b.fresh("else"), b.fresh("endif")
        b.cbranch(self.values[node.condition], then, otherwise if node.otherwise else after)
        b.begin_block(then)
        self.body(node.then)
        b.branch(after)
        if node.otherwise:
            b.begin_block(otherwise)
            self.body(node.otherwise)
            b.branch(after)
        b.begin_block(after)

    def fail(self, node: Fail) -> None:
        b = self.function
        for position, name in enumerate(node.details):
            address = b.element(WORD, self.values[node.pointer], WORD(position))
            b.store(self.values[name], address, ITEM_SIZES["int64"])
        b.ret(node.status)

    # ---- memory

    def load(self, place: Place) -> LlvmValue:
        dtype = self.names.pointers[place.pointer]
        return self.as_value(self.function.load(_stored(dtype), self.at(place), _alignment(dtype)), dtype)

    def store(self, place: Place, value: LlvmValue) -> None:
        dtype = self.names.pointers[place.pointer]
        stored = self.function.convert("zext", value, BYTE) if dtype == "bool" else value
        self.function.store(stored, self.at(place), _alignment(dtype))

    def as_value(self, stored: LlvmValue, dtype: str) -> LlvmValue:
        """Return a loaded element as a value: a bool is a byte in memory and a bit elsewhere."""
        return self.function.compare("icmp ne", stored, BYTE(0)) if dtype == "bool" else stored

    def at(self, place: Place) -> LlvmValue:
        """Return the address of the element at `place`."""
        of = _stored(self.names.pointers[place.pointer])
        return self.function.element(of, self.values[place.pointer], self.offset(place))

    def offset(self, place: Place) -> LlvmValue:
        total: LlvmValue | None = None
        for term in place.terms:
            product = self.values[term[0]]
            for factor in term[1:]:
                product = self.function.op("mul nsw", product, self.values[factor])
            total = product if total is None else self.function.op("add nsw", total, product)
        return total or WORD(0)

    def passed(self, argument: Passed) -> LlvmValue:
        """Return an argument of an external: an integer, or an address as one."""
        match argument:
            case Address(place):
                return self.function.ptrtoint(self.at(place))
            case Reference(parameter):
                return self.function.ptrtoint(self.argument(self.positions[parameter]))
            case Literal(value):
                name = f"@literal{len(self.literals)}"
                content = "".join(f"\\{byte:02X}" for byte in value)
                kind = f"internal unnamed_addr constant [{len(value)} x i8]"
                self.literals.append(f'{name} = {kind} c"{content}", align 16')
                return self.function.ptrtoint(LlvmValue(POINTER, name))
            case Word(integer):
                return self.values[integer]

    def bound(self, bound: Bound) -> LlvmValue:
        return self.values[bound] if isinstance(bound, str) else WORD(bound)


def _interleaved(node: Loop, lines: list[str], width: str) -> int | None:
    """Return how many passes of the loop `lines` LLVM should have side by side; None lets it choose.

    Of passes that are independent and short it would have four: more code, which is no faster than two. Of
    calls it would have four too, in turn. Of inlined functions it would have one; two take 3 to 10 ms more
    to compile, which functions of float32 are worth: their vectors wait for each other (decision 0171).
    """
    if not node.interleaved or calls_variants(lines):
        return 1
    is_short = not any(" call " in line for line in lines)
    return 2 if (node.independent and is_short) or width == WIDTH_OF_32_BITS else None


def _is_in_any_order(node: Loop) -> bool:
    """Return True if no pass needs the one before it. A width would let LLVM add up what must be in turn."""
    return not node.until and all(carried.unordered for carried in node.carried)


def _alignment(dtype: str) -> int:
    """Return the alignment of elements: that of a double suffices for two."""
    return min(ITEM_SIZES[dtype], 8)


def _stored(dtype: str) -> LlvmType:
    """Return the type of an element in memory."""
    return BYTE if dtype == "bool" else LLVM_TYPES[dtype]
