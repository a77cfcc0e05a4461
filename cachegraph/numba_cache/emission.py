"""numba's libraries of compiled code, optimized without machine code: what is stored is emitted once.

numba optimizes a library and at once has its own engine emit and load it. Code that is emitted for the
store and linked from there would be emitted twice.
"""

from __future__ import annotations

from typing import Any

from numba.core.compiler_lock import global_compiler_lock


def optimize(library: Any) -> None:
    """Finish a library that numba has compiled, but for its machine code; `emit` makes that.

    Until then, numba has no address for its functions.
    """

    def checked() -> None:
        library._finalize_dynamic_globals()
        library._verify_declare_only_symbols()
        library._finalized = True

    with global_compiler_lock:
        library._finalize_final_module = checked
        try:
            library.finalize()
        finally:
            del library._finalize_final_module


def emit(library: Any) -> None:
    """Have numba emit and load a library that `optimize` has finished."""
    with global_compiler_lock:
        library._dynamic_globals.clear()  # they are found again
        library._finalize_final_module()
