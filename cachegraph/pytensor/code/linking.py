"""Linking a graph: by PyTensor's numba linker with its code kept in the store, or to code that is there
already.

Whether the code of a function can be stored at all is an entry of its own (level "numba"): empty, or the
reason why not. It is written when PyTensor first turns the graph into numba functions, and read before it
does so again.
"""

# mypy: disable-error-code="no-untyped-call"
from __future__ import annotations

import copy
from collections import UserDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

from numba.core.dispatcher import Dispatcher
from pytensor.compile.inner_function import HasInnerFunction
from pytensor.configdefaults import config
from pytensor.link.basic import Container
from pytensor.link.numba.linker import NumbaLinker
from pytensor.link.utils import map_storage, raise_with_op

from cachegraph.cache import Artifact, Found, default_cache
from cachegraph.fingerprint.encoding import encode
from cachegraph.key import CacheKey
from cachegraph.pytensor.code.op_code import storing_op_code
from cachegraph.pytensor.code.stored_function import stored_function
from cachegraph.pytensor.describe.basis import Basis
from cachegraph.pytensor.describe.flags import IN_KEY
from cachegraph.pytensor.stored.stored_graph import FIRST_INPUT

UNKEYED = "without a key"
"""The reason if PyTensor itself says that code cannot be cached, most often because it calls Python."""

_REWRITING_FLAGS = frozenset(
    name for name in IN_KEY if name in {"cxx", "mode"} or name.startswith("optimizer")
)

Cell = list[Any]
"""A list of one value: the storage that PyTensor's functions share."""


class StoredLinker(NumbaLinker):
    """A numba linker whose code is looked up in the store by `description`, and kept there.

    If the store should have the code, the graph is turned into numba functions only after a miss. Otherwise
    this happens at once, with the errors and warnings that it gives.
    """

    description: bytes
    basis: Basis
    expects: bool

    @classmethod
    def like(cls, linker: NumbaLinker, description: bytes, basis: Basis) -> StoredLinker:
        """Return a linker that does what `linker` does, with its code under `description`."""
        made: StoredLinker = copy.copy(linker)
        made.__class__ = cls
        made.description, made.basis, made.expects = description, basis, expects_code(description)
        return made

    def fgraph_convert(self, fgraph: Any, **kwargs: Any) -> Any:
        """Return the converted graph, or a function that converts it; `jit_compile` takes either."""
        return (
            partial(self._converted, fgraph, **kwargs) if self.expects else self._converted(fgraph, **kwargs)
        )

    def jit_compile(self, fn: Any) -> Any:
        """Return a dispatcher whose code is or will be in the store, if possible; else PyTensor's own."""
        if self.expects:
            linked = partial(self._linked, fn)
            return stored_function(self.description, linked, self.basis)
        dispatcher = super().jit_compile(fn)
        if not isinstance(dispatcher, Dispatcher):
            # NUMBA_DISABLE_JIT: there is no code to keep.
            return dispatcher
        is_keyed = fn[1] is not None
        _record_linking(self.description, is_keyed)
        return stored_function(self.description, lambda: dispatcher, self.basis) if is_keyed else dispatcher

    def _linked(self, convert: Any) -> Any:
        return super().jit_compile(convert())

    def _converted(self, fgraph: Any, **kwargs: Any) -> Any:
        with storing_op_code():
            return super().fgraph_convert(fgraph, **kwargs)


def expects_code(description: bytes) -> bool:
    """Return True if the store has, or will have, the code of this function; count a bypass if it cannot."""
    cache = default_cache()
    found = cache.find(_key(description), lambda payload: payload == b"")
    if isinstance(found, Found) and not found.value:
        cache.note_bypass("numba", UNKEYED)
    return isinstance(found, Found) and found.value


def _record_linking(description: bytes, is_keyed: bool) -> None:
    reason = "" if is_keyed else UNKEYED
    summary = f"how a graph is linked: {'its code is kept' if is_keyed else 'its code cannot be kept'}"
    default_cache().store(
        _key(description), Artifact(reason.encode(), seconds={"link": 0.0}, summary=summary)
    )


def _key(description: bytes) -> CacheKey:
    return CacheKey.build("numba", {"scheme": encode(("pytensor linking", 1)), "linked": description})


def linking_flags() -> dict[str, Any]:
    """Return PyTensor's flags that linking may depend on, with their present values."""
    return {
        name: getattr(config, name) for name in IN_KEY if name not in _REWRITING_FLAGS and name != "linker"
    }


