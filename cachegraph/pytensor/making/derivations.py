"""Graphs that PyTensor and PyMC derive from others before a function is made, found in the cache or made.

`pm.sample` derives the log density of a model, rewrites that, and takes its gradient: in a process that
finds the function itself this is most of what is left. Each of the three is a function of graphs; the result
is kept under the key of describe/derived.py. What has no key, or no stored form, is derived as without the
adapter.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from time import perf_counter
from types import ModuleType
from typing import Any
from weakref import WeakSet

from pytensor.graph.basic import Variable, equal_computations

from cachegraph.cache import Artifact, Found, default_cache
from cachegraph.errors import SourceError, Unfingerprintable
from cachegraph.logger import logger
from cachegraph.module_patches import ModulePatches, unknown_object
from cachegraph.pytensor.errors import Changed, note_failure

Derive = Callable[[], Sequence[Any]]

DENSITY = "density"
"""The kind of a derivation of log densities, which others may have a part in."""

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


def _found_or_derived(
    kind: str, graph: Sequence[Any], told: object, derive: Derive, *, is_extended: bool = False
) -> list[Any]:
    """Return what `derive` makes of `graph`: found, or made and stored. Raises what `derive` raises.

    `told` is all else that `derive` reads. If `graph` is extended, the result is built on its variables;
    otherwise on those that it is computed from.
    """
    lookup = _Derivation(kind)
    found = lookup.found(graph, told, is_extended)
    if found is not None:
        return found
    begin = perf_counter()
    with _complaints() as complaints:
        made = list(derive())
    return made if complaints else lookup.kept(made, perf_counter() - begin)


@contextmanager
def _complaints() -> Iterator[list[str]]:
    """Collect what PyTensor and PyMC warn of meanwhile: what is found later would not warn of it."""
    handler = _Collecting(logging.WARNING)
    loggers = [logging.getLogger(name) for name in ("pytensor", "pymc")]
    for of_host in loggers:
        of_host.addHandler(handler)
    try:
        yield handler.found
    finally:
        for of_host in loggers:
            of_host.removeHandler(handler)


class _Collecting(logging.Handler):
    """A handler that keeps messages, and shows none."""

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append(record.getMessage())


class _Derivation:
    """The lookup of one derived graph; after any failure it is derived as without the cache."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._described: Any = None
        self._hand: Any = None

    def found(self, graph: Sequence[Any], told: object, is_extended: bool) -> list[Any] | None:
        """Return the result from the cache, None if it is not there; never raises."""
        cache = default_cache()
        if cache.absent is not None:
            return None
        from cachegraph.pytensor.describe.derived import describe_derived, refuse_foreign_densities

        try:
            if self._kind == DENSITY:
                refuse_foreign_densities()
            self._described = describe_derived(self._kind, graph, told)
            self._hand = self._in_hand(graph, is_extended)
            found = cache.find(self._described.key, self._load)
            return found.value if isinstance(found, Found) and not cache.samples_hit() else None
        except (Unfingerprintable, SourceError) as error:
            logger("cachegraph").info("the %s of a graph is made anew: %s", self._kind, error)
        except Exception as error:
            note_failure(f"looking the {self._kind} of a graph up", "it", error)
        self._described = None
        return None

    def _in_hand(self, graph: Sequence[Any], is_extended: bool) -> Any:
        from cachegraph.pytensor.stored.derived_graph import InHand
        from cachegraph.pytensor.stored.externals import Context

        given, nodes = self._described.given, self._described.nodes if is_extended else ()
        given = (*given, *(output for node in nodes for output in node.outputs))
        return InHand(given, tuple(graph), Context(arrays=self._described.basis.arrays))

    def _load(self, payload: bytes) -> list[Any]:
        from cachegraph.pytensor.stored.derived_graph import unpack_derived

        return unpack_derived(payload, self._hand)

    def kept(self, made: list[Any], seconds: float) -> list[Any]:
        """Store the result, if it has a key and a stored form, and return it read back; else as it is.

        A process that finds it then compiles the very same graph. Never raises.
        """
        if self._described is None:
            return made
        from cachegraph.pytensor.stored.derived_graph import pack_derived

        try:
            content = pack_derived(made, self._hand)
            found = self._load(content)
            if not equal_computations(found, made):
                raise TypeError("what is read back is another graph")
            if changed := self._described.basis.changed():
                raise Changed(changed)
            summary = f"{self._kind} of {len(self._described.nodes)} nodes"
            artifact = Artifact(content, seconds={"derive": seconds}, summary=summary)
            default_cache().store(self._described.key, artifact)
        except Exception as error:  # the graph is derived nevertheless
            logger("cachegraph").info("the %s of a graph is not stored: %s", self._kind, error)
            return made
        return found


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
        told = tuple(include), custom_rewrite
        found = _found_or_derived("rewriting", outputs, told, lambda: _listed(rewritten()))
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
        told = len(wrt), named.get("disconnected_inputs", "raise")
        found = _found_or_derived(
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
        transforms = [rvs_to_transforms.get(rv) for rv in places]
        told = [places[rv] for rv in rvs], transforms, bool(jacobian)
        found = _found_or_derived(DENSITY, [*places, *rvs_to_values.values()], told, derived)
        for variable, rv in zip(found, rvs, strict=True):
            if name := rvs_to_values[rv].name:
                variable.name = f"{name}_logprob"
        return found

    return transformed_conditional_logp


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
    }
)
