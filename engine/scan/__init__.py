"""Loops, under PyTensor's path. This module can be called: `engine.scan` is a function there."""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from engine.paths import find
from engine.scanning.arguments import until
from engine.scanning.construction import foldl, foldr, map, reduce, scan

__all__ = ["foldl", "foldr", "map", "reduce", "scan", "until"]


class CallableModule(ModuleType):
    """A module that can be called as the function `scan`."""

    __call__ = staticmethod(scan)

    def __reduce__(self) -> tuple[Any, ...]:
        return import_module, (self.__name__,)


def __getattr__(name: str) -> Any:
    return find(__name__, name)


sys.modules[__name__].__class__ = CallableModule
