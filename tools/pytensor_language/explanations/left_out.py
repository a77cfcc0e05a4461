"""Files of PyTensor's tests that are not run, with the reason."""

from __future__ import annotations

from fnmatch import fnmatchcase

LINKERS = "it tests PyTensor's linkers, C code and profiles"
FILES = "it tests PyTensor's lock of its own compile directory"

LEFT_OUT = {
    "tests/compile/debug/*": LINKERS,
    "tests/compile/test_compilelock.py": FILES,
    "tests/tensor/test_blas.py": LINKERS,
    "tests/tensor/test_blas_c.py": LINKERS,
    "tests/tensor/test_gc.py": LINKERS,
    "tests/tensor/rewriting/test_blas*": LINKERS,
}


def left_out(file: str) -> str:
    """Return why a file of tests is not run; empty if it is."""
    return next((reason for pattern, reason in LEFT_OUT.items() if fnmatchcase(file, pattern)), "")