def link_by_pytensor(graph: Any, linker: Any, flags: Mapping[str, Any]) -> Any:
    """Return PyTensor's dispatcher of `graph`, linked under `flags`, those of the function's making."""
    changed = {name: value for name, value in flags.items() if getattr(config, name) != value}
    nodes = linker.schedule(graph)
    inputs, outputs, storage_map = map_storage(graph, nodes)
    with storing_op_code(), config.change_flags(traceback__limit=config.traceback__compile_limit, **changed):
        converted = linker.fgraph_convert(
            graph, order=nodes, input_storage=inputs, output_storage=outputs, storage_map=storage_map
        )
        return linker.jit_compile(converted)


class LazyStorageMap(UserDict[Any, Cell]):
    """PyTensor's `storage_map`, a cell for each variable of a graph; the first access loads the graph."""

    def __init__(self, make: Callable[[], dict[Any, Cell]]) -> None:
        self._make = make  # UserDict would fill `data` now

    @cached_property
    def data(self) -> dict[Any, Cell]:  # type: ignore[override]
        """The cells, made at the first access."""
        return self._make()


class InnerFunctionNodes:
    """The nodes of a graph whose Ops run functions of their own; iterating loads the graph."""

    def __init__(self, graph: Callable[[], Any]) -> None:
        self._graph = graph

    def __iter__(self) -> Iterator[Any]:
        return (node for node in self._graph().apply_nodes if isinstance(node.op, HasInnerFunction))


def output_cells(sources: Sequence[int], inputs: Sequence[Cell]) -> list[Cell]:
    """Return a cell per result: that of the input or earlier result that PyTensor shares, or a new one."""
    cells = list(inputs)
    for source in sources:
        cells.append(cells[source - FIRST_INPUT] if source >= FIRST_INPUT else [None])
    return cells[len(inputs) :]


def link(
    code: Any,
    graph: Callable[[], Any],
    sources: Sequence[int],
    inputs: Sequence[tuple[Any, Cell]],
    outputs: Sequence[Any],
    storage_map: dict[Any, Cell] | None,
    allow_gc: bool,
) -> tuple[Any, list[Any], list[Any]]:
    """Return what a linker's make_thunk does: a thunk that calls `code`, the input and the output containers.

    `inputs` are variables with their cells, `outputs` variables of the results' types. `graph` loads the
    graph.
    """
    cells = [cell for _, cell in inputs]
    results = output_cells(sources, cells)
    thunk = _thunk(code, graph, cells, results)
    thunk.inputs, thunk.outputs, thunk.lazy = cells, results, False
    thunk.jit_fn, thunk.allow_gc = code, allow_gc

    def all_cells() -> dict[Any, Cell]:
        loaded = graph()
        made: dict[Any, Cell] = map_storage(loaded, loaded.toposort(), cells, results, storage_map)[2]
        return made

    thunk.storage_map = LazyStorageMap(all_cells)
    containers = [Container(variable, cell) for variable, cell in inputs]
    read_only = [Container(v, cell, readonly=True) for v, cell in zip(outputs, results, strict=True)]
    return thunk, containers, read_only


def _thunk(code: Any, graph: Callable[[], Any], inputs: list[Cell], outputs: list[Cell]) -> Any:
    """Return a thunk with the same loop as PyTensor's own."""

    def thunk(code: Any = code, inputs: list[Cell] = inputs, outputs: list[Cell] = outputs) -> Any:
        try:
            results = code(*[cell[0] for cell in inputs])
        except Exception:
            _raise_with_op(graph, thunk)
        for cell, result in zip(outputs, results):  # noqa: B905  strict would cost time at each call
            cell[0] = result

    def thunk_without_results(code: Any = code, inputs: list[Cell] = inputs) -> Any:
        try:
            code(*[cell[0] for cell in inputs])
        except Exception:
            _raise_with_op(graph, thunk_without_results)
        return outputs

    return thunk if outputs else thunk_without_results


def _raise_with_op(graph: Callable[[], Any], thunk: Any) -> None:
    """Re-raise the exception in hand with PyTensor's report on the graph it comes from."""
    loaded = graph()
    nodes = [output.owner for output in loaded.outputs if output.owner is not None]
    if not nodes:
        raise
    raise_with_op(loaded, nodes[0], thunk)
