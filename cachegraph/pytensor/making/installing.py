"""The adapter installed into PyTensor, and uninstalled."""

from __future__ import annotations

import inspect
import sys
from functools import partial
from importlib import import_module
from types import FunctionType
from typing import Any

from cachegraph.garbage import kept_for_good
from cachegraph.hit_modules import HIT_MODULES
from cachegraph.platforms import require_linux
from cachegraph.pytensor.backends import NUMBA, DefaultMode, add_mode
from cachegraph.pytensor.errors import UnsupportedPyTensor

KNOWN = ("3.3",)
"""The minor versions of PyTensor whose makers and linkers the adapter was written for."""

_PARAMETERS = {
    "compile.mode:Mode.function_maker": "self",
    "compile.maker:FunctionMaker.__init__": "self inputs outputs mode accept_inplace function_class "
    "profile on_unused_input fgraph name no_fgraph_prep trust_input",
    "compile.maker:FunctionMaker.create": "self input_storage storage_map",
    "compile.maker:FunctionMaker.create_fgraph": "input_specs output_specs accept_inplace fgraph features "
    "force_clone",
    "compile.maker:FunctionMaker.prepare_fgraph": "inputs outputs additional_outputs fgraph mode profile",
    "compile.maker:FunctionMaker.check_unused_inputs": "inputs outputs on_unused_input",
    "compile.executor:Function.__init__": "self vm input_storage output_storage outputs unpack_single "
    "return_none maker trust_input name",
    "compile.rewriting:rewrite_inner_graph": "fgraph match rewrite",
    "compile.aliasing:infer_reuse_pattern": "fgraph outputs_to_disown",
    "compile.aliasing:Supervisor.__init__": "self protected",
    "link.basic:PerformLinker.accept": "self fgraph no_recycling profile",
    "link.basic:JITLinker.make_all": "self input_storage output_storage storage_map",
    "link.basic:JITLinker.create_jitable_thunk": "self compute_map order input_storage output_storage "
    "storage_map",
    "link.numba.linker:NumbaLinker.fgraph_convert": "self fgraph kwargs",
    "link.numba.linker:NumbaLinker.jit_compile": "self fn_and_cache",
    "graph.fg:FunctionGraph.__init__": "self inputs outputs features clone update_mapping clone_kwds",
    "graph.fg:FrozenFunctionGraph.__init__": "self inputs toposort output_nodes",
    "graph.basic:FrozenApply.__new__": "cls op inputs output_types topo_idx",
    "graph.utils:simple_extract_stack": "f limit skips",
}
"""The parameters of each function of PyTensor that the adapter calls, overrides or replaces."""

_INNER_REWRITING = (
    "pytensor.compile.rewriting",
    "pytensor.scan.rewriting.db",
    "pytensor.tensor.rewriting.optimize",
)
"""The modules that import `rewrite_inner_graph`, each under its own name."""

_ABSENT = object()
_before: list[tuple[Any, str, Any]] = []
"""The objects replaced at installation: owner, name, and the object."""


_default = DefaultMode()


def install(*, backend: str | None = None, force: bool = False, large_constants: bool = False) -> None:
    """Have every `pytensor.function` come from the cache; a second call changes only the options.

    The `backend` computes the functions that are given no mode: "numba", or one that an installed
    distribution declares (backends.py), such as "engine". Without it, that of an earlier call stays, at first
    numba. A function whose mode is given keeps its own. With `large_constants`, large constants are data:
    other observations in the same model are a hit.

    Raises UnknownBackend, and UnsupportedPyTensor for a PyTensor that the adapter does not know, or whose
    makers are not as it knows them; not with `force`. Nothing is installed then, nor where it raises
    UnsupportedPlatform.
    """
    require_linux("installing cachegraph.pytensor")
    import_module("pytensor")  # with CACHEGRAPH_PYTENSOR (activation.py), its import installs
    with kept_for_good():  # this imports a hundred modules
        HIT_MODULES.start(backend or NUMBA)
        _install(backend, force)
        from cachegraph.pytensor.making.maker import CachedMaker

        CachedMaker.large_constants = large_constants
        HIT_MODULES.note("cachegraph", "engine")


def _install(backend: str | None, force: bool) -> None:
    if not _before and not force:
        _refuse_unknown()
    mode = add_mode(backend) if backend not in (None, NUMBA) else None
    if not _before:
        _hook()
    if mode is not None:
        _default.become(mode)
    elif backend is not None:
        _default.restore()


def uninstall() -> None:
    """Restore PyTensor; functions made in between keep working. Does nothing if nothing is installed."""
    HIT_MODULES.stop()
    _default.restore()
    if _before:
        from cachegraph.pytensor import nutpie
        from cachegraph.pytensor.making import derivations

        nutpie.unpatch()
        derivations.unpatch()
    while _before:
        owner, name, found = _before.pop()
        if found is _ABSENT:
            delattr(owner, name)
        else:
            setattr(owner, name, found)


