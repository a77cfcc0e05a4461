"""`patch` and `unpatch`: nutpie has its functions of C from the store."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from types import ModuleType
from typing import Any

from cachegraph.errors import SourceError
from cachegraph.logger import logger
from cachegraph.module_patches import ModulePatches, unknown_object
from cachegraph.pytensor.errors import note_failure

NUTPIE = "nutpie.compile_pymc"
_COMPILE, _DENSITY, _EXPANSION = "_compile_pymc_model_numba", "_make_c_logp_func", "_make_c_expand_func"
_KNOWN = {
    _COMPILE: ("model", "pymc_initial_point_fn", "var_names", "kwargs"),
    _DENSITY: ("n_dim", "logp_fn", "user_data", "shared_keys", "shared_data"),
    _EXPANSION: ("n_dim", "n_expanded", "expand_fn", "user_data", "shared_var_keys", "shared_data"),
    "make_extraction_fn": ("inner", "shared_data", "shared_var_keys", "record_dtype"),
}
"""The parameters of what is replaced, as in nutpie 0.16."""
_OF_NUMBA = frozenset({"cache", "pipeline_class"})
"""The options of numba.cfunc by which the caller decides where code comes from."""


def patch() -> None:
    """Have nutpie's functions of C come from the store; if nutpie is not imported yet, when it is.

    A nutpie that is not as it is known, or that somebody else has changed, stays as it is; the reason is
    logged. A second call changes nothing.
    """
    _PATCHES.apply()


def unpatch() -> None:
    """Restore nutpie; models compiled in between keep working."""
    _PATCHES.restore()


def _of_nutpie(module: ModuleType) -> dict[str, Any]:
    if (unknown := unknown_object(module, _KNOWN)) is not None:
        logger("cachegraph").warning(
            "nutpie compiles its functions in every process: %s is not as in 0.16", unknown
        )
        return {}
    for name in _KNOWN:
        if (found := getattr(module, name)).__module__ != NUTPIE:
            logger("cachegraph").info(
                "nutpie's functions are not stored: %s has replaced %s", found.__module__, name
            )
            return {}
    return {
        _COMPILE: _with_pipeline(getattr(module, _COMPILE)),
        _DENSITY: _describing(getattr(module, _DENSITY), 1),
        _EXPANSION: _describing(getattr(module, _EXPANSION), 2),
    }


def _with_pipeline(own: Callable[..., Any]) -> Callable[..., Any]:
    """Return nutpie's compiler of a model, with numba's compiler replaced by one that asks the store."""

    @wraps(own)
    def compile_model(model: Any, *args: Any, **options: Any) -> Any:
        if _OF_NUMBA & options.keys():
            return own(model, *args, **options)
        from cachegraph.pytensor.nutpie.pipeline import storing_pipeline

        of_numba = {name: value for name, value in options.items() if name not in _KNOWN[_COMPILE]}
        return own(model, *args, pipeline_class=storing_pipeline(of_numba), **options)

    return compile_model


def _describing(own: Callable[..., Any], lengths: int) -> Callable[..., Any]:
    """Return `own`, whose first parameters are `lengths` numbers, with descriptions of what it makes."""
    parameters = signature(own)

    @wraps(own)
    def make(*args: Any, **named: Any) -> Any:
        given = parameters.bind(*args, **named).args
        found = _callback_for(own.__name__, given[:lengths], given[lengths:])
        if found is None:
            return own(*given)
        from cachegraph.pytensor.nutpie.callbacks import described

        callback, stand_ins = found
        made, c_signature = own(*given[:-1], stand_ins)
        return described(made, callback), c_signature

    return make


def _callback_for(kind: str, lengths: tuple[Any, ...], given: tuple[Any, ...]) -> Any:
    """Return what callback_for returns; None, counted and logged with its reason, if there is nothing."""
    from cachegraph.cache import default_cache
    from cachegraph.pytensor.nutpie.callbacks import Undescribed, callback_for

    try:
        return callback_for(kind, lengths, *given)
    except (Undescribed, SourceError) as error:
        logger("cachegraph").info("%s", error)
        default_cache().note_bypass("numba", error.kind if isinstance(error, Undescribed) else "source")
    except Exception as error:
        note_failure("describing nutpie's function", kind, error)
    return None


_PATCHES = ModulePatches({NUTPIE: _of_nutpie})
