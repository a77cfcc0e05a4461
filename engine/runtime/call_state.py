"""The memory of a call: registers and scratch memory, kept for later calls.

Scratch memory of up to SMALL bytes stays with the function. Larger memory is freed after a call if it
exceeds MOST_SPARE times what the call needed; all functions of a process together keep at most
IDLE_LIMIT bytes of it, the last used first (docs/decisions/0074).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from weakref import ref

import numpy as np

from cachegraph.named_tuples import NamedTuple
from engine.runtime.registers import ADDRESS_OF_DETAILS, DETAILS

SMALL = 256 * 2**10
MOST_SPARE = 4
IDLE_LIMIT = 128 * 2**20

_IS_UNSETTLED = 0


class Frame(NamedTuple):
    """The words of a state that fast calls use (fast_call.py): they lie before the registers.

    frame := is_unsettled number{inputs} item{inputs} made{most_made} result{n_results}

    `numbers` has for each input the dtype of an array of rank 0 that numbers are written into, or None. All
    words but the first are addresses of objects.
    """

    numbers: tuple[str | None, ...]
    most_made: int
    n_results: int

    @property
    def items(self) -> int:
        """The number of the first word of the items."""
        return 1 + len(self.numbers)

    @property
    def made(self) -> int:
        """The number of the first word of the arrays that are made at a stop."""
        return self.items + len(self.numbers)

    @property
    def results(self) -> int:
        """The number of the first word of the results."""
        return self.made + self.most_made

    @property
    def registers(self) -> int:
        """The number of the word that is register 0."""
        return self.results + self.n_results


class CallState:
    """The registers and the scratch memory of one call at a time.

    It `is_shared` while several threads work on the call.
    """

    __slots__ = (
        "__weakref__",
        "address",
        "array",
        "held",
        "is_shared",
        "numbers",
        "registers",
        "scratch",
        "words",
    )

    def __init__(self, frame: Frame, template: np.ndarray[Any, Any], n_yields: int) -> None:
        self.array = np.zeros(frame.registers + len(template), dtype=np.int64)
        self.array[frame.registers :] = template
        self.words = memoryview(self.array.data)
        self.registers = self.words[frame.registers :]
        self.is_shared = False
        self.address: int = self.array.ctypes.data + 8 * frame.registers
        self.registers[ADDRESS_OF_DETAILS] = self.address + 8 * DETAILS
        self.numbers = [None if dtype is None else np.empty((), dtype) for dtype in frame.numbers]
        for place, number in enumerate(self.numbers, 1):
            self.array[place] = 0 if number is None else id(number)
        self.scratch: list[np.ndarray[Any, Any] | None] = [None] * n_yields
        self.held: dict[int, tuple[np.ndarray[Any, Any], ...]] = {}
        """The arrays that each invocation returned last: the program reads them until it comes there
        again, or ends."""

    @property
    def is_settled(self) -> bool:
        """True if nothing is left to do after the call."""
        return not self.words[_IS_UNSETTLED]

    @is_settled.setter
    def is_settled(self, value: bool) -> None:
        self.words[_IS_UNSETTLED] = not value

    @property
    def nbytes(self) -> int:
        """The bytes of scratch memory."""
        return sum(scratch.nbytes for scratch in self.scratch if scratch is not None)

    def grow(self, site: ScratchSite) -> None:
        """Allocate the scratch memory that the program stopped for at `site`, and set its registers.

        A signal handler may raise between any two lines: the registers never claim memory that is not
        there.
        """
        self.is_settled = False
        self.let_go(site)
        need = self.registers[site.need]
        scratch = np.empty(need, dtype=np.uint8)
        address = scratch.ctypes.data
        self.scratch[site.number] = scratch
        self.registers[site.base] = address
        self.registers[site.present] = need

    def let_go(self, site: ScratchSite) -> None:
        """Free the scratch memory of `site`."""
        self.registers[site.present] = 0
        self.scratch[site.number] = None

    def hold(self, number: int, arrays: tuple[np.ndarray[Any, Any], ...]) -> None:
        """Keep the arrays that invocation `number` returned, in place of its last ones."""
        self.is_settled = False
        self.held[number] = arrays


class ScratchSite(NamedTuple):
    """A site where a program stops for scratch memory: its number, and the registers of the size
    needed, the address and the size present."""

    number: int
    need: int
    base: int
    present: int


class Pool(list[CallState]):
    """The idle states of a function. Threads may share a pool: a state that was popped belongs to one
    thread."""

    def __init__(self, sites: Sequence[ScratchSite]) -> None:
        self._sites = sites

    def settle(self, state: CallState) -> None:
        """After a call, free the memory of `state` that is not kept for the next, and that of other
        states above the limit."""
        state.held.clear()
        for site in self._sites:
            present = state.registers[site.present]
            if present > SMALL and present > MOST_SPARE * state.registers[site.need]:
                state.let_go(site)
        if state.nbytes > IDLE_LIMIT:
            for site in self._sites:
                state.let_go(site)
        state.is_settled = state.nbytes <= SMALL
        _note_idle(self, state)


_idle: OrderedDict[ref[CallState], tuple[ref[Pool], int]] = OrderedDict()
"""The states that keep more than SMALL bytes, with their sizes, the last used at the end. Some may be
in use."""


def _note_idle(pool: Pool, state: CallState) -> None:
    before = _idle.pop(ref(state), None)
    if state.is_settled:
        return
    _idle[ref(state, _forget)] = (ref(pool), state.nbytes)
    if before is None or before[1] != state.nbytes:
        _free_oldest()


def _forget(state: ref[CallState]) -> None:
    _idle.pop(state, None)


def _free_oldest() -> None:
    """Free the states used longest ago until all together keep at most IDLE_LIMIT bytes."""
    while sum([nbytes for _, nbytes in list(_idle.values())]) > IDLE_LIMIT:
        key, (pool_key, _) = _idle.popitem(last=False)
        state, pool = key(), pool_key()
        if state is not None and pool is not None:
            # A state in use is in no pool; it is noted again when its call ends.
            with suppress(ValueError):
                pool.remove(state)
