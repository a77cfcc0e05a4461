"""Graphs that PyTensor and PyMC derive from others before a function is made, found in the cache or made.

`pm.sample` derives the log density of a model, rewrites that, and takes its gradient: in a process that
finds the function itself this is most of what is left. Each of the three is a function of graphs, and is
looked up (derived_lookup.py, imported then: finding a function takes none of it). What has no key, or no
stored form, is derived as without the adapter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from types import ModuleType
from typing import Any
from weakref import WeakSet

from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.traversal import graph_inputs

from cachegraph.logger import logger
from cachegraph.module_patches import ModulePatches, unknown_object

_REWRITE = {"rewrite_graph": ("graph", "include", "custom_rewrite", "clone", "kwargs")}
_GRADIENT = {
    "grad": (
        *("cost", "wrt", "consider_constant", "disconnected_inputs", "add_names", "known_grads"),
        *("return_disconnected", "null_gradients"),
    )
}
_DENSITY = {
    "transformed_conditional_logp": ("rvs", "rvs_to_values", "rvs_to_transforms", "jacobian", "kwargs")
}
"""The parameters of what is replaced, as in PyTensor 3.3 and PyMC 6.4."""


def patch() -> None:
    """Have PyMC's derived graphs come from the cache; if it is not imported yet, when it is.

    A function that is not as it is known stays as it is. A second call changes nothing.
    """
    _PATCHES.apply()


def unpatch() -> None:
    """Restore what `patch` replaced; graphs made in between stay."""
    _PATCHES.restore()


_rewritten: WeakSet[Any] = WeakSet()
"""The rewritten graphs of PyMC's: it takes gradients of these. Other gradients may be small and many."""


def _rewriting(own: Callable[..., Any]) -> Callable[..., Any]:
    """Return PyTensor's `rewrite_graph` with the cache in front of it; a FunctionGraph has it as it is."""

    @wraps(own)
    def rewrite_graph(
        graph: Any,
        include: Sequence[str] = ("canonicalize",),
        custom_rewrite: Any = None,
        clone: bool = False,
        **queried: Any,
    ) -> Any:
        def rewritten() -> Any:
            return own(graph, include, custom_rewrite, clone, **queried)

        outputs = [graph] if isinstance(graph, Variable) else graph
        if queried or not isinstance(outputs, list | tuple):
            return rewritten()
        from cachegraph.pytensor.making.derived_lookup import found_or_derived

        told = tuple(include), custom_rewrite
        found = found_or_derived("rewriting", outputs, told, lambda: _listed(rewritten()))
        _rewritten.update(found)
        return found[0] if isinstance(graph, Variable) else found

    return rewrite_graph


def _listed(made: Any) -> list[Any]:
    return [made] if isinstance(made, Variable) else list(made)


def _differentiating(own: Callable[..., Any]) -> Callable[..., Any]:
    """Return PyTensor's `grad` with the cache in front of gradients of what PyMC had rewritten."""

    @wraps(own)
    def grad(cost: Any, wrt: Any, *given: Any, **named: Any) -> Any:
        is_known = not given and named.keys() <= {"disconnected_inputs"} and isinstance(wrt, list)
        if not is_known or not isinstance(cost, Variable) or cost not in _rewritten:
            return own(cost, wrt, *given, **named)
        from cachegraph.pytensor.making.derived_lookup import found_or_derived

        told = len(wrt), named.get("disconnected_inputs", "raise")
        found = found_or_derived(
            "gradient", [cost, *wrt], told, lambda: own(cost, wrt, **named), is_extended=True
        )
        for variable, by in zip(found, wrt, strict=True):
            if variable.name is None and cost.name and by.name:
                variable.name = f"(d{cost.name}/d{by.name})"
        return found

    return grad


