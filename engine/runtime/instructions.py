"""The machine's instructions: how they are written, checked and shown.

A program's code is a stream of int64 words. It runs from front to back, except for jumps to the
beginning of an instruction: SKIP jumps forwards, NEXT counts and jumps backwards. Nothing between the
target of a NEXT and the NEXT writes its counter or its limit, so every loop ends.

    code        := instruction* HALT
    instruction := opcode operand*        the operands are those of INSTRUCTIONS, in order
    CALL        := opcode function area n register{n}

Registers hold int64s. Arithmetic wraps, as in numpy; arithmetic on sizes, which decides how much memory
is allocated, saturates. The first RESERVED registers belong to the machine, which leaves there where
and why it stopped; no instruction writes them. Status codes are what the machine returns; details are
what it leaves in registers 1, 2 and 3.

Version history
    1  first
    2  loops: SKIP, NEXT, SWAP; GROW asks for memory if there is too little
    3  INVOKE
    4  MULSAT, ADDSAT; sizes that no memory has do not mislead ALIGN and GROW
    5  LOOK; the machine pauses
    6  PARALLEL
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from engine.runtime.errors import InvalidProgram

MACHINE_VERSION = 6

HALTED = 0
YIELDED = 1
"""Register 1: the site. Register 0: the word to resume at."""
UNEQUAL = 2
"""Registers 1, 2, 3: the site and the two values."""
NOT_ONE = 3
"""Registers 1, 2: the site and the value."""
NEGATIVE = 4
"""Registers 1, 2: the site and the value."""
INDIVISIBLE = 5
"""Registers 1, 2, 3: the site, the divisor and the dividend."""
KERNEL_FAILED = 6
"""Registers 1, 2: the kernel's status and the register of its address."""
NOT_BOUND = 7
"""Register 1: the item that is not an array of the expected kind."""
INVOKED = 8
"""Register 1: the invocation. Register 0: the word to resume at."""
PAUSED = 9
"""A pause at a LOOK or a NEXT, in which the caller handles signals. Register 0: the word to resume at,
with the same items."""

DIVIDED = 10
"""Register 0: the word of a CALL that the caller makes in parts, to resume behind it."""

RESERVED = 4
MOST = 2**63 - 1
"""The size that stands for all that no memory can hold."""
MAX_RANK = 64

Items = Sequence[tuple[int, int]]
"""The arrays that a program is started or resumed with: the register of the dtype and the rank of each."""

