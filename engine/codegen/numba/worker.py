"""A process that compiles kernels for parallel.py: `python -m engine.codegen.numba.worker`.

It reads a pickled list of (kernel, symbol) from standard input and writes RESULT and a pickled list to
standard output: level -> object code for each kernel, or None if it did not compile. Both pickles pass
between two processes of one user that run the same code.
"""

from __future__ import annotations

import os
import pickle
import sys
from typing import BinaryIO

from engine.codegen.numba.compile import compile_kernel
from engine.codegen.numba.parallel import RESULT
from engine.lowering.loops import Kernel
from engine.runtime.errors import BackendError


def compile_for_parent(source: BinaryIO, target: BinaryIO) -> None:
    """Compile what `source` lists and write the objects to `target`."""
    objects = [_compiled(kernel, symbol) for kernel, symbol in pickle.load(source)]
    target.write(RESULT + pickle.dumps(objects))


def _compiled(kernel: Kernel, symbol: str) -> dict[str, bytes] | None:
    try:
        return compile_kernel(kernel, symbol)
    except BackendError:
        return None  # the parent compiles it again and gets the error itself


def _main() -> None:
    """Keep standard output for the result: everything printed from here on goes to standard error."""
    with os.fdopen(os.dup(1), "wb") as target:
        os.dup2(2, 1)
        compile_for_parent(sys.stdin.buffer, target)


if __name__ == "__main__":
    _main()