def _hook() -> None:
    """Replace what the adapter hooks into, and remember it."""
    from pytensor.compile.mode import Mode
    from pytensor.graph.basic import FrozenApply

    from cachegraph.pytensor import nutpie
    from cachegraph.pytensor.making import derivations
    from cachegraph.pytensor.making.traces import extract_stack
    from cachegraph.pytensor.stored.interning import ExactNodes

    _replace(import_module("pytensor.graph.utils"), "simple_extract_stack", extract_stack)
    _replace(Mode, "function_maker", property(_cached_maker))
    _replace(FrozenApply, "_cache", ExactNodes(FrozenApply._cache))
    _note_folding()
    rewriting = import_module(_INNER_REWRITING[0])
    looked_up = _with_lookup(rewriting.rewrite_inner_graph)
    for module in _INNER_REWRITING:
        _replace(import_module(module), "rewrite_inner_graph", looked_up)
    nutpie.patch()
    derivations.patch()


def _with_lookup(rewrite_inner_graph: Any) -> Any:
    """Return PyTensor's `rewrite_inner_graph` with the cache in front of the rewriting of each graph."""

    def rewrite_or_find(fgraph: Any, match: Any, rewrite: Any) -> Any:
        from cachegraph.pytensor.making.rewritten_graph import rewritten_quickly  # a hit rewrites nothing
        from cachegraph.pytensor.stored.inner_lookup import find_or_rewrite

        def rewrite_quickly(linker: Any, op: Any, node: Any, inner: Any, *, mode: Any) -> None:
            with rewritten_quickly(inner):
                rewrite(linker, op, node, inner, mode=mode)

        return rewrite_inner_graph(fgraph, match, partial(find_or_rewrite, rewrite_quickly))

    return rewrite_or_find


def _note_folding() -> None:
    """Have constant folding record the Ops that it runs; an attribute of the rewriter hides its method."""
    from pytensor.tensor.rewriting.basic import unconditional_constant_folding as folding

    from cachegraph.pytensor.describe.folding import recording_folds

    _before.append((folding, "transform", _ABSENT))
    folding.transform = recording_folds(folding.transform)


def _replace(owner: Any, name: str, hook: Any) -> None:
    _before.append((owner, name, vars(owner)[name]))
    setattr(owner, name, hook)


def _cached_maker(mode: Any) -> Any:
    from cachegraph.pytensor.making.maker import CachedMaker

    return CachedMaker


def _refuse_unknown() -> None:
    """Raise UnsupportedPyTensor unless this PyTensor is known."""
    import pytensor

    version: str = pytensor.__version__
    if ".".join(version.split(".")[:2]) not in KNOWN:
        raise UnsupportedPyTensor(
            f"PyTensor {version}",
            f"PyTensor {', '.join(f'{known}.x' for known in KNOWN)}",
            "install such a PyTensor or a newer cachegraph, or try install(force=True)",
        )
    for name, expected in _PARAMETERS.items():
        place = f"pytensor.{name}"
        item = _item(place)
        found = _parameters(item)
        if found == expected:
            continue
        wrapper = _wrapper(item, place)
        raise UnsupportedPyTensor(
            f"{place}({found}) in PyTensor {version}{wrapper and f', which {wrapper} has put there'}",
            f"{place}({expected})",
            "install cachegraph before the wrapper, use functools.wraps in it, or try install(force=True)"
            if wrapper
            else "install a PyTensor that has it or a newer cachegraph, or try install(force=True)",
        )


def _item(place: str) -> Any:
    """Return the object at `place`: a property's getter, a static method's function."""
    module, _, qualname = place.partition(":")
    found: Any = import_module(module)
    for name in qualname.split("."):
        found = inspect.getattr_static(found, name, None)
    if isinstance(found, property):
        found = found.fget
    return found.__func__ if isinstance(found, staticmethod) else found


def _parameters(item: Any) -> str:
    """Return the parameter names of a function (of a declared wrapped one), or what is there instead."""
    if type(item) is FunctionType and not vars(item):  # else another signature may have been put there
        names, others, named = inspect.getargs(item.__code__)
        return " ".join(filter(None, (*names, others, named)))
    try:
        return " ".join(inspect.signature(item).parameters)
    except (TypeError, ValueError):
        return f"a {type(item).__qualname__}"


def _wrapper(item: Any, place: str) -> str:
    """Return who put `item` at `place`, as module, name and file; empty if PyTensor did."""
    code = getattr(item, "__code__", None)
    module = item.__globals__.get("__name__") if code else type(item).__module__
    if item is None or module == place.partition(":")[0]:
        return ""
    name = code.co_qualname if code else type(item).__qualname__
    file = code.co_filename if code else getattr(sys.modules.get(module), "__file__", None)
    return f"{module}.{name} ({file or 'no file'})"
