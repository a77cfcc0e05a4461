"""What code does with values beyond computing with them: whether it may tell the order of a set, or which objects are one."""

from __future__ import annotations

from collections.abc import Sequence
from dis import Instruction, get_instructions
from types import CodeType
from typing import NamedTuple

_SKIPPED = frozenset(("NOP", "CACHE", "EXTENDED_ARG", "RESUME", "PUSH_NULL", "PRECALL"))
_NAMED = frozenset(("LOAD_GLOBAL", "LOAD_NAME", "LOAD_ATTR", "LOAD_METHOD", "LOAD_DEREF", "LOAD_SUPER_ATTR"))
_ATTRIBUTES = frozenset(("LOAD_ATTR", "LOAD_METHOD"))
# What gives the same for equal sets.
_ORDERLESS = frozenset(
    ("all", "any", "bool", "frozenset", "isinstance", "len", "max", "min", "set", "sorted")
)


class Uses(NamedTuple):
    """The globals, free variables and attributes, by name, that code does more with than test what is in them; the sets among its
    constants of which this is true; whether it compares identities of anything but singletons, constants and globals."""

    names: frozenset[str]
    constants: tuple[object, ...]
    compares_identities: bool


def uses_of_values(code: CodeType) -> Uses:
    """What `code`, and the code inside of it, does."""
    names: set[str] = set()
    constants: list[object] = []
    compares = False
    waiting = [code]
    while waiting:
        inner = waiting.pop()
        waiting.extend(constant for constant in inner.co_consts if isinstance(constant, CodeType))
        steps = [step for step in get_instructions(inner) if step.opname not in _SKIPPED]
        for number, step in enumerate(steps):
            if step.opname in _NAMED and not _is_orderless(steps, number):
                names.add(str(step.argval))
            elif isinstance(step.argval, frozenset) and not _is_orderless(steps, number):
                constants.append(step.argval)
            compares |= step.opname == "IS_OP" and not _is_fixed(steps, number - 1)
    return Uses(frozenset(names), tuple(constants), compares)


def _is_orderless(steps: Sequence[Instruction], number: int) -> bool:
    """Whether what a step loads is at once tested for what is in it, or the one argument of what sees no order."""
    following = [step.opname for step in steps[number + 1 : number + 2]]
    if following in (["CONTAINS_OP"], ["IS_OP"]):
        return True
    before = steps[number - 1] if number else None
    is_called = following in (["CALL"], ["CALL_FUNCTION"]) and steps[number + 1].arg == 1
    return is_called and before is not None and before.opname == "LOAD_GLOBAL" and before.argval in _ORDERLESS


def _is_fixed(steps: Sequence[Instruction], number: int) -> bool:
    """Whether what a step loads is a constant, or a global or what a global has."""
    while number > 0 and steps[number].opname in _ATTRIBUTES:
        number -= 1
    return steps[number].opname in ("LOAD_CONST", "LOAD_GLOBAL", "LOAD_NAME", "LOAD_COMMON_CONSTANT")
