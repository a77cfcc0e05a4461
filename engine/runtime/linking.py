"""The kernels of a program: found in the cache or compiled, then linked into this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Protocol

from cachegraph.key import CacheKey
from cachegraph.store.entry import Artifact, Hit, Miss
from engine.runtime.load import LinkedKernel, Loader

if TYPE_CHECKING:
    from cachegraph.cache import Cache, Correction, Found
    from engine.lowering.loops import Kernel


class Entries(Protocol):
    """What a stored program is linked from: a cache, or what came with a pickle."""

    def lookup(self, key: CacheKey) -> Hit | Miss:
        """The entry of `key`, checked, or the reason there is none; never raises."""

    def read_blob(self, digest_hex: str) -> bytes | None:
        """What a blob of an entry holds, checked; None when it cannot be had. Never raises."""


@dataclass
class KernelTally:
    """What became of the kernels of one function and of the functions that its callbacks call: how many were found and
    not found, what compiling cost, and what those that were found saved."""

    hits: int = 0
    misses: int = 0
    functions: list[int] = field(default_factory=lambda: [0, 0])
    """[hits, misses] of the functions that callbacks call."""
    linked: list[LinkedKernel] = field(default_factory=list)
    """Those that were built: held until the functions that call them are there to do so."""
    compiled: int = 0
    seconds: float = 0.0
    seconds_saved: float = 0.0

    @property
    def found_functions(self) -> dict[str, list[int]]:
        """[hits, misses] at the level "function", if there were any."""
        return {"function": self.functions} if any(self.functions) else {}

    def count_function(self, is_hit: bool, seconds_saved: float) -> None:
        """Count one function that was asked for."""
        self.functions[not is_hit] += 1
        self.seconds_saved += seconds_saved if is_hit else 0.0

    def count(self, is_hit: bool, seconds_saved: float) -> None:
        """Count one kernel that was asked for."""
        self.hits += is_hit
        self.misses += not is_hit
        self.seconds_saved += seconds_saved if is_hit else 0.0


def symbol_of(key: CacheKey) -> str:
    """The symbol of the kernel stored under `key`: what confirms the key, for a process links a symbol once."""
    return f"k_{key.confirmation.hex()}"


def link(cache: Entries, loader: Loader, keys: Sequence[CacheKey], tally: KernelTally) -> list[LinkedKernel]:
    """The kernels stored under `keys`.

    Raises LookupError if the cache has not all of them, and what the loader raises on one that it refuses.
    """
    found: dict[str, bytes] = {}
    for key in dict.fromkeys(keys):
        entry = cache.lookup(key)
        if not isinstance(entry, Hit):
            tally.count(False, 0.0)
            raise LookupError(
                f"the program calls kernel {key.hex}, which is not in the cache ({entry.reason})"
            )
        tally.count(True, sum(entry.seconds.values()))
        found[symbol_of(key)] = entry.payload
    linked = loader.load_many(found)
    return [linked[symbol_of(key)] for key in keys]


def build(
    cache: Cache, loader: Loader, kernels: Mapping[CacheKey, Kernel | None], tally: KernelTally
) -> None:
    """Link the kernels of a program that is being made, compiling and keeping those that the cache has not.

    The kernel None is the machine itself. In the mode verify, kernels that were found are compiled and compared: compiling
    gives the same bytes every time. Raises CacheMissError where compiling is not allowed.
    """

    def compile_missing(missing: Sequence[CacheKey]) -> list[Artifact]:
        begin = perf_counter()
        artifacts = _compiled({key: kernels[key] for key in missing})
        tally.compiled += len(missing)
        tally.seconds += perf_counter() - begin
        return [artifacts[key] for key in missing]

    def load(key: CacheKey, payload: bytes) -> LinkedKernel:
        return loader.load(payload, symbol_of(key))

    def verify(key: CacheKey, found: Found[LinkedKernel]) -> Correction[LinkedKernel] | None:
        from cachegraph.cache import Correction

        [artifact] = compile_missing([key])
        if artifact.payload == found.value.content:
            return None
        loader.forget(symbol_of(key))
        return Correction("its object code is another", artifact, load(key, artifact.payload))

    found = cache.get_or_build_many(kernels, compile_missing, load, verify)
    for entry in found.values():
        tally.linked.append(entry.value)
        tally.count(entry.outcome == "hit", sum(entry.seconds.values()) - entry.load_seconds)


def _compiled(missing: Mapping[CacheKey, Kernel | None]) -> dict[CacheKey, Artifact]:
    """What is missing, compiled. Kernels compile side by side: each is charged its share of the time that took."""
    from engine.codegen.numba.parallel import compile_kernels, cost_of
    from engine.runtime.container import pack_kernel
    from engine.runtime.target import process_triple

    kernels = {key: kernel for key, kernel in missing.items() if kernel is not None}
    artifacts = {key: _compiled_machine(key) for key in missing if key not in kernels}
    begin = perf_counter()
    objects = (
        compile_kernels([(kernel, symbol_of(key)) for key, kernel in kernels.items()]) if kernels else []
    )
    total = sum(map(cost_of, kernels.values())) or 1.0
    seconds_per_cost = (perf_counter() - begin) / total
    for (key, kernel), levels in zip(kernels.items(), objects, strict=True):
        content = pack_kernel(symbol_of(key), process_triple(), levels)
        seconds = {"compile": seconds_per_cost * cost_of(kernel)}
        artifacts[key] = Artifact(content, seconds=seconds, summary=kernel.summary)
    return artifacts


def _compiled_machine(key: CacheKey) -> Artifact:
    from engine.runtime.machine import compile_machine

    begin = perf_counter()
    content = compile_machine(symbol_of(key))
    return Artifact(
        content, seconds={"compile": perf_counter() - begin}, summary="the machine that runs programs"
    )
