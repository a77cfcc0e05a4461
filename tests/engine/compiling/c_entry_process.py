"""Make a C entry, call it, and print as JSON what it gives and whether LLVM was asked to compile."""

from __future__ import annotations

import ctypes
import json
import sys

import numpy as np

import engine
import engine.tensor as pt
from engine.compiling.c_entry import DENSITY, EntryInterface, c_entry


def main() -> None:
    x = pt.vector("x", shape=(3,))
    value = -(x**2).sum()
    function = engine.function([x], [value, engine.grad(value, x)])
    entry = c_entry(function, EntryInterface(DENSITY, 3, 0, [None], [0, 1], None))
    call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_uint64, *[ctypes.c_void_p] * 4)(entry.address)
    point, gradient, found = np.array([1.0, 2.0, 3.0]), np.zeros(3), np.zeros(())
    user = np.array([entry.context, 0])
    status = call(3, *(array.ctypes.data for array in (point, gradient, found, user)))
    compiles = "engine.codegen.llvm.modules" in sys.modules
    print(json.dumps({"status": status, "found": [float(found), *gradient], "compiles": compiles}))


if __name__ == "__main__":
    main()
