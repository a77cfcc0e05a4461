"""Bytecode: the encoding of what code does, independent of where it was written, and what it reads and uses.

    code        := text(magic of the bytecode) text(name) text(qualified name) shape instructions handlers
    shape       := uint(flags) uint(positional) uint(positional only) uint(keyword only) names names names
    names       := uint(n) text*n                               arguments; cell variables; free variables
    instruction := text(opcode) (argument)
    argument    := '-'                                          none
                 | 'i' uint                                     a number: a slot, a count, an operator
                 | 'j' uint   a jump: the number of the instruction it goes to
                 | 'n' text uint                                a name, and the bits that come with it
                 | 'k' value | 'k' 'o' code                     a constant, itself a code object perhaps
    handler   := uint(first) uint(end) uint(target) uint(depth) uint(restores)   a try block

Left out are line numbers, file names, docstrings, what a class statement notes of itself (module,
lines, attributes), and NOPs, which the compiler leaves for lines. Annotations inside a function are
included, since they are computed. Bytecode differs between releases of Python, so its magic number
is included.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from importlib.util import MAGIC_NUMBER
from itertools import pairwise
from types import CodeType, ModuleType
from typing import TYPE_CHECKING

from cachegraph.named_tuples import NamedTuple

if TYPE_CHECKING:
    from cachegraph.fingerprint.encoder import Encoder

_SKIPPED = frozenset(("NOP", "CACHE", "EXTENDED_ARG"))
_JUMPS = frozenset(dis.hasjrel) | frozenset(dis.hasjabs)
_CONSTANTS = frozenset(dis.hasconst)
_NAMES = frozenset(dis.hasname)
# the number of low bits of the argument that are not the index of the name
_NAME_BITS = {
    "LOAD_GLOBAL": 1,
    "LOAD_SUPER_ATTR": 2,
    **({"LOAD_ATTR": 1} if sys.version_info >= (3, 12) else {}),
}
# What class statements begin and end with: (opcode of the load, its name if it loads one) -> stored name.
_NOTED_BY_CLASSES = frozenset(
    (
        ("LOAD_NAME", "__name__", "__module__"),
        ("LOAD_CONST", None, "__doc__"),
        ("LOAD_CONST", None, "__firstlineno__"),
        ("LOAD_SMALL_INT", None, "__firstlineno__"),  # since Python 3.14
        ("LOAD_CONST", None, "__static_attributes__"),
    )
)
_UNDESCRIBED = frozenset(
    (
        "__globals__", "__builtins__", "__code__", "__doc__", "__module__", "__annotations__",
        "__subclasses__", "__annotate__", "__annotate_func__", "__annotations_cache__", "__orig_bases__",
        "__parameters__", "__type_params__",
        "__firstlineno__", "__static_attributes__", "__dataclass_fields__", "__dataclass_params__",
        "annotation", "return_annotation", "f_globals", "f_locals", "f_builtins", "f_back", "tb_frame",
        "gi_frame", "cr_frame", "ag_frame",
    )
)  # fmt: skip
_GLOBAL_LOADS = frozenset(("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"))
_ATTRIBUTE_LOADS = frozenset(("LOAD_ATTR", "LOAD_METHOD"))
_ANY_ATTRIBUTE_LOADS = _ATTRIBUTE_LOADS | {"LOAD_SUPER_ATTR"}
# The flag for a docstring is left out: docstrings are not identity.
_IDENTITY_FLAGS = 0x04 | 0x08 | 0x20 | 0x80 | 0x100 | 0x200 | 0xFFFF_0000 & ~0x0400_0000


# methods of Python's containers that change them
_CHANGES = frozenset(
    (
        "add", "append", "appendleft", "clear", "difference_update", "discard", "extend", "extendleft",
        "insert", "intersection_update", "move_to_end", "pop", "popitem", "popleft", "remove", "reverse",
        "rotate", "setdefault", "sort", "subtract", "symmetric_difference_update", "update",
    )
)  # fmt: skip


class GlobalRead(NamedTuple):
    """A global that code reads: its name, and the chain of attributes taken from it."""

    name: str
    attributes: tuple[str, ...]


class Import(NamedTuple):
    """An import within code: the module, how many packages up the search starts, and the names taken."""

    module: str
    level: int
    names: tuple[str, ...]


def encode_code(encoder: Encoder, code: CodeType) -> None:
    """Write `code`; raises Unfingerprintable for a constant that has no encoding."""
    instructions = _instructions(code)
    numbers = _numbers(code, instructions)
    encoder.bytes(MAGIC_NUMBER)
    encoder.text(code.co_name)
    encoder.text(code.co_qualname)
    for number in (
        code.co_flags & _IDENTITY_FLAGS,
        code.co_argcount,
        code.co_posonlyargcount,
        code.co_kwonlyargcount,
    ):
        encoder.uint(number)
    for names in (_arguments(code), code.co_cellvars, code.co_freevars):
        _write_names(encoder, names)
    encoder.uint(len(instructions))
    for instruction in instructions:
        encoder.text(instruction.opname)
        _write_argument(encoder, instruction, numbers)
    _write_handlers(encoder, code, numbers)


def reads(code: CodeType) -> list[GlobalRead]:
    """Return the globals and builtins that `code`, and code nested in it, may read, sorted."""
    return sorted({read for inner in _with_inner(code) for read in _reads(_instructions(inner))})


def changed_in_place(code: CodeType) -> list[GlobalRead]:
    """Return the globals that `code`, and code nested in it, changes by an item or a method, sorted.

    They are recognized by where they begin in the source; returns nothing if Python leaves that out.
    """
    return sorted({read for inner in _with_inner(code) for read in _changed(_instructions(inner))})


def _changed(instructions: list[dis.Instruction]) -> Iterator[GlobalRead]:
    """Yield globals that begin where the target of an assignment to an item, or a changing method, begins."""
    changed = {_begin(instruction) for instruction in instructions if _changes(instruction)} - {None}
    for position, instruction in enumerate(instructions):
        if instruction.opname in _GLOBAL_LOADS and _begin(instruction) in changed:
            yield GlobalRead(_name(instruction), tuple(_attributes_from(instructions, position + 1)))


def _changes(instruction: dis.Instruction) -> bool:
    if instruction.opname in _ATTRIBUTE_LOADS:
        return _name(instruction) in _CHANGES
    return instruction.opname in ("STORE_SUBSCR", "DELETE_SUBSCR")


def _begin(instruction: dis.Instruction) -> tuple[int, int] | None:
    where = instruction.positions
    if where is None or where.lineno is None or where.col_offset is None:
        return None
    return where.lineno, where.col_offset


def look_up(space: Mapping[str, object], read: GlobalRead) -> tuple[object, tuple[str, ...]]:
    """Return the value of `read` in `space`, and the attributes that were taken from modules on the way."""
    value = space[read.name]
    taken = 0
    while isinstance(value, ModuleType) and taken < len(read.attributes):
        if not hasattr(value, read.attributes[taken]):
            break
        value = getattr(value, read.attributes[taken])
        taken += 1
    return value, read.attributes[:taken]


def undescribed(names: Iterable[str]) -> list[str]:
    """Return the attributes among `names` that no definition describes, sorted."""
    return sorted(_UNDESCRIBED.intersection(names))


def attributes(code: CodeType) -> set[str]:
    """Return the attributes that `code`, and code nested in it, takes, or may take by a constant name."""
    return {
        str(instruction.argval)
        for inner in _with_inner(code)
        for instruction in _instructions(inner)
        if instruction.opname in _ANY_ATTRIBUTE_LOADS
        or (instruction.opcode in _CONSTANTS and _is_special_name(instruction.argval))
    }


def _is_special_name(constant: object) -> bool:
    return isinstance(constant, str) and constant.startswith("__") and constant.endswith("__")


def imports(code: CodeType) -> list[Import]:
    """Return the imports of `code`, and of code nested in it, sorted."""
    return sorted({found for inner in _with_inner(code) for found in _imports(_instructions(inner))})


def _with_inner(code: CodeType) -> Iterator[CodeType]:
    waiting = [code]
    while waiting:
        code = waiting.pop()
        yield code
        waiting.extend(constant for constant in code.co_consts if isinstance(constant, CodeType))


def _instructions(code: CodeType) -> list[dis.Instruction]:
    found = [instruction for instruction in dis.get_instructions(code) if instruction.opname not in _SKIPPED]
    noted = {
        number + k
        for number, (load, store) in enumerate(pairwise(found))
        if store.opname == "STORE_NAME" and _is_noted_by_class(load, store)
        for k in (0, 1)
    }
    return [
        _with_keywords(code, instruction) for number, instruction in enumerate(found) if number not in noted
    ]


def _is_noted_by_class(load: dis.Instruction, store: dis.Instruction) -> bool:
    name = _name(load) if load.opname == "LOAD_NAME" else None
    return (load.opname, name, _name(store)) in _NOTED_BY_CLASSES


def _with_keywords(code: CodeType, instruction: dis.Instruction) -> dis.Instruction:
    """Return `instruction` with the keywords of the call, which Python 3.11 leaves out."""
    if instruction.opname != "KW_NAMES" or instruction.arg is None:
        return instruction
    return instruction._replace(argval=code.co_consts[instruction.arg])


def _numbers(code: CodeType, instructions: list[dis.Instruction]) -> dict[int, int]:
    """Return the number of the instruction at, or next after, every offset of the bytecode."""
    numbers: dict[int, int] = {}
    number = len(instructions)
    starts = {instruction.offset: position for position, instruction in enumerate(instructions)}
    for offset in range(len(code.co_code), -1, -2):
        number = starts.get(offset, number)
        numbers[offset] = number
    return numbers


def _arguments(code: CodeType) -> tuple[str, ...]:
    stars = bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + stars]


def _write_names(encoder: Encoder, names: tuple[str, ...]) -> None:
    encoder.uint(len(names))
    for name in names:
        encoder.text(name)


def _write_argument(encoder: Encoder, instruction: dis.Instruction, numbers: dict[int, int]) -> None:
    argument = instruction.arg
    if argument is None:
        encoder.tag(b"-")
    elif instruction.opcode in _JUMPS:
        encoder.tag(b"j")
        encoder.uint(numbers[instruction.argval])
    elif instruction.opcode in _CONSTANTS:
        _write_constant(encoder, instruction.argval)
    elif instruction.opcode in _NAMES:
        encoder.tag(b"n")
        encoder.text(_name(instruction))
        encoder.uint(argument & (1 << _NAME_BITS.get(instruction.opname, 0)) - 1)
    else:
        encoder.tag(b"i")
        encoder.uint(argument)


def _write_constant(encoder: Encoder, constant: object) -> None:
    encoder.tag(b"k")
    if isinstance(constant, CodeType):
        encoder.tag(b"o")
        encode_code(encoder, constant)
    else:
        encoder.value(constant)


def _write_handlers(encoder: Encoder, code: CodeType, numbers: dict[int, int]) -> None:
    entries = dis.Bytecode(code).exception_entries  # type: ignore[attr-defined]
    encoder.uint(len(entries))
    for entry in entries:
        for offset in (entry.start, entry.end, entry.target):
            encoder.uint(numbers[offset])
        encoder.uint(entry.depth)
        encoder.uint(int(entry.lasti))


def _name(instruction: dis.Instruction) -> str:
    """Return the bare name: in some releases `dis` adds the meaning of the low bits."""
    return str(instruction.argval)


def _reads(instructions: list[dis.Instruction]) -> Iterator[GlobalRead]:
    own = {"__annotations__"} if any(item.opname == "SETUP_ANNOTATIONS" for item in instructions) else set()
    for position, instruction in enumerate(instructions):
        if instruction.opname in _GLOBAL_LOADS and _name(instruction) not in own:
            yield GlobalRead(_name(instruction), tuple(_attributes_from(instructions, position + 1)))


def _attributes_from(instructions: list[dis.Instruction], position: int) -> Iterator[str]:
    while position < len(instructions) and instructions[position].opname in _ATTRIBUTE_LOADS:
        yield _name(instructions[position])
        position += 1


def _imports(instructions: list[dis.Instruction]) -> Iterator[Import]:
    for position, instruction in enumerate(instructions):
        if instruction.opname == "IMPORT_NAME":
            level = instructions[position - 2].argval
            names = instructions[position - 1].argval or ()
            yield Import(_name(instruction), level, tuple(names))


_SKIPPED_STEPS = frozenset(("NOP", "CACHE", "EXTENDED_ARG", "RESUME", "PUSH_NULL", "PRECALL"))
_NAMED_LOADS = frozenset(
    ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_ATTR", "LOAD_METHOD", "LOAD_DEREF", "LOAD_SUPER_ATTR")
)
# functions whose result is the same for equal sets
_ORDERLESS = frozenset(
    ("all", "any", "bool", "frozenset", "isinstance", "len", "max", "min", "set", "sorted")
)


class Uses(NamedTuple):
    """The uses of values by code, besides testing membership.

    `names` are the globals, free variables and attributes, and `constants` the sets, that code uses in other
    ways. `compared` are what it compares identities with, other than None, True, False and Ellipsis: a
    global or a free variable, with the attributes taken from it, or None for anything else.
    """

    names: frozenset[str]
    constants: tuple[object, ...]
    compared: tuple[GlobalRead | None, ...]


def uses_of_values(code: CodeType) -> Uses:
    """Return the uses of values by `code` and code nested in it."""
    names: set[str] = set()
    constants: list[object] = []
    compared: list[GlobalRead | None] = []
    waiting = [code]
    while waiting:
        inner = waiting.pop()
        waiting.extend(constant for constant in inner.co_consts if isinstance(constant, CodeType))
        steps = [step for step in dis.get_instructions(inner) if step.opname not in _SKIPPED_STEPS]
        for number, step in enumerate(steps):
            if step.opname in _NAMED_LOADS and not _is_orderless(steps, number):
                names.add(str(step.argval))
            elif isinstance(step.argval, frozenset) and not _is_orderless(steps, number):
                constants.append(step.argval)
            if step.opname == "IS_OP" and not _is_singleton(steps[number - 1]):
                compared.append(_compared(steps, number - 1, code.co_freevars))
    return Uses(frozenset(names), tuple(constants), tuple(compared))


def _is_orderless(steps: Sequence[dis.Instruction], number: int) -> bool:
    """Return True if a loaded value is at once tested for membership, or passed to a function that ignores
    order."""
    following = [step.opname for step in steps[number + 1 : number + 2]]
    if following in (["CONTAINS_OP"], ["IS_OP"]):
        return True
    before = steps[number - 1] if number else None
    is_called = following in (["CALL"], ["CALL_FUNCTION"]) and steps[number + 1].arg == 1
    return is_called and before is not None and before.opname == "LOAD_GLOBAL" and before.argval in _ORDERLESS


def _is_singleton(step: dis.Instruction) -> bool:
    """Return True if a step loads a constant that is one object in a process."""
    is_constant = step.opname in ("LOAD_CONST", "LOAD_COMMON_CONSTANT")
    return is_constant and (step.argval in (None, ...) or isinstance(step.argval, bool))


def _compared(steps: Sequence[dis.Instruction], number: int, free: Collection[str]) -> GlobalRead | None:
    """Return the global, or the one of the `free` variables of the whole function, that ends at a step."""
    last = number
    while number > 0 and steps[number].opname in _ATTRIBUTE_LOADS:
        number -= 1
    root = steps[number]
    is_free = root.opname == "LOAD_DEREF" and root.argval in free
    if not is_free and root.opname not in ("LOAD_GLOBAL", "LOAD_NAME"):
        return None
    return GlobalRead(_name(root), tuple(_name(step) for step in steps[number + 1 : last + 1]))