def _deriving_densities(own: Callable[..., Any]) -> Callable[..., Any]:
    """Return PyMC's `transformed_conditional_logp` with the cache in front of it."""

    @wraps(own)
    def transformed_conditional_logp(
        rvs: Sequence[Any],
        *,
        rvs_to_values: Mapping[Any, Any],
        rvs_to_transforms: Mapping[Any, Any],
        jacobian: bool = True,
        **named: Any,
    ) -> Any:
        def derived() -> Any:
            return own(
                rvs,
                rvs_to_values=rvs_to_values,
                rvs_to_transforms=rvs_to_transforms,
                jacobian=jacobian,
                **named,
            )

        places = {rv: place for place, rv in enumerate(rvs_to_values)}
        if named or not places.keys() >= {*rvs, *rvs_to_transforms}:
            return derived()
        from cachegraph.pytensor.making.derived_lookup import DENSITY, found_or_derived

        transforms = [rvs_to_transforms.get(rv) for rv in places]
        told = [places[rv] for rv in rvs], transforms, bool(jacobian)
        found = found_or_derived(DENSITY, [*places, *rvs_to_values.values()], told, derived)
        for variable, rv in zip(found, rvs, strict=True):
            if name := rvs_to_values[rv].name:
                variable.name = f"{name}_logprob"
        return found

    return transformed_conditional_logp


class _SamplersGradients:
    """`pytensor.gradient` as PyMC's sampler has it: it asks for the gradient of the log density by each
    variable alone, to see whether there is one. Here it is one gradient by all, found or made.
    """

    def __init__(self, own: ModuleType) -> None:
        self._own = own
        self._last: tuple[Any, dict[Any, Any]] = (None, {})
        """The last cost and its gradients, which refer to it: one graph is kept, and no more."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)

    def grad(self, cost: Any, wrt: Any, *given: Any, **named: Any) -> Any:
        """Return what `pytensor.gradient.grad` returns, and raise what it raises."""
        if given or named or not isinstance(cost, Variable) or not isinstance(wrt, Variable):
            return self._own.grad(cost, wrt, *given, **named)
        last, gradients = self._last
        if last is not cost:
            gradients = self._by_all(cost)
            self._last = cost, gradients
        found = gradients.get(wrt)
        return self._own.grad(cost, wrt) if found is None else found

    def _by_all(self, cost: Any) -> dict[Any, Any]:
        """Return the gradients of `cost` by its variables; none if one of them has none."""
        roots = [v for v in graph_inputs([cost]) if not isinstance(v, Constant | SharedVariable)]
        floats = [v for v in roots if getattr(v.type, "dtype", "").startswith("float")]
        from cachegraph.pytensor.making.derived_lookup import found_or_derived

        told = len(floats), "raise"
        try:
            found = found_or_derived(
                "gradient", [cost, *floats], told, lambda: self._own.grad(cost, floats), is_extended=True
            )
        except Exception:  # asked for by each alone, PyTensor says by which there is none
            return {}
        return dict(zip(floats, found, strict=True))


def _of_sampler(module: ModuleType) -> dict[str, Any]:
    own = getattr(module, "tg", None)
    return {"tg": _SamplersGradients(own)} if isinstance(own, ModuleType) else {}


def _replacing(
    known: Mapping[str, Any], hook: Callable[[Any], Any]
) -> Callable[[ModuleType], dict[str, Any]]:
    """Return what replaces the one function of `known` in a module that has it as it is known."""
    [name] = known

    def replacements(module: ModuleType) -> dict[str, Any]:
        if (unknown := unknown_object(module, known)) is None:
            return {name: hook(getattr(module, name))}
        logger("cachegraph").info("%s.%s is not as it is known, and stays", module.__name__, unknown)
        return {}

    return replacements


_PATCHES = ModulePatches(
    {
        "pymc.pytensorf": _replacing(_REWRITE, _rewriting),
        "pytensor": _replacing(_GRADIENT, _differentiating),
        "pymc.model.core": _replacing(_DENSITY, _deriving_densities),
        "pymc.sampling.mcmc": _of_sampler,
    }
)
