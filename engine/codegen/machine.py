"""The machine that runs programs, as LLVM IR text: a block per instruction, and a switch
between them.

BIND reads numpy's array struct. The offsets of its fields follow from numpy's stable ABI and from the
size of Python's object head, and are written into the text: so the text alone decides what is compiled.

The machine runs without Python's lock and cannot see signals. It pauses about ten times a second, at a
NEXT or a LOOK, so that its caller can handle them. To know the time it reads the processor's counter:
at every LOOK; at a NEXT in the first pass, then less often while passes are quick, but at least at
every 64th.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from engine.codegen.clock import clock_source
from engine.runtime.instructions import (
    DIVIDED,
    HALTED,
    INDIVISIBLE,
    INSTRUCTIONS,
    INVOKED,
    KERNEL_FAILED,
    MOST,
    NEGATIVE,
    NOT_BOUND,
    NOT_ONE,
    PAUSED,
    UNEQUAL,
    YIELDED,
)
from engine.runtime.machine import DTYPE_WORD
from engine.runtime.python_api import OBJECT_HEAD

ENTRY = "machine"
"""The name of the one function that the source shows."""

_TYPE, _DATA, _RANK, _LENGTHS, _DTYPE, _FLAGS = (
    OBJECT_HEAD - 8,
    OBJECT_HEAD,
    OBJECT_HEAD + 8,
    OBJECT_HEAD + 16,
    OBJECT_HEAD + 40,
    OBJECT_HEAD + 48,
)
_CONTIGUOUS_AND_ALIGNED = 0x101
_WITH_OWN_SWITCH = ("CALL", "NEXT", "SWAP", "ADD")
"""The instructions of short loops: the processor predicts a switch of their own better than a shared
one."""
_OFTEN = (*_WITH_OWN_SWITCH, "HALT", "YIELD", "BIND", "SKIP", "LOOK", "MOV", "PARALLEL")
"""The instructions that LLVM optimizes. Generating the code of all would take three times as long."""


@cache
def machine_source() -> str:
    """Return the machine as LLVM IR text: one block an instruction, and a switch that goes from one to
    the next. Instructions that are not run often are in a function of their own."""
    blocks, rare = (
        [_emitted(name) for name in INSTRUCTIONS if (name in _OFTEN) == is_often]
        for is_often in (True, False)
    )
    fetched = [("first", "entry"), ("rare.next", "rare")]
    fetched += [arrival for block in blocks for arrival in block.arrivals]
    sources = [("next", "fetch"), *(arrival for block in blocks for arrival in block.own_arrivals)]
    return "\n".join(
        (
            f"define i64 @{ENTRY}(i64 %items, ptr %registers, ptr %code, i64 %pc) {{",
            "entry:",
            "  %looks = alloca [3 x i64]",
            f"  store [3 x i64] [{', '.join(f'i64 {word}' for word in _FIRST_LOOKS)}], ptr %looks",
            "  %status = alloca i64",
            "  %first = getelementptr i64, ptr %code, i64 %pc",
            "  br label %fetch",
            "fetch:",
            f"  %next = {_chosen(fetched)}",
            *_switch("next", _OFTEN),
            "rare:",
            f"  %rare.ip = {_chosen(sources)}",
            "  %rare.next = call ptr @rare(ptr %registers, ptr %code, ptr %rare.ip, ptr %status)",
            "  %rare.stops = icmp eq ptr %rare.next, null",
            "  br i1 %rare.stops, label %rare.stop, label %fetch",
            "rare.stop:",
            "  %rare.status = load i64, ptr %status",
            "  ret i64 %rare.status",
            *(line for block in blocks for line in block.text(sources)),
            "}",
            _RARE,
            *_switch("ip", [block.name for block in rare], "unknown"),
            "unknown:",
            "  unreachable",
            *(line for block in rare for line in block.text(())),
            "}",
            _LOOK,
            clock_source(),
            "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
            *(
                f"declare {{i64, i1}} @llvm.{name}.with.overflow.i64(i64, i64)"
                for name in _SATURATING.values()
            ),
            "",
        )
    )


_LOOK = """
define internal i1 @look(ptr %looks) noinline cold {
  %now = call i64 @now()
  %long = call i64 @long()
  %last.at = getelementptr i64, ptr %looks, i64 1
  %begin.at = getelementptr i64, ptr %looks, i64 2
  %mask = load i64, ptr %looks
  %last = load i64, ptr %last.at
  %before = load i64, ptr %begin.at
  %is.first = icmp eq i64 %before, 0
  %begin = select i1 %is.first, i64 %now, i64 %before
  store i64 %begin, ptr %begin.at
  store i64 %now, ptr %last.at
  %twice = shl i64 %mask, 1
  %wider = or i64 %twice, 1
  %rarer = and i64 %wider, 63
  %short = lshr i64 %long, 7
  %apart = sub i64 %now, %last
  %is.short = icmp ult i64 %apart, %short
  %next = select i1 %is.short, i64 %rarer, i64 0
  store i64 %next, ptr %looks
  %elapsed = sub i64 %now, %begin
  %is.long = icmp ugt i64 %elapsed, %long
  ret i1 %is.long
}
"""
"""Reads the counter and returns 1 if the machine has run for long. `looks` has three words: a mask, the
counter at the last look, and the counter at the first. A NEXT looks if its count has no bit of the
mask, which grows while looks are less than a 128th of the limit apart."""
_FIRST_LOOKS = (0, 0, 0)


def _chosen(sources: Sequence[tuple[str, str]]) -> str:
    """The address that comes with the label that was left."""
    return "phi ptr " + ", ".join(f"[ %{ip}, %{label} ]" for ip, label in sources)


_RARE = """
define internal ptr @rare(ptr %registers, ptr %code, ptr %ip, ptr %status) noinline optnone {
entry:
"""
"""Runs the instruction at `ip` and returns the address of the next, or null with the status to stop with."""


def _switch(ip: str, names: Iterable[str], otherwise: str = "rare") -> tuple[str, str]:
    """Go on with the instruction at `ip`: under its label if it is one of `names`."""
    cases = " ".join(f"i64 {INSTRUCTIONS[name].opcode}, label %{name}" for name in names)
    return (
        f"  %{ip}.opcode = load i64, ptr %{ip}",
        f"  switch i64 %{ip}.opcode, label %{otherwise} [ {cases} ]",
    )


def _emitted(name: str) -> _Block:
    block = _Block(name)
    _EMITTERS.get(name, _emit_binary)(block)
    return block


class _Block:
    """The text of one instruction's block, `name` being its label and the prefix of its temporaries."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.operands = INSTRUCTIONS[name].operands
        self.is_often = name in _OFTEN
        self.ip = f"%{name}.ip" if self.is_often else "%ip"
        """The address of this instruction."""
        self.lines: list[str] = []
        self.arrivals: list[tuple[str, str]] = []
        """Where to go on, and the label that this is decided under."""
        self.own_arrivals: list[tuple[str, str]] = []
        """The same, where that is done at once."""
        self.next_from = name
        self._numbers: Iterator[int] = iter(range(1000))

    def text(self, sources: Sequence[tuple[str, str]]) -> Iterator[str]:
        """The lines, for a machine whose instructions are reached from `sources`."""
        yield f"{self.name}:"
        if self.is_often:
            yield f"  {self.ip} = {_chosen(sources)}"
        yield from self.lines

    def value(self, text: str) -> str:
        """Name the result of `text`."""
        name = f"%{self.name}.{next(self._numbers)}"
        self.line(f"{name} = {text}")
        return name

    def line(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def label(self, suffix: str) -> None:
        self.next_from = f"{self.name}.{suffix}"
        self.lines.append(f"{self.next_from}:")

    def operand(self, position: int) -> str:
        """The word of operand `position`."""
        address = self.value(f"getelementptr inbounds i64, ptr {self.ip}, i64 {position + 1}")
        return self.value(f"load i64, ptr {address}")

    def register(self, number: str) -> str:
        """The address of a register."""
        return self.value(f"getelementptr inbounds i64, ptr %registers, i64 {number}")

    def read(self, position: int) -> str:
        """Return the value in the register that operand `position` names."""
        return self.value(f"load i64, ptr {self.register(self.operand(position))}")

    def write(self, position: int, value: str) -> None:
        self.line(f"store i64 {value}, ptr {self.register(self.operand(position))}")

    def load(self, kind: str, address: str, offset: int = 0) -> str:
        """The value of type `kind` at an address held in an i64."""
        at = self.value(f"inttoptr i64 {address} to ptr")
        return self.value(f"load {kind}, ptr {self.value(f'getelementptr i8, ptr {at}, i64 {offset}')}")

    def go_on(self, words: str = "") -> None:
        """Fetch the next instruction, `words` behind this one."""
        words = words or str(1 + len(self.operands))
        self._go_on_at(f"getelementptr inbounds i64, ptr {self.ip}, i64 {words}")

    def jump(self, position: int) -> None:
        """Fetch the instruction at the word that operand `position` is."""
        self._go_on_at(f"getelementptr inbounds i64, ptr %code, i64 {self.operand(position)}")

    def _go_on_at(self, address: str) -> None:
        ip = self.value(address).removeprefix("%")
        if self.name in _WITH_OWN_SWITCH:
            self.own_arrivals.append((ip, self.next_from))
            self.lines.extend(_switch(ip, _OFTEN))
            return
        if not self.is_often:
            self.line(f"ret ptr %{ip}")
            return
        self.arrivals.append((ip, self.next_from))
        self.line("br label %fetch")

    def look_if(self, condition: str) -> None:
        """If `condition` holds, look at the counter, and pause at this instruction if the machine has
        run for long."""
        self.line(f"br i1 {condition}, label %{self.name}.look, label %{self.name}.on")
        self.label("look")
        is_long = self.value("call i1 @look(ptr %looks)")
        self.line(f"br i1 {is_long}, label %{self.name}.pause, label %{self.name}.on")
        self.label("pause")
        self.stop(PAUSED, self.ip)
        self.label("on")

    def choose(self, condition: str) -> None:
        """Go on in this block if `condition` holds, else under the label "otherwise"."""
        self.line(f"br i1 {condition}, label %{self.name}.then, label %{self.name}.otherwise")
        self.label("then")

    def unless(self, condition: str, status: int, *details: str) -> None:
        """Go on in this block if `condition` holds, else stop with `status` here."""
        label = f"passed{next(self._numbers)}"
        self.line(f"br i1 {condition}, label %{self.name}.{label}, label %{self.name}.not.{label}")
        self.lines.append(f"{self.name}.not.{label}:")
        self.stop(status, self.ip, *details)
        self.label(label)

    def stop(self, status: int, ip: str, *details: str) -> None:
        distance = self.value(f"sub i64 {self._integer(ip)}, {self._integer('%code')}")
        self.line(f"store i64 {self.value(f'ashr exact i64 {distance}, 3')}, ptr %registers")
        for number, detail in enumerate(details, start=1):
            self.line(f"store i64 {detail}, ptr {self.register(str(number))}")
        if self.is_often:
            self.line(f"ret i64 {status}")
            return
        self.line(f"store i64 {status}, ptr %status")
        self.line("ret ptr null")

    def _integer(self, pointer: str) -> str:
        return self.value(f"ptrtoint ptr {pointer} to i64")


def _emit_halt(block: _Block) -> None:
    block.line(f"ret i64 {HALTED}")


def _emit_yield(block: _Block) -> None:
    behind = block.value(f"getelementptr inbounds i64, ptr {block.ip}, i64 2")
    block.stop(_STOPS[block.name], behind, block.operand(0))


def _emit_grow(block: _Block) -> None:
    need, present, site = block.read(0), block.read(1), block.operand(2)
    behind = block.value(f"getelementptr inbounds i64, ptr {block.ip}, i64 {1 + len(block.operands)}")
    block.choose(block.value(f"icmp ugt i64 {need}, {present}"))
    block.stop(YIELDED, behind, site)
    block.label("otherwise")
    block.go_on()


def _emit_skip(block: _Block) -> None:
    a, b = block.read(0), block.read(1)
    block.choose(block.value(f"icmp slt i64 {a}, {b}"))
    block.go_on()
    block.label("otherwise")
    block.jump(2)


def _emit_next(block: _Block) -> None:
    counted = block.value(f"add i64 {block.read(0)}, 1")
    masked = block.value(f"and i64 {counted}, {block.value('load i64, ptr %looks')}")
    block.look_if(block.value(f"icmp eq i64 {masked}, 0"))
    block.write(0, counted)
    block.choose(block.value(f"icmp slt i64 {counted}, {block.read(1)}"))
    block.jump(2)
    block.label("otherwise")
    block.go_on()


def _emit_swap(block: _Block) -> None:
    a, b = block.read(0), block.read(1)
    block.write(0, b)
    block.write(1, a)
    block.go_on()


_STOPS = {"YIELD": YIELDED, "INVOKE": INVOKED}
_UNARY = {"MOV": "add i64 {a}, 0", "NEG": "sub i64 0, {a}"}
_BINARY = {"ADD": "add", "SUB": "sub", "MUL": "mul", "MAX": "sgt", "MIN": "slt"}
_SATURATING = {"MULSAT": "smul", "ADDSAT": "sadd"}
_LOADS = {"LOAD64": "i64", "LOAD32": "i32", "LOAD8": "i8"}


def _emit_binary(block: _Block) -> None:
    a, b = block.read(1), block.read(2)
    operation = _BINARY[block.name]
    if block.name in ("MAX", "MIN"):
        condition = block.value(f"icmp {operation} i64 {a}, {b}")
        block.write(0, block.value(f"select i1 {condition}, i64 {a}, i64 {b}"))
    else:
        block.write(0, block.value(f"{operation} i64 {a}, {b}"))
    block.go_on()


def _emit_unary(block: _Block) -> None:
    block.write(0, block.value(_UNARY[block.name].format(a=block.read(1))))
    block.go_on()


def _emit_saturating(block: _Block) -> None:
    block.write(0, _saturated(block, _SATURATING[block.name], block.read(1), block.read(2)))
    block.go_on()


def _saturated(block: _Block, operation: str, a: str, b: str) -> str:
    """The result of the operation, or MOST if it overflows."""
    both = block.value(f"call {{i64, i1}} @llvm.{operation}.with.overflow.i64(i64 {a}, i64 {b})")
    result, overflows = (block.value(f"extractvalue {{i64, i1}} {both}, {part}") for part in (0, 1))
    return block.value(f"select i1 {overflows}, i64 {MOST}, i64 {result}")


def _emit_align(block: _Block) -> None:
    behind = _saturated(block, _SATURATING["ADDSAT"], block.read(1), "63")
    block.write(0, block.value(f"and i64 {behind}, -64"))
    block.go_on()


def _emit_division(block: _Block) -> None:
    """Emit Python's quotient or remainder without traps: by 0 it is 0, by -1 computed by 1 and negated."""
    a, b = block.read(1), block.read(2)
    zero, negated = block.value(f"icmp eq i64 {b}, 0"), block.value(f"icmp eq i64 {b}, -1")
    odd = block.value(f"or i1 {zero}, {negated}")
    divisor = block.value(f"select i1 {odd}, i64 1, i64 {b}")
    quotient, remainder = block.value(f"sdiv i64 {a}, {divisor}"), block.value(f"srem i64 {a}, {divisor}")
    opposite = block.value(f"icmp slt i64 {block.value(f'xor i64 {remainder}, {divisor}')}, 0")
    inexact = block.value(f"icmp ne i64 {remainder}, 0")
    moved = block.value(f"and i1 {opposite}, {inexact}")
    if block.name == "MOD":
        moved_by = block.value(f"select i1 {moved}, i64 {divisor}, i64 0")
        block.write(0, block.value(f"add i64 {remainder}, {moved_by}"))
    else:
        rounded = block.value(f"sub i64 {quotient}, {block.value(f'zext i1 {moved} to i64')}")
        signed = block.value(f"select i1 {negated}, i64 {block.value(f'sub i64 0, {a}')}, i64 {rounded}")
        block.write(0, block.value(f"select i1 {zero}, i64 0, i64 {signed}"))
    block.go_on()


def _emit_same(block: _Block) -> None:
    a, b, site = block.read(0), block.read(1), block.operand(2)
    block.unless(block.value(f"icmp eq i64 {a}, {b}"), UNEQUAL, site, a, b)
    block.go_on()


def _emit_one(block: _Block) -> None:
    a, site = block.read(0), block.operand(1)
    block.unless(block.value(f"icmp eq i64 {a}, 1"), NOT_ONE, site, a)
    block.go_on()


def _emit_nonneg(block: _Block) -> None:
    a, site = block.read(0), block.operand(1)
    block.unless(block.value(f"icmp sge i64 {a}, 0"), NEGATIVE, site, a)
    block.go_on()


def _emit_divides(block: _Block) -> None:
    a, b, site = block.read(0), block.read(1), block.operand(2)
    zero, minus_one = block.value(f"icmp eq i64 {a}, 0"), block.value(f"icmp eq i64 {a}, -1")
    odd = block.value(f"or i1 {zero}, {minus_one}")
    divisor = block.value(f"select i1 {odd}, i64 1, i64 {a}")
    remainder = block.value(f"srem i64 {b}, {divisor}")
    left = block.value(f"select i1 {zero}, i64 {b}, i64 {remainder}")
    block.unless(block.value(f"icmp eq i64 {left}, 0"), INDIVISIBLE, site, a, b)
    block.go_on()


def _emit_load(block: _Block) -> None:
    kind = _LOADS[block.name]
    loaded = block.load(kind, block.read(1))
    extended = {
        "i64": f"add i64 {loaded}, 0",
        "i32": f"sext i32 {loaded} to i64",
        "i8": f"zext i8 {loaded} to i64",
    }
    block.write(0, block.value(extended[kind]))
    block.go_on()


def _emit_store(block: _Block) -> None:
    address = block.value(f"inttoptr i64 {block.read(0)} to ptr")
    block.line(f"store i64 {block.read(1)}, ptr {address}")
    block.go_on()


def _emit_look(block: _Block) -> None:
    often = block.value(f"sub i64 {block.operand(0)}, 1")
    masked = block.value(f"and i64 {block.value('load i64, ptr %looks')}, {often}")
    block.line(f"store i64 {masked}, ptr %looks")
    block.look_if("true")
    block.go_on()


def _emit_call(block: _Block) -> None:
    function, area, count = block.operand(0), block.operand(1), block.operand(2)
    words = block.value(f"add i64 {count}, 4")
    target = block.value(f"getelementptr inbounds i64, ptr %registers, i64 {area}")
    first = block.value(f"getelementptr inbounds i64, ptr {block.ip}, i64 4")
    _emit_copies(block, count, first, target)
    address = block.value(f"load i64, ptr {block.register(function)}")
    status = block.value(f"call i32 {block.value(f'inttoptr i64 {address} to ptr')}(ptr {target})")
    extended = block.value(f"sext i32 {status} to i64")
    block.unless(block.value(f"icmp eq i32 {status}, 0"), KERNEL_FAILED, extended, function)
    block.go_on(words)


def _emit_parallel(block: _Block) -> None:
    behind = block.value(f"getelementptr inbounds i64, ptr {block.ip}, i64 {1 + len(block.operands)}")
    block.choose(block.value(f"icmp slt i64 {block.read(0)}, {block.read(1)}"))
    block.go_on()
    block.label("otherwise")
    block.stop(DIVIDED, behind)


def _emit_copies(block: _Block, count: str, source: str, target: str) -> None:
    """Copy to the words at `target` the registers that the `count` words at `source` name."""
    name = block.name
    block.line(f"br label %{name}.test")
    before = block.next_from
    block.label("test")
    block.line(f"%{name}.i = phi i64 [ 0, %{before} ], [ %{name}.j, %{name}.body ]")
    done = block.value(f"icmp sge i64 %{name}.i, {count}")
    block.line(f"br i1 {done}, label %{name}.end, label %{name}.body")
    block.label("body")
    number = block.value(
        f"load i64, ptr {block.value(f'getelementptr inbounds i64, ptr {source}, i64 %{name}.i')}"
    )
    value = block.value(f"load i64, ptr {block.register(number)}")
    block.line(
        f"store i64 {value}, ptr {block.value(f'getelementptr inbounds i64, ptr {target}, i64 %{name}.i')}"
    )
    block.line(f"%{name}.j = add i64 %{name}.i, 1")
    block.line(f"br label %{name}.test")
    block.label("end")


def _emit_bind(block: _Block) -> None:
    result, item, rank = block.operand(0), block.operand(1), block.operand(4)
    items = block.value("inttoptr i64 %items to ptr")
    array = block.value(f"load i64, ptr {block.value(f'getelementptr i64, ptr {items}, i64 {item}')}")
    expected_type, expected_dtype = block.read(2), block.read(3)
    block.unless(
        block.value(f"icmp eq i64 {block.load('i64', array, _TYPE)}, {expected_type}"), NOT_BOUND, item
    )
    dtype = block.load("i64", block.load("i64", array, _DTYPE), DTYPE_WORD)
    flags = block.value(f"and i32 {block.load('i32', array, _FLAGS)}, {_CONTIGUOUS_AND_ALIGNED}")
    found_rank = block.value(f"sext i32 {block.load('i32', array, _RANK)} to i64")
    conditions = (
        block.value(f"icmp eq i64 {dtype}, {expected_dtype}"),
        block.value(f"icmp eq i32 {flags}, {_CONTIGUOUS_AND_ALIGNED}"),
        block.value(f"icmp eq i64 {found_rank}, {rank}"),
    )
    fits = block.value(f"and i1 {conditions[0]}, {conditions[1]}")
    block.unless(block.value(f"and i1 {fits}, {conditions[2]}"), NOT_BOUND, item)
    target = block.register(result)
    block.line(f"store i64 {block.load('i64', array, _DATA)}, ptr {target}")
    lengths = block.value(f"inttoptr i64 {block.load('i64', array, _LENGTHS)} to ptr")
    behind = block.value(f"getelementptr inbounds i64, ptr {target}, i64 1")
    _emit_lengths(block, rank, lengths, behind)
    block.go_on()


def _emit_lengths(block: _Block, count: str, source: str, target: str) -> None:
    size = block.value(f"shl i64 {count}, 3")
    block.line(
        f"call void @llvm.memcpy.p0.p0.i64(ptr align 8 {target}, ptr align 8 {source}, i64 {size}, i1 false)"
    )


_EMITTERS = {
    "HALT": _emit_halt,
    "YIELD": _emit_yield,
    "GROW": _emit_grow,
    "INVOKE": _emit_yield,
    "MOV": _emit_unary,
    "SWAP": _emit_swap,
    "NEG": _emit_unary,
    "ALIGN": _emit_align,
    "MULSAT": _emit_saturating,
    "ADDSAT": _emit_saturating,
    "FLOORDIV": _emit_division,
    "MOD": _emit_division,
    "SAME": _emit_same,
    "ONE": _emit_one,
    "NONNEG": _emit_nonneg,
    "DIVIDES": _emit_divides,
    "LOAD64": _emit_load,
    "LOAD32": _emit_load,
    "LOAD8": _emit_load,
    "STORE64": _emit_store,
    "SKIP": _emit_skip,
    "NEXT": _emit_next,
    "LOOK": _emit_look,
    "CALL": _emit_call,
    "PARALLEL": _emit_parallel,
    "BIND": _emit_bind,
}
