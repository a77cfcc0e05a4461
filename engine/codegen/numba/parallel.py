"""Compilation of many kernels, in several processes if there are enough kernels to pay for their start.

A worker is a fresh interpreter that runs worker.py and none of the user's code: `__main__` need not be
importable or guarded. Because starting it takes time, kernels are shared out by estimated cost, and
workers start before this process imports numba. This process compiles its own share meanwhile, and then
all that workers did not return: a worker that cannot start, dies, or is late costs time, never a
result.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import BinaryIO

from engine.lowering.loops import Compute, Evaluate, If, Kernel, Loop, Node
from engine.scalar.embedded import Embedded

Objects = dict[str, bytes]
Request = tuple[Kernel, str]

START_COST = 12.0
"""The cost of starting a worker (Python, numba, its first kernel), in small kernels: 0.58 s against
0.048 s.
"""
LEAST_SHARE = 8.0
"""No worker is started for less than this cost."""
MAX_PROCESSES = 8
RESULT = b"\x8e\x01cachegraph-kernels\x02\xe8"
"""The mark before a worker's result; other code in the worker may print before it."""
_WAIT_SECONDS = 120.0


def compile_kernels(requests: Sequence[Request], processes: int | None = None) -> list[Objects]:
    """Return level -> object code for each (kernel, symbol), in order; raises as compile_kernel does.

    At most `processes` compile at once; by default one per CPU of this process, at most MAX_PROCESSES.
    """
    # User functions belong to this process: a worker may be unable to import them.
    shared = [n for n, (kernel, _) in enumerate(requests) if not has_functions(kernel.body)]
    costs = [cost_of(requests[n][0]) for n in shared]
    shares = share_out(costs, processes or _cpu_count())
    own, *others = [[shared[position] for position in share] for share in shares]
    own += sorted(set(range(len(requests))) - set(shared))
    found: dict[int, Objects] = {}
    with ExitStack() as stack:
        workers = [stack.enter_context(_Worker(requests, share)) for share in others]
        from engine.codegen.numba.compile import compile_kernel

        for position in own:
            found[position] = compile_kernel(*requests[position])
        for worker in workers:
            found.update(worker.results())
    return [found[n] if n in found else compile_kernel(*request) for n, request in enumerate(requests)]


def cost_of(kernel: Kernel) -> float:
    """Return the estimated cost of compiling `kernel`, in small kernels (of a few statements)."""
    return 0.8 + _count(kernel.body) / 50


def share_out(costs: Sequence[float], processes: int) -> list[list[int]]:
    """Return the positions of the kernels that each process compiles; this process comes first.

    There are as many processes as get LEAST_SHARE each. The most expensive kernel is given out first,
    to the process that will finish first. A worker begins at START_COST.
    """
    for count in range(max(1, processes), 1, -1):
        shares = _shared_among(costs, [0.0] + [START_COST] * (count - 1))
        if all(sum(costs[n] for n in share) >= LEAST_SHARE for share in shares[1:]):
            return shares
    return _shared_among(costs, [0.0])


def has_functions(nodes: Sequence[Node]) -> bool:
    """Return True if `nodes` call user functions."""
    for node in nodes:
        if isinstance(node, Loop):
            found = has_functions(node.body)
        elif isinstance(node, If):
            found = has_functions(node.then) or has_functions(node.otherwise)
        else:
            found = isinstance(node, Evaluate) or (
                isinstance(node, Compute) and isinstance(node.op, Embedded)
            )
        if found:
            return True
    return False


def _shared_among(costs: Sequence[float], done: list[float]) -> list[list[int]]:
    shares: list[list[int]] = [[] for _ in done]
    for position in sorted(range(len(costs)), key=lambda n: -costs[n]):
        first = done.index(min(done))
        shares[first].append(position)
        done[first] += costs[position]
    return shares


def _count(nodes: Sequence[Node]) -> int:
    """Return the number of statements; a loop counts as five."""
    total = 0
    for node in nodes:
        if isinstance(node, Loop):
            total += 5 + _count(node.body)
        elif isinstance(node, If):
            total += 1 + _count(node.then) + _count(node.otherwise)
        else:
            total += 1
    return total


def _cpu_count() -> int:
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(available, MAX_PROCESSES)


@dataclass
class _Worker:
    """A context manager: a worker process and its `share`, the positions in `requests` that it compiles."""

    requests: Sequence[Request]
    share: Sequence[int]
    process: subprocess.Popen[bytes] | None = None
    output: BinaryIO | None = None
    files: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> _Worker:
        try:
            self._start()
        except OSError:
            self.process = None
        return self

    def __exit__(self, *_: object) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.files.close()

    def results(self) -> Iterator[tuple[int, Objects]]:
        """Yield the objects that the worker compiled, by position; none if it failed."""
        objects = self._received() or []
        for position, found in zip(self.share, objects, strict=False):
            if found is not None:
                yield position, found

    def _start(self) -> None:
        if not _is_interpreter(sys.executable) or getattr(sys, "frozen", False):
            return
        source = self.files.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        self.output = self.files.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        source.write(pickle.dumps([self.requests[position] for position in self.share]))
        source.seek(0)
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "engine.codegen.numba.worker"],
            stdin=source,
            stdout=self.output,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(_import_path())},
        )

    def _received(self) -> list[Objects | None] | None:
        if self.process is None or self.output is None:
            return None
        try:
            if self.process.wait(_WAIT_SECONDS) != 0:
                return None
        except subprocess.TimeoutExpired:
            return None
        self.output.seek(0)
        _, marker, result = self.output.read().partition(RESULT)
        return pickle.loads(result) if marker else None


def _import_path() -> list[str]:
    """Return the paths this process imports from, so that a worker finds the same packages."""
    return [os.path.abspath(entry) for entry in sys.path if isinstance(entry, str)]


def _is_interpreter(executable: str | None) -> bool:
    """Return True if `executable` is Python: an application that embeds it must not be started again."""
    return bool(executable) and "python" in os.path.basename(str(executable)).lower()
