"""numba's typing and target contexts with only what printed kernels use: whole numbers, ranges, pointers, intrinsics.

numba's own contexts also load what arrays, lists, dicts, random numbers and installed extensions need, scipy.linalg
among them: a sixth of a cold start.
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
"""numba's type of the numbers of each dtype."""


class _TypingContext(BaseContext):
    """The types of what numba's own module of built-ins declares; others come with arrays, lists and the like."""

    def load_additional_registries(self) -> None:
        """Load nothing more than `_load_builtins`."""

    def _load_builtins(self) -> None:
        self.install_registry(_builtins())


@cache
def _builtins() -> Any:
    """One registry, however often numba asks: it keeps every registry that it was given."""
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
    """Whether `template`, or what numba made it of, is defined in `module`."""
    return any(base.__module__ == module.__name__ for base in template.__mro__)


class _TargetContext(cpu.CPUContext):
    def init(self) -> None:
        """As numba's, with passes that are freed."""
        super().init()
        codegen: Any = self._internal_codegen
        codegen._module_pass_manager = _freed(codegen._module_pass_manager)
        codegen._function_pass_manager = _freed(codegen._function_pass_manager)

    def load_additional_registries(self) -> None:
        """Load the implementations of whole numbers, ranges and pointers, by importing them."""
        rtsys.initialize(self)
        from numba.cpython import builtins, numbers, rangeobj  # noqa: F401


def _freed(make: Callable[..., tuple[Any, Any]]) -> Callable[..., tuple[Any, Any]]:
    """Make pass managers, each beside its builder, as `make` does."""

    def made(**options: Any) -> tuple[Any, Any]:
        passes, builder = make(**options)
        return freed(passes), builder

    return made


@cache
def contexts() -> tuple[Any, Any]:
    """The typing and the target context that kernels are compiled with, the same ones for all of a process."""
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
    """Return `passes`, a pass manager, such that it is freed with its last reference."""
    if type(passes)._dispose is ObjectRef._dispose:
        passes.__class__ = _FREED[type(passes)]
    return passes
