"""LLVM's pass managers, freed when nothing has them any more.

llvmlite's inherit an empty `_dispose` before their own, so that each leaves its passes behind: 80 kB a kernel and level,
and as much again in numba's own pipeline.
"""

# mypy: disable-error-code="no-untyped-call,misc"
from __future__ import annotations

from typing import Any

from llvmlite.binding.ffi import ObjectRef
from llvmlite.binding.newpassmanagers import FunctionPassManager, ModulePassManager, NewPassManager


class _ModulePasses(ModulePassManager):
    _dispose = NewPassManager._dispose


class _FunctionPasses(FunctionPassManager):
    _dispose = NewPassManager._dispose


_FREED: dict[type, type] = {ModulePassManager: _ModulePasses, FunctionPassManager: _FunctionPasses}


def freed(passes: Any) -> Any:
    """Return `passes`, a pass manager, such that it is freed with its last reference."""
    if type(passes)._dispose is ObjectRef._dispose:
        passes.__class__ = _FREED[type(passes)]
    return passes
