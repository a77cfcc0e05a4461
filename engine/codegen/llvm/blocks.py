"""Loops that write a block of memory: they become a call of memcpy or memset.

LLVM makes vectors of such a loop, and more code for what is left over, which takes it 2 to 4 ms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cachegraph.named_tuples import NamedTuple
from engine.lowering.loops import Loop, Node, Place, ReadElement, WriteElement, moving_terms
from engine.runtime.kernel_interface import ITEM_SIZES


class BlockWrite(NamedTuple):
    """Elements of `size` bytes, in the first pass the one at `target`, then the next one in each: they become
    those from the place `content` on, or each of their bytes becomes the number `content`."""

    target: Place
    content: Place | int
    size: int


def block_write(loop: Loop, dtypes: Mapping[str, str], constants: Mapping[str, bytes]) -> BlockWrite | None:
    """Return what `loop` writes if that is a block, and if it does nothing else; else None.

    `dtypes` are those of the pointers, `constants` the bytes of values that are known.
    """
    if not loop.independent or loop.step != 1 or loop.carried or loop.until or not loop.body:
        return None
    *reads, write = loop.body
    if not isinstance(write, WriteElement) or not _is_adjacent(write.place, loop.index):
        return None
    content = _copied(reads, write, dtypes, loop.index) if reads else _repeated(write.value, constants)
    return None if content is None else BlockWrite(write.place, content, ITEM_SIZES[_dtype(write, dtypes)])


def _copied(
    reads: Sequence[Node], write: WriteElement, dtypes: Mapping[str, str], index: str
) -> Place | None:
    match reads:
        case [ReadElement(value, place)] if value == write.value and _is_adjacent(place, index):
            dtype = _dtype(write, dtypes)
            # A bool in memory may have other bits than 0 or 1, which a loop does not copy.
            return place if dtypes[place.pointer] == dtype and dtype != "bool" else None
    return None


def _repeated(value: str, constants: Mapping[str, bytes]) -> int | None:
    different = set(constants.get(value, b""))
    return different.pop() if len(different) == 1 else None


def _is_adjacent(place: Place, index: str) -> bool:
    """Return True if `place` moves by one element from pass to pass."""
    return moving_terms(place, {index}) == [(index,)]


def _dtype(write: WriteElement, dtypes: Mapping[str, str]) -> str:
    return dtypes[write.place.pointer]
