"""`patch` and `unpatch`: nutpie compiles PyMC models on the engine, and PyMC samples them with nutpie."""

from __future__ import annotations

from functools import wraps
from types import ModuleType
from typing import Any

from cachegraph.logger import logger
from cachegraph.module_patches import ModulePatches, unknown_object

NUTPIE, PYMC, POINTS = "nutpie.compile_pymc", "pymc.sampling.mcmc", "pymc.initial_point"
_COMPILE, _SHAPES, _LINKER = "_compile_pymc_model_numba", "_compute_shapes", "NumbaLinker"
_KNOWN = {
    _COMPILE: ("model", "pymc_initial_point_fn", "var_names", "kwargs"),
    "_make_functions": (
        *("model", "mode", "compute_grad", "join_expanded"),
        *("pymc_initial_point_fn", "var_names"),
    ),
    _SHAPES: ("model",),
    "_prepare_dims_and_coords": ("model", "shape_info", "reparameterized_names"),
    "_make_c_expand_func": (
        *("n_dim", "n_expanded", "expand_fn"),
        *("user_data", "shared_var_keys", "shared_data"),
    ),
    "make_user_data": ("shared_var_keys", "shared_data"),
    "update_user_data": ("user_data", "user_data_storage"),
    "CompiledPyMCModel": (
        *("dims", "reparameterized_names", "compiled_logp_func", "compiled_expand_func"),
        *("initial_point_func", "shared_data", "shared_var_keys", "user_data", "n_expanded", "shape_info"),
        *("logp_func", "expand_func", "_n_dim", "_shapes", "_coords", "_transform_adapt_args"),
    ),
}
"""The parameters of what is replaced or called, as in nutpie 0.16."""


def patch() -> None:
    """Have nutpie compile PyMC models on the engine while "ENGINE" is PyTensor's default mode.

    `pm.sample` takes nutpie then as it does in the mode "NUMBA", and initial points come from the store, too.
    Modules that are not imported yet are patched when they are. A nutpie, or a PyMC, that is not as it is
    known stays as it is, with a warning. A second call changes nothing.
    """
    _PATCHES.apply()


def unpatch() -> None:
    """Restore nutpie and PyMC; models compiled in between keep working."""
    _PATCHES.restore()


def _of_nutpie(module: ModuleType) -> dict[str, Any]:
    if (unknown := unknown_object(module, _KNOWN)) is not None:
        logger("engine").warning("nutpie compiles models by numba: its %s is not as in nutpie 0.16", unknown)
        return {}
    from engine.pytensor.nutpie.models import ModelCompiler
    from engine.pytensor.nutpie.starting import computing_on_engine

    return {
        _COMPILE: ModelCompiler(module, getattr(module, _COMPILE)),
        _SHAPES: computing_on_engine(getattr(module, _SHAPES)),
    }


def _of_pymc(module: ModuleType) -> dict[str, Any]:
    """Return what has PyMC take nutpie for the engine's linker, too."""
    if not isinstance(getattr(module, _LINKER, None), type):
        logger("engine").warning("pm.sample does not take nutpie by itself: PyMC's module has no %s", _LINKER)
        return {}
    from engine.pytensor.linker import EngineLinker

    return {_LINKER: getattr(module, _LINKER) | EngineLinker}


def _of_points(module: ModuleType) -> dict[str, Any]:
    """Return what has PyMC compile initial points on the engine."""
    if not callable(getattr(module, "compile", None)):
        return {}
    own = module.compile

    @wraps(own)
    def compile(*arguments: Any, **options: Any) -> Any:
        from engine.pytensor.nutpie.starting import compiling_on_engine  # only a model has initial points

        return compiling_on_engine(own)(*arguments, **options)

    return {"compile": compile}


_PATCHES = ModulePatches({NUTPIE: _of_nutpie, PYMC: _of_pymc, POINTS: _of_points})
