"""`import pytensor...` gives the engine's names.

A module of PyTensor's is looked for by its path only: the checkout says which there are, and its code
is never read. Its names are those of the engine's modules in `ENGINE`; the others are `Missing`.
"""

from __future__ import annotations

import logging
import pkgutil
import struct
import sys
from collections.abc import Iterator, Sequence
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

ENGINE: dict[str, tuple[str, ...]] = {
    "pytensor": ("engine", "engine.compiling.mode", "engine.printing"),
    "pytensor.assumptions": ("engine.assumptions", "engine.assumptions."),
    "pytensor.compile": (
        "engine",
        "engine.compile.",
        "engine.compiling.",
        "engine.inner.",
        "engine.graph.features.",
        "engine.rewriting",
    ),
    "pytensor.compile.sharedvalue": ("engine.shared_variables", "engine.random.shared"),
    "pytensor.gradient": ("engine.gradient", "engine.gradient."),
    "pytensor.graph": (
        "engine.graph",
        "engine.graph.",
        "engine.graph.features.",
        "engine.rewriting",
        "engine.inner",
    ),
    "pytensor.graph.rewriting": ("engine.rewriting", "engine.rewriting.", "engine.graph.features."),
    "pytensor.conditional": ("engine.tensor.conditional",),
    "pytensor.ifelse": ("engine.tensor.conditional",),
    "pytensor.link": ("engine.link.",),
    "pytensor.link.c.type": ("engine.graph.generic",),
    "pytensor.printing": ("engine.printing",),
    "pytensor.raise_op": ("engine.raise_op",),
    "pytensor.scalar": ("engine.scalar", "engine.scalar.", "engine.inner.composite"),
    "pytensor.scan": ("engine.scanning", "engine.scanning.", "engine.inner."),
    "pytensor.tensor": ("engine.tensor", "engine.tensor.", "engine.inner.special"),
    "pytensor.tensor.linalg": ("engine.tensor.linalg", "engine.tensor.linalg."),
    # Its modules have the names of functions: lu, qr, svd.
    "pytensor.tensor.linalg.decomposition": (),
    **{
        f"pytensor.tensor.linalg.decomposition.{name}": ("engine.tensor.linalg", "engine.tensor.linalg.")
        for name in ("cholesky", "eigen", "lu", "qr", "schur", "svd")
    },
    "pytensor.tensor.optimize": (
        "engine.tensor.optimize",
        "engine.inner.optimize",
        "engine.inner.optimize_ops",
    ),
    "pytensor.tensor.rewriting": (
        "engine.rewriting",
        "engine.rewriting.passes.",
        "engine.rewriting.linear_algebra.",
        "engine.rewriting.batches",
        "engine.raise_op",
    ),
    # The same words have other meanings here: gamma, choice, norm.
    "pytensor.tensor.random": ("engine.random", "engine.random.", "engine.tensor.none_type"),
    "pytensor.tensor.random.rewriting": ("engine.rewriting.passes.draws",),
    "pytensor.tensor.special": ("engine.tensor.special", "engine.inner.special"),
    "pytensor.tensor.signal": ("engine.tensor.signal",),
    "pytensor.tensor.einsum": ("engine.inner.einsum",),
    "pytensor.tensor.fft": ("engine.tensor.fft",),
    "pytensor.tensor.fourier": ("engine.tensor.fourier",),
    "pytensor.tensor.nlinalg": ("engine.tensor.nlinalg",),
    "pytensor.tensor.slinalg": ("engine.tensor.slinalg",),
    "pytensor.tensor.xlogx": ("engine.tensor.xlogx",),
    "pytensor.tensor.blas": (),
    "pytensor.tensor._linalg": (),
}
"""The engine's modules by those of PyTensor's, which stand for the ones below them too. A name that ends
with a dot stands for all modules of that package."""


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
        # PyTensor's numba backend gives a Blockwise the lengths of its results, and this class.
        return import_module("engine.tensor.blockwise").Blockwise
    for place in engine_modules(module):
        found = getattr(import_module(place), name, None)
        if isinstance(found, ModuleType) and found.__name__ == f"{place}.{name}":
            return None  # pt.fft is a module, whatever a function in it is called
        if found is not None and found is not Any and not isinstance(found, ModuleType):
            return found
    return None


def internal_name(name: str) -> Any:
    """Return what stands for a private name that tests use: of comparisons, draws, casts and batches."""
    if name == "_allclose":
        return allclose
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


def engine_modules(module: str) -> Iterator[str]:
    """Yield the names of the engine's modules that stand for one of PyTensor's."""
    while module not in ENGINE:
        module, dot, _ = module.rpartition(".")
        if not dot:
            return
    for name in ENGINE[module]:
        if name.endswith("."):
            package = import_module(name[:-1])
            yield from (f"{name}{each.name}" for each in pkgutil.iter_modules(package.__path__))
        elif _exists(name):
            yield name


def _exists(name: str) -> bool:
    try:
        import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        return False
    return True
