"""A kernel call in parts, run by several threads: parts are ranges of passes of the kernel's outermost loop.

There are more parts than threads, to even out what else the processor does, and so that the caller handles
signals in between. Threads are started when they are first needed; a forked child starts its own.
"""

from __future__ import annotations

import ctypes
import os
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import lru_cache

import numpy as np

from engine.runtime.kernel_interface import OK
from engine.runtime.registers import ADDRESS_OF_DETAILS, DETAIL_COUNT
from engine.runtime.target import process_threads

PARTS_PER_THREAD = 4

_KERNEL = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)


class PartFailed(Exception):
    """A part of a call ended with `status`, and left `details`; no part before it failed."""

    def __init__(self, status: int, details: Sequence[int]) -> None:
        super().__init__(status, details)
        self.status = status
        self.details = details


def run_in_parts(kernel: int, operands: Sequence[int], registers: Sequence[int], keep: object) -> None:
    """Call the kernel at the address `kernel` in parts, with the arguments in the registers `operands`.

    The last two of them are the first pass and the one to stop before. Raises PartFailed for the first part
    that fails. `keep` holds the memory of the arguments: it lives until no thread uses it, even if a signal
    handler raises meanwhile.
    """
    threads = process_threads()
    blocks = _argument_blocks(operands, registers, threads * PARTS_PER_THREAD)
    statuses = np.zeros(len(blocks), dtype=np.int64)
    waiting = deque(range(len(blocks)))
    call = _KERNEL(kernel)

    def work(kept: object = keep) -> None:
        while waiting:
            try:
                part = waiting.popleft()
            except IndexError:  # another thread has taken the last one
                return
            statuses[part] = call(blocks[part].ctypes.data)

    others: list[Future[None]] = []
    try:
        with suppress(RuntimeError):  # the process may start no more threads: the caller does it all
            others.extend(_threads(os.getpid(), threads - 1).submit(work) for _ in range(threads - 1))
        work()
    finally:
        waiting.clear()  # after an exception no part begins any more
        wait(others)
    for part in np.flatnonzero(statuses != OK)[:1]:
        raise PartFailed(int(statuses[part]), blocks[part, -DETAIL_COUNT:].tolist())


def _argument_blocks(operands: Sequence[int], registers: Sequence[int], most: int) -> np.ndarray:
    """Return the arguments of each part, with details of its own behind them: at most `most` rows."""
    given = [registers[operand] for operand in operands]
    first, stop = given[-2:]
    bounds = np.linspace(first, stop, min(most, stop - first) + 1).astype(np.int64)
    blocks = np.zeros((len(bounds) - 1, len(given) + DETAIL_COUNT), dtype=np.int64)
    blocks[:, : len(given)] = given
    blocks[:, len(given) - 2] = bounds[:-1]
    blocks[:, len(given) - 1] = bounds[1:]
    for position in (n for n, operand in enumerate(operands) if operand == ADDRESS_OF_DETAILS):
        blocks[:, position] = [block[-DETAIL_COUNT:].ctypes.data for block in blocks]
    return blocks


@lru_cache(maxsize=1)
def _threads(process: int, count: int) -> ThreadPoolExecutor:
    """Return `count` threads of this process. Those of a parent do not live in a forked child."""
    return ThreadPoolExecutor(count, f"cachegraph-{process}")
