"""A model as nutpie's compiled model, on functions of C that run the engine's programs.

The user data of these functions are the addresses of their two contexts (engine/runtime/c_entry.py), and then
nutpie's own record of shared variables, which `with_data` fills anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any
from uuid import uuid4

import numpy as np
from pytensor.compile.mode import get_default_mode

from cachegraph.errors import CacheMissError
from cachegraph.logger import logger
from engine.compiling.c_entry import DENSITY, EXPAND, EntryRefused, SharedInput
from engine.pytensor.linker import EngineLinker
from engine.pytensor.nutpie.entries import entry_of, shared_variables
from engine.pytensor.registration import NAME


class ModelCompiler:
    """Compiles models for nutpie in place of its function `own`; `nutpie` is the module nutpie.compile_pymc.

    It is for as long as "ENGINE" is PyTensor's default mode. If only the values of all variables need
    Python, numba compiles these. A density that needs Python, and a model with options of numba, is compiled
    by `own`; the reason is logged.
    """

    def __init__(self, nutpie: Any, own: Callable[..., Any]) -> None:
        self._nutpie = nutpie
        self._own = own

    def __call__(
        self,
        model: Any,
        pymc_initial_point_fn: Callable[..., Any],
        var_names: Iterable[str] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return the CompiledPyMCModel of `model`. Raises what PyMC and PyTensor raise for it."""
        names = None if var_names is None else list(var_names)
        if kwargs:
            logger("engine").info(
                "nutpie compiles a model by numba: it is given numba's %s", ", ".join(kwargs)
            )
        elif isinstance(get_default_mode().linker, EngineLinker):
            try:
                return self._on_engine(model, pymc_initial_point_fn, names)
            except CacheMissError:
                raise
            except EntryRefused as reason:
                logger("engine").info("nutpie compiles a model by numba: %s", reason)
            except Exception as error:  # if the model is at fault, nutpie's own way raises the same
                logger("engine").warning(
                    "nutpie compiles a model by numba: on the engine it failed with %r", error
                )
        return self._own(model, pymc_initial_point_fn, names, **kwargs)

    def _on_engine(
        self, model: Any, pymc_initial_point_fn: Callable[..., Any], var_names: list[str] | None
    ) -> Any:
        """Return the compiled model on the engine; raises EntryRefused if its density needs Python."""
        nutpie = self._nutpie
        made = partial(
            nutpie._make_functions,
            model,
            compute_grad=True,
            join_expanded=True,
            pymc_initial_point_fn=pymc_initial_point_fn,
            var_names=var_names,
        )
        dim, expanded, density, expansion, initial_point, shapes, reparameterized = made(mode=NAME)
        data, keys = _shared_data([*shared_variables(density), *shared_variables(expansion)])
        user_data = _user_data(nutpie, keys, data)
        places = {variable: _place(user_data.dtype, key) for variable, key in keys.items()}
        density_entry = entry_of(density, DENSITY, dim, expanded, places)
        user_data["contexts"][0] = density_entry.context
        try:
            expansion_entry = entry_of(expansion, EXPAND, dim, expanded, places)
            user_data["contexts"][1] = expansion_entry.context
        except EntryRefused as reason:
            logger("engine").info("numba compiles the values of all variables for nutpie: %s", reason)
            expansion = made(mode="NUMBA")[3]
            expansion_entry = self._by_numba(dim, expanded, expansion, user_data, keys, data)
        dims, coords = nutpie._prepare_dims_and_coords(model, shapes, reparameterized)
        return nutpie.CompiledPyMCModel(
            _n_dim=dim,
            dims=dims,
            _coords=coords,
            _shapes={name: tuple(shape) for name, _, shape in zip(*shapes, strict=True)},
            compiled_logp_func=density_entry,
            compiled_expand_func=expansion_entry,
            initial_point_func=initial_point,
            shared_data=data,
            shared_var_keys=keys,
            user_data=user_data,
            n_expanded=expanded,
            shape_info=shapes,
            logp_func=density,
            expand_func=expansion,
            reparameterized_names=reparameterized,
        )

    def _by_numba(
        self,
        dim: int,
        expanded: int,
        expansion: Any,
        user_data: np.ndarray[Any, Any],
        keys: Mapping[Any, str],
        data: Mapping[str, np.ndarray[Any, Any]],
    ) -> Any:
        """Return nutpie's own function of C around `expansion`, which finds shared variables behind the
        contexts; raises EntryRefused if it has others."""
        from cachegraph.pytensor.nutpie.pipeline import c_function  # numba, which the engine does not need

        variables = expansion.get_shared()
        if not set(variables) <= set(keys):  # large constants, if the adapter makes them inputs for numba
            raise EntryRefused("making a C entry for", "numba's expansion", "it has data of its own")
        shared = [keys[variable] for variable in variables]
        make = self._nutpie._make_c_expand_func
        return c_function(make, dim, expanded, expansion.vm.jit_fn, user_data, shared, data)


def _shared_data(variables: Iterable[Any]) -> tuple[dict[str, np.ndarray[Any, Any]], dict[Any, str]]:
    """Return copies of the values of shared variables and their keys."""
    keys = {variable: uuid4().hex for variable in dict.fromkeys(variables)}
    data = {}
    for variable, key in keys.items():
        dtype = variable.type.dtype
        data[key] = np.array(variable.get_value(borrow=True), dtype=dtype, order="C", copy=True)
        data[key].flags.writeable = False
    return data, keys


def _user_data(
    nutpie: Any, keys: Mapping[Any, str], data: Mapping[str, np.ndarray[Any, Any]]
) -> np.ndarray[Any, Any]:
    own: np.dtype[Any] = nutpie.make_user_data(keys, data).dtype
    dtype = np.dtype([("contexts", np.uint64, (2,)), *((name, own[name]) for name in own.names or ())])
    filled: np.ndarray[Any, Any] = nutpie.update_user_data(np.zeros((), dtype), data)
    return filled


def _place(dtype: Any, key: str) -> SharedInput:
    record, begin = dtype.fields["shared"][:2]
    offsets = []
    for part in ("data", "shape"):
        fields, offset = record.fields[part][:2]
        offsets.append(begin + offset + fields.fields[key][1])
    return SharedInput(*offsets)
