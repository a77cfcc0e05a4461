"""numba's typing and target contexts with only what kernels use: integers, ranges, pointers, intrinsics.

numba's own contexts also load the parts for arrays, lists, dicts, random numbers and installed
extensions, scipy.linalg among them: a sixth of a cold start. LLVM's pass managers are freed here with
their last reference. llvmlite's inherit an empty `_dispose` before their own, so each leaks its passes:
80 kB per kernel and level, and as much again in numba's pipeline.
"""

# mypy: disable-error-code="no-untyped-call,misc,attr-defined"
from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

from llvmlite.binding.ffi import ObjectRef
from llvmlite.binding.newpassmanagers import FunctionPassManager, ModulePassManager, NewPassManager
from numba.core import cpu, types
from numba.core.runtime import rtsys
from numba.core.typing.context import BaseContext

TYPES: dict[str, Any] = {
    "float64": types.float64,
    "float32": types.float32,
    "int64": types.int64,
    "int32": types.int32,
    "bool": types.boolean,
}
"""numba's type for the numbers of each dtype."""


class _TypingContext(BaseContext):
    """The types of what numba's own module of built-ins declares, without arrays, lists and the like."""

    def load_additional_registries(self) -> None:
        """Load nothing more than `_load_builtins`."""

    def _load_builtins(self) -> None:
        self.install_registry(_builtins())


@cache
def _builtins() -> Any:
    """Return one registry, however often numba asks: it keeps every registry that it gets."""
    from numba.core.typing import builtins, templates

    own = templates.Registry()
    declared = templates.builtin_registry
    own.functions = [item for item in declared.functions if _is_of(builtins, item)]
    own.globals = [
        (value, of)
        for value, of in declared.globals
        if isinstance(of, types.Function) and all(_is_of(builtins, item) for item in of.templates)
    ]
    return own


def _is_of(module: ModuleType, template: type) -> bool:
    """Return True if `template`, or a class that numba derived it from, is defined in `module`."""
    return any(base.__module__ == module.__name__ for base in template.__mro__)


class _TargetContext(cpu.CPUContext):
    def init(self) -> None:
        """Initialize as numba does, with passes that are freed."""
        super().init()
        codegen: Any = self._internal_codegen
        codegen._module_pass_manager = _freed(codegen._module_pass_manager)
        codegen._function_pass_manager = _freed(codegen._function_pass_manager)

    def load_additional_registries(self) -> None:
        """Load the implementations of whole numbers, ranges and pointers, by importing them."""
        rtsys.initialize(self)
        from numba.cpython import builtins, numbers, rangeobj  # noqa: F401


def _freed(make: Callable[..., tuple[Any, Any]]) -> Callable[..., tuple[Any, Any]]:
    """Return `make`, which makes pass managers beside their builders, such that these managers are freed."""

    def made(**options: Any) -> tuple[Any, Any]:
        passes, builder = make(**options)
        return freed(passes), builder

    return made


@cache
def contexts() -> tuple[Any, Any]:
    """Return the typing and the target context of all kernels of this process."""
    typing = _TypingContext()
    target = _TargetContext(typing, "cpu")
    typing.refresh()
    target.refresh()
    return typing, target


class _ModulePasses(ModulePassManager):
    _dispose = NewPassManager._dispose


class _FunctionPasses(FunctionPassManager):
    _dispose = NewPassManager._dispose


_FREED: dict[type, type] = {ModulePassManager: _ModulePasses, FunctionPassManager: _FunctionPasses}


def freed(passes: Any) -> Any:
    """Return `passes`, a pass manager, made to be freed with its last reference."""
    if type(passes)._dispose is ObjectRef._dispose:
        passes.__class__ = _FREED[type(passes)]
    return passes
