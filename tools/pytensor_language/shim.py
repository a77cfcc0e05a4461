"""`import pytensor...` gives the engine's names.

A module of PyTensor's is looked for by its path only: the checkout says which there are, and its code
is never read. Its names are those of the engine's module of the same path; the others are `Missing`.
"""

from __future__ import annotations

import logging
import struct
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from flags import config
from missing import Missing

ROOT = "pytensor"
ENGINE = "engine"


def old_np_unique(
    x: Any, index: bool = False, inverse: bool = False, counts: bool = False, axis: Any = None
) -> Any:
    """Return what numpy's `unique` returned before release 2.0: the inverse as a vector."""
    found = np.unique(x, index, inverse, counts, axis=axis)
    return (found[0], *map(np.ravel, found[1:])) if isinstance(found, tuple) else found


COMPLETE = ("pytensor.tensor.nlinalg", "pytensor.tensor.slinalg")
"""Modules of which the engine has all names: another one is missing in PyTensor, too."""

OWN: dict[str, Any] = {
    "config": config,
    "__version__": "engine",
    "LOCAL_BITWIDTH": struct.calcsize("P") * 8,
    "PYTHON_INT_BITWIDTH": struct.calcsize("l") * 8,
    "logging": logging,
    "old_np_unique": old_np_unique,
}
"""The names that the shim has itself: those that have nothing to do with the engine."""

CAST = "_convert_to_"
"""The beginning of the names of PyTensor's casts."""
SIGN = "_is_provably_"
"""The beginning of the names of what PyTensor knows of signs."""
TOLERANCES = {"float16": (1e-3, 1e-3), "float32": (1e-5, 1e-5), "complex64": (1e-5, 1e-5)}
"""Relative and absolute tolerances of PyTensor's tests, those of the narrowest dtype first."""


def install(package: Path) -> None:
    """Have `import pytensor` give the engine's names; `package` is PyTensor's folder of a checkout.

    Raises RuntimeError if PyTensor is imported already.
    """
    if ROOT in sys.modules:
        raise RuntimeError("PyTensor was imported before the shim was there")
    sys.meta_path.insert(0, ShimFinder(package))


class ShimFinder(MetaPathFinder, Loader):
    """Finds and makes the modules of PyTensor's that are in the folder `package`."""

    def __init__(self, package: Path) -> None:
        self.package = package

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.split(".")[0] != ROOT:
            return None
        place = self.package.joinpath(*fullname.split(".")[1:])
        there = (place / "__init__.py").exists() or place.with_suffix(".py").exists()
        return ModuleSpec(fullname, self, is_package=True) if there else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return ShimModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: names are looked for when somebody asks."""


class ShimModule(ModuleType):
    """A module of PyTensor's with the engine's names."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in OWN:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        if name in OWN:
            return OWN[name]
        found = engine_name(self.__name__, name)
        if found is None and self.__name__ in COMPLETE:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return self._submodule(name) if found is None else found

    def __setattr__(self, name: str, value: Any) -> None:
        """Keep what the engine has where a submodule has the same name, as PyTensor does (`shape`)."""
        if not isinstance(value, ShimModule) or engine_name(self.__name__, name) is None:
            super().__setattr__(name, value)

    def _submodule(self, name: str) -> Any:
        path = f"{self.__name__}.{name}"
        try:
            return import_module(path)
        except ModuleNotFoundError:
            return Missing(path)


def debugprint(*arguments: Any, **options: Any) -> Any:
    """Return what the engine's `debugprint` returns; lines of text have the names that PyTensor prints."""
    from engine.printing import debugprint

    found = debugprint(*arguments, **options)
    return found.replace("where [id", "Switch [id") if isinstance(found, str) else found


def engine_name(module: str, name: str) -> Any:
    """Return what the engine has for a public name of one of PyTensor's modules, or None."""
    if name.startswith("_"):
        return internal_name(name)
    if name == "debugprint":
        return debugprint
    if name == "BlockwiseWithCoreShape":
        # By this class PyTensor's numba backend computes a Blockwise; the engine does so by a loop.
        return import_module("engine.inner.batch_loop").BatchLoop
    found = getattr(engine_module(module), name, None)
    # `pytensor.scan` is a function, and the name of a package.
    return None if isinstance(found, ModuleType) and not callable(found) else found


def engine_module(module: str) -> ModuleType | None:
    """Return the engine's module for one of PyTensor's, or None."""
    path = ENGINE + module.removeprefix(ROOT)
    try:
        return import_module(path)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{path}.".startswith(f"{error.name}."):
            raise
        return None


def internal_name(name: str) -> Any:
    """Return what stands for a private name that tests use: of comparisons, signs, axes, draws,
    casts and batches.
    """
    if name == "_allclose":
        return allclose
    if name.startswith(SIGN):
        return getattr(import_module("engine.tensor.signs"), f"is_{name.removeprefix(SIGN)}")
    if name == "_analyze_axes_list":
        kept = import_module("engine.tensor.packing").kept_axes
        return lambda axes: (*kept(axes), sum(kept(axes)))
    if name == "_index_provably_unique":
        is_distinct = import_module("engine.rewriting.index_facts").is_distinct
        return lambda index, fgraph: is_distinct(fgraph, index)
    if name == "_specify_shape":
        return import_module("engine.tensor.checks").SpecifyShape()
    if name == "_matmul":
        products = import_module("engine.tensor.products")
        return import_module("engine.tensor.blockwise").Blockwise(products.Dot(), "(m,k),(k,n)->(m,n)")
    if name == "_parse_gufunc_signature":
        return import_module("engine.tensor.signature").parsed
    if name == "_vectorize_node":
        vectorize_node = import_module("engine.tensor.blockwise").vectorize_node
        return lambda op, node, *inputs: vectorize_node(node, *inputs)[0].owner
    if name == "_gamma":
        return getattr(import_module("engine.random.continuous"), name)
    if name.startswith(CAST):
        from engine.tensor import cast

        return lambda x: cast(x, name.removeprefix(CAST))
    return None


def allclose(a: Any, b: Any, rtol: float | None = None, atol: float | None = None) -> bool:
    """Return True if arrays are equal within PyTensor's tolerances for the narrower of their dtypes."""
    a, b = np.asarray(a), np.asarray(b)
    relative, absolute = next(
        (TOLERANCES[kind] for kind in TOLERANCES if kind in (a.dtype.name, b.dtype.name)), (1e-5, 1e-8)
    )
    return np.allclose(a, b, relative if rtol is None else rtol, absolute if atol is None else atol)
