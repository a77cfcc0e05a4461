"""Linking a graph: by a linker whose code is kept in the store, or to code that is there already.

The linker is numba's (numba_linking.py, imported when it is needed), or that of another backend.
"""

from __future__ import annotations

from collections import UserDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import Any

from pytensor.compile.inner_function import HasInnerFunction
from pytensor.configdefaults import config
from pytensor.link.basic import Container
from pytensor.link.utils import map_storage, raise_with_op

from cachegraph.pytensor.backends import backend_of
from cachegraph.pytensor.describe.flags import IN_KEY
from cachegraph.pytensor.stored.stored_graph import FIRST_INPUT, StoredGraph

_REWRITING_FLAGS = frozenset(
    name for name in IN_KEY if name in {"cxx", "mode"} or name.startswith("optimizer")
)

Cell = list[Any]
"""A list of one value: the storage that PyTensor's functions share."""


def keeping_linker(linker: Any, graph: StoredGraph) -> Any:
    """Return a linker that does what `linker` does, and keeps the code of `graph` in the store."""
    if backend_of(linker) is not None:
        return linker.keeping(graph)
    from cachegraph.pytensor.code.numba_linking import StoredLinker

    return StoredLinker.like(linker, graph.description, graph.basis)


def stored_code(linker: Any, graph: StoredGraph, link: Callable[[], Any]) -> Any:
    """Return the code of `graph` as the store has it, or None if it has none.

    If numba's code is not there, but can be stored, `link` is called at the first call.
    """
    if backend_of(linker) is not None:
        return linker.stored_code(graph)
    from cachegraph.pytensor.code import numba_linking

    return numba_linking.stored_code(graph, link)


def linking_flags() -> dict[str, Any]:
    """Return PyTensor's flags that linking may depend on, with their present values."""
    return {
        name: getattr(config, name) for name in IN_KEY if name not in _REWRITING_FLAGS and name != "linker"
    }


def link_by_pytensor(
    graph: Any, linker: Any, flags: Mapping[str, Any], cells: Sequence[Cell] | None = None
) -> Any:
    """Return the code of `graph` as `linker` makes it, under `flags`, those of the function's making.

    `cells` is the storage of the inputs, which a backend may look at.
    """
    changed = {name: value for name, value in flags.items() if getattr(config, name) != value}
    nodes = linker.schedule(graph)
    inputs, outputs, storage_map = map_storage(graph, nodes, cells)
    with _storing(linker), config.change_flags(traceback__limit=config.traceback__compile_limit, **changed):
        converted = linker.fgraph_convert(
            graph, order=nodes, input_storage=inputs, output_storage=outputs, storage_map=storage_map
        )
        return linker.jit_compile(converted)


def _storing(linker: Any) -> AbstractContextManager[None]:
    """Return the context in which the code of single Ops is stored: numba's."""
    if backend_of(linker) is not None:
        return nullcontext()
    from cachegraph.pytensor.code.numba_linking import storing_op_code

    return storing_op_code()


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
    linker: Any,
) -> tuple[Any, list[Any], list[Any]]:
    """Return what a linker's make_thunk does: a thunk that calls `code`, the input and the output containers.

    `inputs` are variables with their cells, `outputs` variables of the results' types. `graph` loads the
    graph. Errors of `code` name the nodes of the graph if it is a backend's; else the thunk's errors do.
    """
    cells = [cell for _, cell in inputs]
    results = output_cells(sources, cells)
    is_of_backend = backend_of(linker) is not None
    thunk = backend_thunk(code, cells, results) if is_of_backend else _thunk(code, graph, cells, results)
    thunk.inputs, thunk.outputs, thunk.lazy = cells, results, False
    thunk.jit_fn, thunk.allow_gc = code, linker.allow_gc

    def all_cells() -> dict[Any, Cell]:
        loaded = graph()
        made: dict[Any, Cell] = map_storage(loaded, loaded.toposort(), cells, results, storage_map)[2]
        return made

    thunk.storage_map = LazyStorageMap(all_cells)
    containers = [Container(variable, cell) for variable, cell in inputs]
    read_only = [Container(v, cell, readonly=True) for v, cell in zip(outputs, results, strict=True)]
    return thunk, containers, read_only


def backend_thunk(code: Any, inputs: Sequence[Cell], outputs: Sequence[Cell]) -> Any:
    """Return a thunk that raises what the code of a backend raises.

    `code.bound(inputs)` is called once, for the function's storage; what it returns gives, without arguments,
    the results of a call.
    """
    call = code.bound(inputs)

    def thunk() -> None:
        for cell, result in zip(outputs, call(), strict=True):
            cell[0] = result

    return thunk


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