_KINDS = {
    "d": "register written",
    "a": "register read",
    "i": "number",
    "f": "word behind this instruction",
    "b": "word before this instruction",
    "n": "rank: as many more registers follow the one written",
}


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction: its opcode, its operands (a letter of _KINDS each), and what it does."""

    name: str
    opcode: int
    operands: str
    meaning: str


_TABLE = (
    ("HALT", "", "stop with HALTED"),
    ("YIELD", "i", "stop with YIELDED at this site, to be resumed behind it"),
    ("GROW", "aai", "stop with YIELDED at this site, to be resumed behind it, if a > b, both unsigned"),
    ("MOV", "da", "d = a"),
    ("SWAP", "dd", "exchange two registers"),
    ("ADD", "daa", "d = a + b"),
    ("SUB", "daa", "d = a - b"),
    ("MUL", "daa", "d = a * b"),
    ("FLOORDIV", "daa", "d = a // b, rounded down; 0 if b is 0"),
    ("MOD", "daa", "d = a % b, with the sign of b; 0 if b is 0"),
    ("MAX", "daa", "d = max(a, b)"),
    ("MIN", "daa", "d = min(a, b)"),
    ("NEG", "da", "d = -a"),
    ("ALIGN", "da", "d = a rounded up to a multiple of 64, the greatest that an int64 has if that is none"),
    ("SAME", "aai", "stop with UNEQUAL at this site unless a == b"),
    ("ONE", "ai", "stop with NOT_ONE at this site unless a == 1"),
    ("NONNEG", "ai", "stop with NEGATIVE at this site unless a >= 0"),
    ("DIVIDES", "aai", "stop with INDIVISIBLE at this site unless a divides b (0 divides only 0)"),
    ("LOAD64", "da", "d = the int64 at the address a"),
    ("LOAD32", "da", "d = the int32 at the address a"),
    ("LOAD8", "da", "d = the byte at the address a, unsigned"),
    ("STORE64", "aa", "the int64 at the address a becomes b"),
    ("SKIP", "aaf", "go on at the word f unless a < b"),
    ("NEXT", "dab", "d += 1, then go on at the word b if d < a"),
    (
        "CALL",
        "aai",
        "copy n registers to those from `area` on, call the kernel at a; stop with KERNEL_FAILED unless 0",
    ),
    (
        "BIND",
        "diaan",
        "d = address, d+1.. = lengths of the array in this item; stop with NOT_BOUND unless it fits",
    ),
    ("INVOKE", "i", "stop with INVOKED for this invocation, to be resumed behind it"),
    (
        "MULSAT",
        "daa",
        "d = a * b, or MOST if an int64 does not hold that: products of lengths, that is sizes",
    ),
    ("ADDSAT", "daa", "d = a + b, or MOST if an int64 does not hold that: sums of sizes"),
    (
        "LOOK",
        "i",
        "stop with PAUSED, to be resumed here, if the machine has run for long; 1: each NEXT does so again",
    ),
    (
        "PARALLEL",
        "aa",
        "stop with DIVIDED unless a < b; behind it is a CALL whose last two arguments are the passes to run",
    ),
)
INSTRUCTIONS = {
    name: Instruction(name, opcode, operands, meaning)
    for opcode, (name, operands, meaning) in enumerate(_TABLE)
}
_BY_OPCODE = tuple(INSTRUCTIONS.values())
_JUMPS = frozenset(name for name, row in INSTRUCTIONS.items() if set(row.operands) & {"f", "b"})
_STOPS = ("YIELD", "GROW", "INVOKE")


class Assembler:
    """The code of a program under construction: `code` is the words so far."""

    def __init__(self) -> None:
        self.code: list[int] = []

    def emit(self, name: str, *operands: int) -> None:
        """Append an instruction; raises InvalidProgram for an unknown name or a wrong number of operands."""
        instruction = INSTRUCTIONS.get(name)
        if instruction is None or name == "CALL" or len(operands) != len(instruction.operands):
            raise InvalidProgram(
                "assembling", name, f"with {len(operands)} operands there is no such instruction"
            )
        self.code.extend((instruction.opcode, *operands))

    def skip(self, a: int, b: int) -> int:
        """Append a SKIP and return its number; `land` sets its target."""
        self.emit("SKIP", a, b, 0)
        return len(self.code) - 1

    def land(self, skip: int) -> None:
        """Set the target of that SKIP to the next instruction."""
        self.code[skip] = len(self.code)

    def call(self, function: int, area: int, arguments: Sequence[int]) -> None:
        """Append a CALL of the kernel whose address is in the register `function`, with these registers."""
        self.code.extend((INSTRUCTIONS["CALL"].opcode, function, area, len(arguments), *arguments))


class Row(NamedTuple):
    """An instruction of a program: the word that it begins at, and its operands."""

    position: int
    instruction: Instruction
    operands: tuple[int, ...]


def read_code(code: Sequence[int]) -> list[Row]:
    """Return the instructions of `code`; raises InvalidProgram for words that are none."""
    return list(_walk(code))


def check_code(rows: Sequence[Row], registers: int) -> None:
    """Refuse (InvalidProgram) code that the machine might not run safely to its end with this number of
    registers."""
    last = None
    beginnings = {position for position, _, _ in rows}
    for position, instruction, operands in rows:
        if last == "HALT":
            raise InvalidProgram("checking", "a program", f"it goes on behind HALT, at word {position}")
        last = instruction.name
        wrong = _wrong_operand(instruction, operands, registers)
        if not wrong and last in _JUMPS:
            wrong = _wrong_jump(position, instruction, operands, beginnings)
        if wrong:
            raise InvalidProgram("checking", "a program", f"{last} at word {position}: {wrong}")
    if last != "HALT":
        raise InvalidProgram("checking", "a program", "it does not end in HALT")
    _check_loops(rows)


def check_items(rows: Sequence[Row], given: Items, made: Sequence[Items], returned: Sequence[Items]) -> None:
    """Refuse (InvalidProgram) code that binds other items than it is given, or stops at an unknown
    site.

    `given` are the items of the call, `made` those after each yield, `returned` those after each
    invocation. Behind a GROW or a jump, where the program may come from several places, it binds
    nothing.
    """
    present = given
    targets = _targets(rows)
    for position, instruction, operands in rows:
        if position in targets:
            present = ()
        if instruction.name in _STOPS:
            resumed = returned if instruction.name == "INVOKE" else made
            site = operands[-1]
            if site >= len(resumed):
                found = f"{instruction.name} {site} of {len(resumed)} at word {position}"
                raise InvalidProgram("checking", "a program", found)
            present = () if instruction.name == "GROW" else resumed[site]
        elif instruction.name == "BIND":
            _, item, _, dtype, rank = operands
            if item >= len(present) or present[item] != (dtype, rank):
                found = (
                    f"BIND at word {position} of item {item}, which is not there, or of another dtype or rank"
                )
                raise InvalidProgram("checking", "a program", found)


def show(code: Sequence[int]) -> str:
    """Return the code as text, one line per instruction."""
    return "\n".join(
        f"{position:6} {instruction.name:9}{' '.join(map(_shown, _kinds(instruction, operands), operands))}"
        for position, instruction, operands in _walk(code)
    )


def _walk(code: Sequence[int]) -> Iterator[Row]:
    position = 0
    while position < len(code):
        opcode = code[position]
        if not 0 <= opcode < len(_BY_OPCODE):
            raise InvalidProgram("reading", "a program", f"opcode {opcode} at word {position}")
        instruction = _BY_OPCODE[opcode]
        end = position + 1 + len(instruction.operands)
        if instruction.name == "CALL" and end <= len(code):
            end += max(0, code[end - 1])
        if end > len(code):
            raise InvalidProgram(
                "reading", "a program", f"{instruction.name} at word {position} is cut short"
            )
        yield Row(position, instruction, tuple(code[position + 1 : end]))
        position = end


def _kinds(instruction: Instruction, operands: tuple[int, ...]) -> str:
    return instruction.operands + "a" * (len(operands) - len(instruction.operands))


def _wrong_operand(instruction: Instruction, operands: tuple[int, ...], registers: int) -> str | None:
    for kind, operand in zip(instruction.operands, operands, strict=False):
        lowest = RESERVED if kind == "d" else 0
        if kind in "da" and not lowest <= operand < registers:
            return f"{_KINDS[kind]} {operand} is not among {lowest} to {registers - 1}"
        if kind == "i" and operand < 0:
            return f"{_KINDS[kind]} {operand} is negative"
    if instruction.name == "BIND":
        first, rank = operands[0], operands[-1]
        if not 0 <= rank <= MAX_RANK or first + rank >= registers:
            return f"rank {rank} from register {first} on, of {registers} registers"
    if instruction.name == "CALL":
        _, area, count, *arguments = operands
        if area < RESERVED or area + count > registers:
            return f"{count} arguments from register {area} on, of {registers} registers"
        if arguments and not 0 <= min(arguments) <= max(arguments) < registers:
            return f"the arguments {arguments} are not all among registers 0 to {registers - 1}"
    return None


def _wrong_jump(
    position: int, instruction: Instruction, operands: tuple[int, ...], beginnings: set[int]
) -> str | None:
    for kind, operand in zip(instruction.operands, operands, strict=False):
        if kind in "fb" and (
            operand not in beginnings or operand == position or (kind == "f") != (operand > position)
        ):
            return f"{operand} is not the beginning of an instruction {_KINDS[kind].removeprefix('word ')}"
    return None


def _check_loops(rows: Sequence[Row]) -> None:
    """Refuse a loop whose body writes the counter or the limit of its NEXT."""
    for end, instruction, operands in rows:
        if instruction.name != "NEXT":
            continue
        counter, limit, begin = operands
        body = [row for row in rows if begin <= row.position < end]
        if counter == limit or any(_writes(row, counter) or _writes(row, limit) for row in body):
            found = f"NEXT at word {end} counts with a register that its loop changes"
            raise InvalidProgram("checking", "a program", found)


def _writes(row: Row, register: int) -> bool:
    _, instruction, operands = row
    if instruction.name == "CALL":
        return operands[1] <= register < operands[1] + operands[2]
    if instruction.name == "BIND":
        return operands[0] <= register <= operands[0] + operands[-1]
    return any(
        kind == "d" and operand == register
        for kind, operand in zip(instruction.operands, operands, strict=True)
    )


def _targets(rows: Sequence[Row]) -> set[int]:
    """Return the words that the code may jump to."""
    return {
        operand
        for _, instruction, operands in rows
        if instruction.name in _JUMPS
        for kind, operand in zip(instruction.operands, operands, strict=False)
        if kind in "fb"
    }


def _shown(kind: str, operand: int) -> str:
    return f"r{operand}" if kind in "da" else str(operand)
