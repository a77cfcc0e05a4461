"""Addresses of the C functions that SciPy exports to Cython: BLAS, LAPACK and special functions.

The two extension files for linear algebra are loaded alone: importing scipy.linalg takes 140 ms.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
from functools import cache
from importlib import import_module
from importlib.machinery import ExtensionFileLoader
from types import ModuleType
from typing import Any

from cachegraph.errors import CythonFunctionError

_LOADED_ALONE = ("scipy.linalg.cython_blas", "scipy.linalg.cython_lapack")


def cython_function(module: str, name: str) -> int:
    """Return the address of the function `name` that the extension `module` exports.

    Raises CythonFunctionError if there is no such module or function.
    """
    try:
        capsule = _extension(module).__pyx_capi__[name]
    except (ImportError, AttributeError, KeyError) as error:
        found = "no such function" if isinstance(error, KeyError) else str(error)
        raise CythonFunctionError(module, name, found) from error
    return int(_pointer(capsule, _name(capsule)))


def function_of_doubles(module: str, name: str, arity: int) -> int:
    """Return the address of the variant of `name` that takes `arity` doubles and returns one.

    Its C function takes one more int, 0. Raises CythonFunctionError if the extension `module` exports none.
    """
    signature = f"double ({'double, ' * arity}int __pyx_skip_dispatch)".encode()
    try:
        exported = _extension(module).__pyx_capi__
    except (ImportError, AttributeError) as error:
        raise CythonFunctionError(module, name, str(error)) from error
    fused = re.compile(_FUSED)
    for key, capsule in exported.items():
        if (key == name or fused.sub("", key) == name) and _name(capsule) == signature:
            return int(_pointer(capsule, signature))
    raise CythonFunctionError(module, name, f"no such function of {arity} doubles")


_FUSED = r"^__pyx_fuse_(\d+_?)*"
"""The prefix that Cython gives to the name of a variant, by number."""

_name: Any = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
_pointer: Any = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


@cache
def _extension(name: str) -> ModuleType:
    if name in sys.modules or name not in _LOADED_ALONE:
        return import_module(name)
    from importlib.util import find_spec, module_from_spec, spec_from_loader

    root, package, extension = name.split(".")
    found = find_spec(root)
    if found is None or not found.submodule_search_locations:
        raise ImportError("SciPy is not installed")
    directory = os.path.join(found.submodule_search_locations[0], package)
    for file in sorted(os.listdir(directory)):
        if file.startswith(f"{extension}.") and file.endswith(".so"):
            loader = ExtensionFileLoader(name, os.path.join(directory, file))
            spec = spec_from_loader(name, loader)
            module = module_from_spec(spec)  # type: ignore[arg-type]
            loader.exec_module(module)
            return module
    raise ImportError(f"{directory} has no {extension}")
