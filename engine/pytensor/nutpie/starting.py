"""Initial points and shapes, which PyMC and nutpie compute once before a sampler starts, on the engine.

Both ask for PyTensor's mode FAST_COMPILE, because compiling would take longer than what is computed. A
function from the store takes less than that mode does: nothing is rewritten, and PyTensor's Python linker,
which imports setuptools, is not needed (docs/decisions/0203).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from pytensor.compile.mode import FAST_COMPILE, get_default_mode, predefined_modes

from cachegraph.cache import default_cache
from engine.pytensor.linker import EngineLinker
from engine.pytensor.registration import NAME


def compiling_on_engine(own: Callable[..., Any]) -> Callable[..., Any]:
    """Return PyMC's `compile` that takes the mode ENGINE for FAST_COMPILE, where that is worthwhile."""

    @wraps(own)
    def compile(*arguments: Any, mode: Any = None, **options: Any) -> Any:
        is_replaced = mode is FAST_COMPILE and _is_worthwhile()
        return own(*arguments, mode=NAME if is_replaced else mode, **options)

    return compile


def computing_on_engine(own: Callable[..., Any]) -> Callable[..., Any]:
    """Return `own`, which has functions compiled in the mode "FAST_COMPILE", to do it in the mode ENGINE."""

    @wraps(own)
    def compute(*arguments: Any, **options: Any) -> Any:
        if not _is_worthwhile():
            return own(*arguments, **options)
        with _engine_for_fast_compile():
            return own(*arguments, **options)

    return compute


def _is_worthwhile() -> bool:
    """Return True while the engine is the default, and what it compiles is kept for the next process.

    Where nothing may be compiled, a function that no key describes would be an error.
    """
    cache = default_cache()
    is_kept = cache.absent is None and cache.settings.on_miss != "error"
    return is_kept and isinstance(get_default_mode().linker, EngineLinker)


@contextmanager
def _engine_for_fast_compile() -> Iterator[None]:
    """Have PyTensor find the mode ENGINE under the name FAST_COMPILE for a while."""
    found = predefined_modes["FAST_COMPILE"]
    predefined_modes["FAST_COMPILE"] = predefined_modes[NAME]
    try:
        yield
    finally:
        predefined_modes["FAST_COMPILE"] = found
