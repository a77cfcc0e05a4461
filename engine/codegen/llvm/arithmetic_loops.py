"""Loops of plain arithmetic, whose vectors have the width of a register.

LLVM takes half a register on AVX-512, which is half as fast where a processor is not waiting for memory
(decision 0207). It may be told otherwise only of loops that any width suits: told a width, it gathers
elements that lie apart, divides integers one by one, adds up floats in another order, and complains of what
it cannot do.
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.codegen.llvm.ir_text import WIDTH_OF_32_BITS, WIDTH_OF_64_BITS
from engine.lowering.loops import Compute, Loop, Number, Place, ReadElement, WriteElement, moving_terms
from engine.lowering.operations import FLOATS

_EXTREMES = ("maximum_of_numbers", "minimum_of_numbers")
_OF_FLOATS = frozenset(
    {
        *("add", "sub", "mul", "true_div", "reciprocal", "sqrt", "sqr", "neg", "abs", "identity", "cast"),
        *("where", "maximum", "minimum", *_EXTREMES),
    }
)
_OF_BOOLS = frozenset({"lt", "le", "gt", "ge", "eq", "neq", "isnan", "and_", "or_"})
_OF_NOTES = frozenset({"cast", "or_"})


def width_of_arithmetic(loop: Loop, dtypes: Mapping[str, str]) -> str:
    """Return the node that says how wide the vectors of `loop` are, or "" for one of anything but arithmetic.

    `dtypes` are those of the pointers.
    """
    writes = any(isinstance(node, WriteElement) for node in loop.body)
    if loop.until or loop.step != 1 or (writes and not loop.independent):
        return ""
    moved = {dtypes[node.place.pointer] for node in loop.body if isinstance(node, ReadElement | WriteElement)}
    if moved.isdisjoint(FLOATS) or not moved <= {*FLOATS, "bool"}:
        return ""
    if not (_may_be_reordered(loop) and _is_arithmetic(loop)):
        return ""
    computed = {node.dtype for node in loop.body if isinstance(node, Compute)}
    return WIDTH_OF_64_BITS if "float64" in computed | moved else WIDTH_OF_32_BITS


def _may_be_reordered(loop: Loop) -> bool:
    """Return True if the passes may be done in another order: sums of floats would differ unless they say
    otherwise."""
    computed = {node.target: node for node in loop.body if isinstance(node, Compute)}
    last = [computed.get(carried.following) for carried in loop.carried if not carried.unordered]
    return all(node is not None and (node.op in _EXTREMES or node.dtype not in FLOATS) for node in last)


def _is_arithmetic(loop: Loop) -> bool:
    """Return True if each pass of `loop` reads and writes adjacent elements, or the same in all passes, and
    computes with floats in between, or notes what it found."""
    adjacent, changing = {loop.index}, {loop.index, *(carried.name for carried in loop.carried)}
    for node in loop.body:
        match node:
            case Compute(target, str(op), arguments, "int64") if _moves(op, arguments, adjacent, changing):
                adjacent.add(target)
            case Compute(_, op, _, dtype) if op in _allowed(dtype):
                pass
            case ReadElement(_, place) | WriteElement(place, _) if _is_adjacent(place, adjacent, changing):
                pass
            case Number():
                pass
            case _:
                return False
        if not isinstance(node, WriteElement | Number):
            changing.add(node.target)
    return True


def _allowed(dtype: str) -> frozenset[str]:
    """Return the operations with a result of `dtype` that any width suits."""
    if dtype in FLOATS:
        return _OF_FLOATS
    return {"bool": _OF_BOOLS, "int64": _OF_NOTES, "int32": _OF_NOTES}.get(dtype, frozenset())


def _moves(op: str, arguments: tuple[str, ...], adjacent: set[str], changing: set[str]) -> bool:
    """Return True if a sum or difference is one more in each pass."""
    if op not in ("add", "sub"):
        return False
    first, second = arguments
    if second in changing:
        return op == "add" and second in adjacent and first not in changing
    return first in adjacent


def _is_adjacent(place: Place, adjacent: set[str], changing: set[str]) -> bool:
    moving = moving_terms(place, changing)
    return not moving or (len(moving) == 1 and len(moving[0]) == 1 and moving[0][0] in adjacent)
