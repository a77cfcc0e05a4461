"""`patch` and `unpatch`: nutpie compiles PyMC models on the engine, and PyMC samples them with nutpie."""

from __future__ import annotations

import sys
from inspect import signature
from types import ModuleType
from typing import Any

from cachegraph.import_watcher import ImportWatcher

NUTPIE, PYMC = "nutpie.compile_pymc", "pymc.sampling.mcmc"
_COMPILE, _LINKER = "_compile_pymc_model_numba", "NumbaLinker"
_KNOWN = {
    _COMPILE: ("model", "pymc_initial_point_fn", "var_names", "kwargs"),
    "_make_functions": (
        *("model", "mode", "compute_grad", "join_expanded"),
        *("pymc_initial_point_fn", "var_names"),
    ),
    "_prepare_dims_and_coords": ("model", "shape_info", "reparameterized_names"),
    "make_user_data": ("shared_var_keys", "shared_data"),
    "update_user_data": ("user_data", "user_data_storage"),
    "CompiledPyMCModel": (
        *("dims", "reparameterized_names", "compiled_logp_func", "compiled_expand_func"),
        *("initial_point_func", "shared_data", "shared_var_keys", "user_data", "n_expanded", "shape_info"),
        *("logp_func", "expand_func", "_n_dim", "_shapes", "_coords", "_transform_adapt_args"),
    ),
}
"""The parameters of what is replaced or called, as in nutpie 0.16."""

_replaced: list[tuple[ModuleType, str, Any]] = []
"""The objects that were replaced: module, name, and the object."""


def patch() -> None:
    """Have nutpie compile PyMC models on the engine while "ENGINE" is PyTensor's default mode.

    `pm.sample` takes nutpie then as it does in the mode "NUMBA". Modules that are not imported yet are
    patched when they are. A nutpie, or a PyMC, that is not as it is known stays as it is, with a warning. A
    second call changes nothing.
    """
    for name in _PATCHES:
        if (module := sys.modules.get(name)) is not None:
            _patch_module(module)
    _WATCHER.start()


def unpatch() -> None:
    """Restore nutpie and PyMC; models compiled in between keep working."""
    _WATCHER.stop()
    while _replaced:
        module, name, own = _replaced.pop()
        setattr(module, name, own)


def _patch_module(module: ModuleType) -> None:
    if not any(patched is module for patched, _, _ in _replaced):
        _PATCHES[module.__name__](module)


def _replace(module: ModuleType, name: str, value: Any) -> None:
    _replaced.append((module, name, getattr(module, name)))
    setattr(module, name, value)


def _patch_nutpie(module: ModuleType) -> None:
    for name, known in _KNOWN.items():
        found = getattr(module, name, None)
        if found is None or set(signature(found).parameters) != set(known):
            _log().warning("nutpie compiles models by numba: its %s is not as in nutpie 0.16", name)
            return
    from engine.pytensor.nutpie.models import ModelCompiler

    _replace(module, _COMPILE, ModelCompiler(module, getattr(module, _COMPILE)))


def _patch_pymc(module: ModuleType) -> None:
    """Have PyMC take nutpie for the engine's linker, too."""
    if not isinstance(getattr(module, _LINKER, None), type):
        _log().warning("pm.sample does not take nutpie by itself: PyMC's module has no %s", _LINKER)
        return
    from engine.pytensor.linker import EngineLinker

    _replace(module, _LINKER, getattr(module, _LINKER) | EngineLinker)


_PATCHES = {NUTPIE: _patch_nutpie, PYMC: _patch_pymc}
_WATCHER = ImportWatcher(dict.fromkeys(_PATCHES, _patch_module))


def _log() -> Any:
    import logging  # 7 ms, which a warm start does not need

    return logging.getLogger("engine")
