"""Fixtures that compile a kernel once per session: a shared cache, and kernels called with numpy arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from cachegraph.fingerprint.primitives import digest
from engine.lowering.loops import Kernel
from engine.runtime.container import pack_kernel
from engine.runtime.load import process_loader
from engine.runtime.target import process_level, process_triple

Run = Callable[..., int]


def address_of(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def words_for(
    kernel: Kernel,
    inputs: Sequence[np.ndarray],
    outputs: Sequence[np.ndarray],
    shape: Sequence[int],
    **others: int,
) -> list[int]:
    """What `kernel.arguments` asks for, from operands already broadcast to the nest's `shape`."""

    def word(argument: tuple) -> int:
        match argument:
            case ("input", int(i)):
                return address_of(inputs[i])
            case ("output", int(k)):
                return address_of(outputs[k])
            case ("extent", tuple(dims)):
                return int(np.prod([shape[d] for d in dims], dtype=np.int64))
            case ("stride", int(i), int(d)):
                return inputs[i].strides[d] // inputs[i].itemsize
            case (name,):
                return others[name]
        raise AssertionError(argument)

    return [word(argument) for argument in kernel.arguments]


@pytest.fixture(scope="session")
def session_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of a cache that all tests of this session may use."""
    return tmp_path_factory.mktemp("session") / "cache"


@pytest.fixture
def kernels_once(cache_directory: Path, session_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the session's cache instead of the test's own."""
    monkeypatch.setenv("CACHEGRAPH_DIR", str(session_cache))


@pytest.fixture(scope="session")
def stored() -> Callable[[Kernel], tuple[str, bytes]]:
    """Compile a kernel; the same kernel only once."""
    done: dict[str, bytes] = {}

    def compile_once(kernel: Kernel) -> tuple[str, bytes]:
        from engine.codegen.compile import compile_kernel

        symbol = f"k_{digest(kernel.encoding()).hex()}"
        if symbol not in done:
            code = compile_kernel(kernel, symbol, process_level())
            done[symbol] = pack_kernel(symbol, process_triple(), process_level(), code)
        return symbol, done[symbol]

    return compile_once


@pytest.fixture(scope="session")
def run(stored) -> Run:
    """Call a kernel on arrays and return its status."""

    def call(
        kernel: Kernel,
        inputs: Sequence[np.ndarray],
        outputs: Sequence[np.ndarray],
        shape: Sequence[int],
        **others: int,
    ) -> int:
        symbol, content = stored(kernel)
        linked = process_loader().load(content, symbol)
        function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(linked.address)
        words = np.array(words_for(kernel, inputs, outputs, shape, **others), dtype=np.int64)
        return function(address_of(words))

    return call
