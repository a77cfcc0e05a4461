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
from typing import Any

import numpy as np

from cachegraph.named_tuples import NamedTuple
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


class Instruction(NamedTuple):
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
_OPCODES = {name: row.opcode for name, row in INSTRUCTIONS.items()}
_STOPS = ("YIELD", "GROW", "INVOKE")

_LENGTHS = tuple(1 + len(row.operands) for row in _BY_OPCODE)
_MOST_OPERANDS = max(_LENGTHS) - 1
_WRITTEN, _READ, _NUMBER, _FORWARDS, _BACKWARDS = b"daifb"
_OPERAND_KINDS = np.array([list(row.operands.ljust(_MOST_OPERANDS).encode()) for row in _BY_OPCODE])
"""The kind of each operand, a letter of _KINDS or a blank, by opcode."""


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


class ReadCode(NamedTuple):
    """The instructions of a program, in order: the word that each begins at, its opcode, and its operands.

    A row of `operands` is as long as the longest instruction; `kinds` has blanks where there is no operand.
    """

    words: np.ndarray[Any, Any]
    positions: np.ndarray[Any, Any]
    opcodes: np.ndarray[Any, Any]
    operands: np.ndarray[Any, Any]
    kinds: np.ndarray[Any, Any]

    def rows(self, name: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Return the positions and the operands of the instructions of that name."""
        chosen = self.opcodes == _OPCODES[name]
        return self.positions[chosen], self.operands[chosen]

    def targets(self) -> np.ndarray[Any, Any]:
        """Return the words that the code may jump to."""
        return self.operands[(self.kinds == _FORWARDS) | (self.kinds == _BACKWARDS)]


def read_code(code: Sequence[int]) -> ReadCode:
    """Return the instructions of `code`; raises InvalidProgram for words that are none."""
    positions = np.array(list(_walk(code)), dtype=np.int64)
    words = np.array(code, dtype=np.int64)
    opcodes = words[positions]
    places = positions[:, None] + np.arange(1, _MOST_OPERANDS + 1)
    operands = words[np.minimum(places, len(words) - 1)]
    return ReadCode(words, positions, opcodes, operands, _OPERAND_KINDS[opcodes])


def check_code(code: ReadCode, registers: int) -> None:
    """Refuse (InvalidProgram) code that the machine might not run safely to its end with this number of
    registers."""
    halts = np.flatnonzero(code.opcodes == _OPCODES["HALT"])
    if not len(halts):
        raise InvalidProgram("checking", "a program", "it does not end in HALT")
    if halts[0] != len(code.opcodes) - 1:
        behind = code.positions[halts[0] + 1]
        raise InvalidProgram("checking", "a program", f"it goes on behind HALT, at word {behind}")
    _check_operands(code, registers)
    _check_ranks(code, registers)
    _check_calls(code, registers)
    _check_jumps(code)
    _check_loops(code)


def check_items(code: ReadCode, given: Items, made: Sequence[Items], returned: Sequence[Items]) -> None:
    """Refuse (InvalidProgram) code that binds other items than it is given, or stops at an unknown
    site.

    `given` are the items of the call, `made` those after each yield, `returned` those after each
    invocation. Behind a GROW or a jump, where the program may come from several places, it binds
    nothing.
    """
    present = given
    targets = set(code.targets().tolist())
    of_items = np.isin(code.opcodes, [_OPCODES[name] for name in (*_STOPS, "BIND")])
    chosen = of_items | np.isin(code.positions, code.targets())
    for position, opcode, operands in zip(
        *(column[chosen].tolist() for column in (code.positions, code.opcodes, code.operands)), strict=True
    ):
        if position in targets:
            present = ()
        name = _BY_OPCODE[opcode].name
        if name in _STOPS:
            resumed = returned if name == "INVOKE" else made
            site = operands[_LENGTHS[opcode] - 2]
            if site >= len(resumed):
                raise _invalid(name, position, f"site {site} of {len(resumed)}")
            present = () if name == "GROW" else resumed[site]
        elif name == "BIND":
            _, item, _, dtype, rank = operands
            if item >= len(present) or present[item] != (dtype, rank):
                raise _invalid(name, position, f"item {item} is not there, or of another dtype or rank")


def show(code: Sequence[int]) -> str:
    """Return the code as text, one line per instruction."""
    positions = list(_walk(code))
    return "\n".join(
        _line(position, code[position:end])
        for position, end in zip(positions, [*positions[1:], len(code)], strict=True)
    )


def _walk(code: Sequence[int]) -> Iterator[int]:
    """Yield the words at which instructions begin."""
    position, size, call = 0, len(code), _OPCODES["CALL"]
    while position < size:
        opcode = code[position]
        if not 0 <= opcode < len(_LENGTHS):
            raise InvalidProgram("reading", "a program", f"opcode {opcode} at word {position}")
        end = position + _LENGTHS[opcode]
        if opcode == call and end <= size:
            end += max(0, code[end - 1])
        if end > size:
            raise InvalidProgram(
                "reading", "a program", f"{_BY_OPCODE[opcode].name} at word {position} is cut short"
            )
        yield position
        position = end


def _line(position: int, words: Sequence[int]) -> str:
    instruction = _BY_OPCODE[words[0]]
    operands = words[1:]
    kinds = instruction.operands.ljust(len(operands), "a")
    return f"{position:6} {instruction.name:9}{' '.join(map(_shown, kinds, operands))}"


def _shown(kind: str, operand: int) -> str:
    return f"r{operand}" if kind in "da" else str(operand)


def _invalid(name: str, position: int, found: str) -> InvalidProgram:
    return InvalidProgram("checking", "a program", f"{name} at word {position}: {found}")


def _check_operands(code: ReadCode, registers: int) -> None:
    """Refuse operands that are no registers, or negative numbers."""
    operands, kinds = code.operands, code.kinds
    is_register = (kinds == _WRITTEN) | (kinds == _READ)
    lowest = np.where(kinds == _WRITTEN, RESERVED, 0)
    wrong = (operands < lowest) & (is_register | (kinds == _NUMBER))
    wrong |= (operands >= registers) & is_register
    for row, column in np.argwhere(wrong)[:1]:
        least = lowest[row, column]
        wanted = f"not among {least} to {registers - 1}" if is_register[row, column] else "negative"
        found = f"{_KINDS[chr(kinds[row, column])]} {operands[row, column]} is {wanted}"
        raise _invalid(_BY_OPCODE[code.opcodes[row]].name, code.positions[row], found)


def _check_ranks(code: ReadCode, registers: int) -> None:
    positions, operands = code.rows("BIND")
    first, rank = operands[:, 0], operands[:, 4]
    wrong = (rank < 0) | (rank > MAX_RANK)
    wrong |= first + np.clip(rank, 0, MAX_RANK) >= registers
    for row in np.flatnonzero(wrong)[:1]:
        found = f"rank {rank[row]} from register {first[row]} on, of {registers} registers"
        raise _invalid("BIND", positions[row], found)


def _check_calls(code: ReadCode, registers: int) -> None:
    """Refuse calls whose arguments are no registers, or are copied to none; the counts fit the code."""
    positions, operands = code.rows("CALL")
    area, count = operands[:, 1], operands[:, 2]
    for row in np.flatnonzero((area < RESERVED) | (area + count > registers))[:1]:
        found = f"{count[row]} arguments from register {area[row]} on, of {registers} registers"
        raise _invalid("CALL", positions[row], found)
    begin = positions + _LENGTHS[_OPCODES["CALL"]]
    places = np.arange(count.sum()) + np.repeat(begin - (np.cumsum(count) - count), count)
    arguments = code.words[places]
    for place in np.flatnonzero((arguments < 0) | (arguments >= registers))[:1]:
        found = f"the argument {arguments[place]} is not among registers 0 to {registers - 1}"
        raise _invalid("CALL", positions[np.searchsorted(np.cumsum(count), place, "right")], found)


def _check_jumps(code: ReadCode) -> None:
    """Refuse jumps to elsewhere than the beginning of an instruction, or in the wrong direction."""
    for kind in (_FORWARDS, _BACKWARDS):
        rows, columns = np.nonzero(code.kinds == kind)
        targets, positions = code.operands[rows, columns], code.positions[rows]
        is_directed = targets > positions if kind == _FORWARDS else targets < positions
        for row in np.flatnonzero(~is_directed | ~np.isin(targets, code.positions))[:1]:
            where = _KINDS[chr(kind)].removeprefix("word ")
            found = f"{targets[row]} is not the beginning of an instruction {where}"
            raise _invalid(_BY_OPCODE[code.opcodes[rows[row]]].name, positions[row], found)


def _check_loops(code: ReadCode) -> None:
    """Refuse a loop whose body writes the counter or the limit of its NEXT."""
    ends, operands = code.rows("NEXT")
    if not len(ends):
        return
    place, first, last = _writes(code)
    for end, (counter, limit, begin, *_) in zip(ends.tolist(), operands.tolist(), strict=True):
        within = (begin <= place) & (place < end)
        writes = [(first <= register) & (register <= last) for register in (counter, limit)]
        if counter == limit or (within & (writes[0] | writes[1])).any():
            raise _invalid("NEXT", end, "it counts with a register that its loop changes")


def _writes(code: ReadCode) -> tuple[np.ndarray[Any, Any], ...]:
    """Return, for each write, the word of its instruction, and the first and the last register written."""
    rows, columns = np.nonzero(code.kinds == _WRITTEN)
    register, place = code.operands[rows, columns], code.positions[rows]
    bound, arrays = code.rows("BIND")
    called, calls = code.rows("CALL")
    return (
        np.concatenate([place, bound, called]),
        np.concatenate([register, arrays[:, 0], calls[:, 1]]),
        np.concatenate([register, arrays[:, 0] + arrays[:, 4], calls[:, 1] + calls[:, 2] - 1]),
    )
