"""A process that compiles its functions here, and then all their kernels once more, for 64-bit Arm.

    python arm_process.py DIRECTORY

The entries of Arm's kernels are stored in the cache in DIRECTORY. Prints JSON: [name, processor, largest
alignment, undefined symbols, relocation kinds] of each object, and how many changed objects were refused.
"""

from __future__ import annotations

import json
import os
import platform
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import engine
import engine.tensor as pt
from cachegraph import Artifact, Cache
from cachegraph.errors import ObjectFormatError
from cachegraph.object_code import cpu
from cachegraph.object_code.elf import read_symbols
from engine.codegen import compile as compiler
from engine.codegen import machine
from engine.codegen.c_entry.compile import compile_c_entry
from engine.codegen.common_code import COMMON_CODE
from engine.codegen.fast_call import source
from engine.codegen.llvm import modules
from engine.codegen.llvm.elementary import library
from engine.compiling import programs, surroundings
from engine.compiling.load import symbol_of
from engine.compiling.surroundings import kernel_key
from engine.lowering.loops import Kernel
from engine.runtime.container import pack_kernel

TRIPLE = "aarch64-unknown-linux-gnu"
LEVEL = "generic"
_SECTION = struct.Struct("<IIQQQQIIQQ")
_RELA = 4
CHANGES = 1500


def functions() -> Iterator[Any]:
    """Compile functions with kernels of every family."""
    x, y, A, n = pt.dvector("x"), pt.fvector("y"), pt.dmatrix("A"), pt.lvector("n")
    smooth = [pt.exp(x), pt.log(x), pt.sin(x), pt.tanh(x), pt.erf(x), x**2.5, pt.gammaln(x), pt.softmax(x)]
    yield engine.function([x], [*smooth, engine.grad(sum(each.sum() for each in smooth), x)])
    yield engine.function([y], [pt.exp(y), pt.log1p(y), pt.sqrt(y), y.sum(), y.max(), pt.cumsum(y)])
    yield engine.function(
        [A, x], [A @ x, A @ A, A.sum(axis=0), A.T[1:], pt.argmax(A, axis=1), A.mean(axis=1)]
    )
    yield engine.function([n], [n // 3, n % 7, n**2, n.sum(), pt.sort(n), n[::-1], n[n > 2]])
    yield engine.function([A], [pt.linalg.cholesky(A), pt.linalg.inv(A), pt.linalg.solve(A, A)])
    states = engine.scan(
        lambda s, a: pt.sqrt(s * a + 1.0),
        sequences=[x],
        outputs_info=[pt.constant(0.0)],
        return_updates=False,
    )
    yield engine.function([x], [states, engine.grad(states.sum(), x)])
    yield engine.function([x, n], [x[n], x[n].set(0.0), x[:2].inc(1.0), pt.switch(x > 0, x, -x)])


def become_arm() -> None:
    """Let everything after this emit code for 64-bit Arm."""
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    modules.LLVM.LLVMPY_InitializeNativeTarget()
    platform.machine = lambda: "aarch64"
    for module in (modules, programs, surroundings):
        module.process_triple = lambda: TRIPLE
    for cached in (
        *(
            modules._target,
            modules._target_machine,
            modules._data_layout,
            machine.machine_source,
            source.fast_call_source,
        ),
        *(surroundings._kernel_target, cpu.machine_levels),
        *(each for each in vars(library).values() if hasattr(each, "cache_clear")),
    ):
        cached.cache_clear()


def described(name: str, code: bytes) -> list[Any]:
    """Return what is seen of an object, read as a process on Arm reads it."""
    symbols = read_symbols(code)
    (processor,) = struct.unpack_from("<H", code, 18)
    (table,) = struct.unpack_from("<Q", code, 40)
    (count,) = struct.unpack_from("<H", code, 60)
    sections = [_SECTION.unpack_from(code, table + number * _SECTION.size) for number in range(count)]
    kinds = set()
    for _, kind, _, _, offset, size, *_ in sections:
        if kind == _RELA:
            kinds |= {struct.unpack_from("<I", code, at + 8)[0] for at in range(offset, offset + size, 24)}
    return [name, processor, max(each[8] for each in sections), sorted(symbols.undefined), sorted(kinds)]


def refused(code: bytes, random: Random) -> int:
    """Return how many of CHANGES objects with a changed byte are refused, by that error alone."""
    count = 0
    for _ in range(CHANGES):
        changed = bytearray(code)
        changed[random.randrange(len(code))] ^= 1 << random.randrange(8)
        try:
            read_symbols(bytes(changed))
        except ObjectFormatError:
            count += 1
    return count


def main(directory: str) -> tuple[list[list[Any]], int]:
    """Compile, compile for Arm, store, and return the descriptions."""
    os.environ["CACHEGRAPH_MODE"] = "off"
    kernels: list[Kernel] = []
    compile_here = compiler.compile_kernel

    def noted(kernel: Kernel, symbol: str, level: str) -> bytes:
        kernels.append(kernel)
        return compile_here(kernel, symbol, level)

    programs.compile_kernel = noted
    made = list(functions())
    made[0](np.ones(3))
    become_arm()
    cache, found = Cache(Path(directory)), []
    for kernel in dict.fromkeys(kernels):
        key = kernel_key(kernel.encoding(), LEVEL)
        code = compile_here(kernel, symbol_of(key), LEVEL)
        cache.store(key, Artifact(pack_kernel(symbol_of(key), TRIPLE, LEVEL, code)))
        found.append(described(kernel.summary, code))
    cache.flush()
    found += [described(f"the {code.name}", code.compile("k_common", LEVEL)) for code in COMMON_CODE]
    entry = compile_c_entry("k_entry", LEVEL)
    found.append(described("the C entry", entry))
    return found, refused(entry, Random(7))


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])))
