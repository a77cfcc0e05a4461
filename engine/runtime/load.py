"""The linker of stored kernels: it loads object code into this process, without numba.

It first checks the container's digests, the triple, the CPU level, and the object itself: its symbols
must be the expected ones, and its form one that LLVM writes (cachegraph/object_code/elf.py). Linked code runs
with the rights of the process: for trust in whoever wrote it see docs/hpc.md.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import cache
from weakref import WeakValueDictionary

from cachegraph.errors import ObjectLinkError
from cachegraph.forking import PausableLock, Rank, pause_at_forks
from cachegraph.object_code.elf import ObjectFile
from cachegraph.object_code.linked import LinkedObjects
from cachegraph.object_code.linking import link
from engine.runtime.container import StoredKernel, unpack_kernel
from engine.runtime.errors import ForeignTarget, LoadError
from engine.runtime.externals import is_allowed, resolve
from engine.runtime.target import process_triple, runnable_levels


class LinkedKernel:
    """A kernel linked into this process: its `address`, and the stored form that was linked.

    The code exists as long as a kernel that was linked together with it does: whoever keeps the address
    keeps this object.
    """

    __slots__ = ("__weakref__", "_linked", "address", "content")

    def __init__(self, address: int, content: bytes, linked: LinkedObjects) -> None:
        self.address = address
        self.content = content
        self._linked = linked


class Loader:
    """A linker of kernels for this process, which links each kernel once. Threads may share a loader.

    A forked child continues with a copy of its parent's. No fork happens while a thread is linking.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._kernels: WeakValueDictionary[str, LinkedKernel] = WeakValueDictionary()
        self._pausable = PausableLock(self._lock)
        pause_at_forks(self._pausable, Rank.LINKER)

    def load(self, content: bytes, symbol: str) -> LinkedKernel:
        """Return the kernel `symbol` stored as `content` (pack_kernel), linked.

        Raises KernelFormatError for damage, ForeignTarget for another machine's kernel,
        ObjectFormatError for content that is no object, and LoadError if the object needs a forbidden
        symbol or does not link.
        """
        return self.load_many({symbol: content})[symbol]

    def load_many(self, contents: Mapping[str, bytes]) -> dict[str, LinkedKernel]:
        """Return each kernel of `contents` (symbol -> stored form), linking the new ones together.

        Raises as `load` does; then none of them is linked.
        """
        with self._lock:
            found = {symbol: kernel for symbol in contents if (kernel := self._kernels.get(symbol))}
            missing = {symbol: content for symbol, content in contents.items() if symbol not in found}
            if missing:
                found.update(self._link(missing))
                self._kernels.update(found)
            return found

    def forget(self, symbol: str) -> None:
        """Forget the kernel, so that the next load links it again. Code that is in use stays where it
        is."""
        with self._lock:
            self._kernels.pop(symbol, None)

    def linked(self, symbol: str) -> LinkedKernel:
        """Return a kernel that is still in use; raises KeyError for any other."""
        return self._kernels[symbol]

    def _link(self, contents: Mapping[str, bytes]) -> dict[str, LinkedKernel]:
        levels = runnable_levels()
        objects = [_checked_object(symbol, content, levels) for symbol, content in contents.items()]
        imports = {name: resolve(name) for names in map(_needed, contents, objects) for name in names}
        try:
            linked = link(objects, imports, list(contents))
        except ObjectLinkError as error:
            raise LoadError("linking", ", ".join(contents), str(error)) from error
        addresses = linked.addresses
        return {
            symbol: LinkedKernel(addresses[symbol], content, linked) for symbol, content in contents.items()
        }


@cache
def process_loader() -> Loader:
    """Return the loader of this process."""
    return Loader()


def _checked_object(symbol: str, content: bytes, levels: tuple[str, ...]) -> ObjectFile:
    stored = unpack_kernel(content)
    _check_target(stored, symbol, levels)
    return ObjectFile(stored.code)


def _check_target(stored: StoredKernel, symbol: str, levels: tuple[str, ...]) -> None:
    if stored.symbol != symbol:
        raise LoadError("loading", symbol, f"the stored kernel is {stored.symbol}")
    if stored.triple != process_triple():
        raise ForeignTarget(
            "loading", symbol, f"it is for {stored.triple}; this process is {process_triple()}"
        )
    if stored.level not in levels:
        raise ForeignTarget(
            "loading", symbol, f"it is for {stored.level}; this process runs {', '.join(levels)}"
        )


def _needed(symbol: str, found: ObjectFile) -> frozenset[str]:
    """Return the symbols that the object of `symbol` needs; raises LoadError if it must not have them."""
    symbols = found.symbols_seen()
    if symbols.defined != {symbol}:
        raise LoadError(
            "loading", symbol, f"its object defines {', '.join(sorted(symbols.defined)) or 'nothing'}"
        )
    refused = sorted(name for name in symbols.undefined if not is_allowed(name))
    if refused:
        raise LoadError(
            "loading", symbol, f"its object asks for {', '.join(refused)}, which no kernel may have"
        )
    return symbols.undefined
