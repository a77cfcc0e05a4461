"""What one call at a time has of its own, and what of that is kept for the next: registers and scratch
memory.

Scratch of up to SMALL bytes stays as long as the function does. Of what is larger no more stays than
MOST_SPARE times what the last call needed, and no more than IDLE_LIMIT bytes of all functions of a
process together, those used last (docs/decisions/0074).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple
from weakref import ref

import numpy as np

from engine.runtime.registers import ADDRESS_OF_DETAILS, DETAILS

SMALL = 256 * 2**10
MOST_SPARE = 4
IDLE_LIMIT = 128 * 2**20


class CallState:
    """The registers and the scratch memory of one call at a time. `is_settled` if there is nothing to
    do after it."""

    __slots__ = ("__weakref__", "address", "array", "held", "is_settled", "registers", "scratch")

    def __init__(self, template: np.ndarray[Any, Any], n_yields: int) -> None:
        self.array = template.copy()
        self.registers = memoryview(self.array.data)
        self.address: int = self.array.ctypes.data
        self.registers[ADDRESS_OF_DETAILS] = self.address + 8 * DETAILS
        self.scratch: list[np.ndarray[Any, Any] | None] = [None] * n_yields
        self.held: dict[int, tuple[np.ndarray[Any, Any], ...]] = {}
        """What each invocation returned last: the program reads it until it comes there again, or ends."""
        self.is_settled = True

    @property
    def nbytes(self) -> int:
        """How much scratch memory there is."""
        return sum(scratch.nbytes for scratch in self.scratch if scratch is not None)

    def grow(self, site: ScratchSite) -> None:
        """Make the scratch memory that the program stopped for at `site`, and have the registers say so.

        A signal's handler may raise between any two lines: what the registers say is there is there
        throughout.
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
        """Hold what invocation `number` returned, instead of what it returned before."""
        self.is_settled = False
        self.held[number] = arrays


class ScratchSite(NamedTuple):
    """A place where a program stops for scratch memory: its number, and the registers of what it needs
    and has."""

    number: int
    need: int
    base: int
    present: int


class Pool(list[CallState]):
    """The states of a function that no call uses. Threads may share it: a state that was popped is one
    thread's own."""

    def __init__(self, sites: Sequence[ScratchSite]) -> None:
        self._sites = sites

    def settle(self, state: CallState) -> None:
        """Free of `state`, after a call, what is not to be kept for the next; and of other states, if
        all keep too much."""
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
"""The states that keep more than SMALL bytes, and how many, those used last at the end. Some may be in use.
"""


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
    """Have those that were used longest ago freed until all keep no more than IDLE_LIMIT bytes."""
    while sum([nbytes for _, nbytes in list(_idle.values())]) > IDLE_LIMIT:
        key, (pool_key, _) = _idle.popitem(last=False)
        state, pool = key(), pool_key()
        if state is not None and pool is not None:
            # One that a call uses is in no pool; it is noted anew when that ends.
            with suppress(ValueError):
                pool.remove(state)
