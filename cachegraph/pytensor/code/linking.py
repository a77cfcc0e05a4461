"""What calls the compiled code of a function, made without its graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping, Sequence
from typing import Any

from pytensor.compile.inner_function import HasInnerFunction
from pytensor.link.basic import Container
from pytensor.link.utils import map_storage, raise_with_op

from cachegraph.pytensor.stored.optimized import FIRST_INPUT

Cell = list[Any]
"""A list of one value, which PyTensor's functions share."""


class StorageMap(MutableMapping[Any, Cell]):
    """Where the values of all variables of a graph are stored, as PyTensor's `storage_map`; asking loads the graph."""

    def __init__(self, make: Callable[[], dict[Any, Cell]]) -> None:
        self._make = make
        self._made: dict[Any, Cell] | None = None

    @property
    def _cells(self) -> dict[Any, Cell]:
        if self._made is None:
            self._made = self._make()
        return self._made

    def __getitem__(self, variable: Any) -> Cell:
        return self._cells[variable]

    def __setitem__(self, variable: Any, cell: Cell) -> None:
        self._cells[variable] = cell

    def __delitem__(self, variable: Any) -> None:
        del self._cells[variable]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._cells)

    def __len__(self) -> int:
        return len(self._cells)


class InnerFunctionNodes:
    """The nodes of a graph whose Ops run functions of their own; to go through them loads the graph."""

    def __init__(self, graph: Callable[[], Any]) -> None:
        self._graph = graph

    def __iter__(self) -> Iterator[Any]:
        return (node for node in self._graph().apply_nodes if isinstance(node.op, HasInnerFunction))


def output_cells(places: Sequence[int], inputs: Sequence[Cell]) -> list[Cell]:
    """The cells of a graph's results: those of inputs, or of results before them, where PyTensor shares them."""
    cells = list(inputs)
    for place in places:
        cells.append(cells[place - FIRST_INPUT] if place >= FIRST_INPUT else [None])
    return cells[len(inputs) :]


def link(
    code: Any,
    graph: Callable[[], Any],
    places: Sequence[int],
    inputs: Sequence[tuple[Any, Cell]],
    outputs: Sequence[Any],
    storage_map: dict[Any, Cell] | None,
    allow_gc: bool,
) -> tuple[Any, list[Any], list[Any]]:
    """What a linker's make_thunk returns: a thunk that calls `code`, and the containers of inputs and outputs.

    `inputs` are variables with their cells, `outputs` variables of the types of the results. `graph` loads the graph.
    """
    cells = [cell for _, cell in inputs]
    results = output_cells(places, cells)
    thunk = _thunk(code, graph, cells, results)
    thunk.inputs, thunk.outputs, thunk.lazy = cells, results, False
    thunk.jit_fn, thunk.allow_gc = code, allow_gc

    def all_cells() -> dict[Any, Cell]:
        loaded = graph()
        made: dict[Any, Cell] = map_storage(loaded, loaded.toposort(), cells, results, storage_map)[2]
        return made

    thunk.storage_map = StorageMap(all_cells)
    containers = [Container(variable, cell) for variable, cell in inputs]
    read_only = [Container(v, cell, readonly=True) for v, cell in zip(outputs, results, strict=True)]
    return thunk, containers, read_only


def _thunk(code: Any, graph: Callable[[], Any], inputs: list[Cell], outputs: list[Cell]) -> Any:
    """The loop of PyTensor's own thunk."""

    def thunk(code: Any = code, inputs: list[Cell] = inputs, outputs: list[Cell] = outputs) -> Any:
        try:
            results = code(*[cell[0] for cell in inputs])
        except Exception:
            _raise_with_op(graph, thunk)
        for cell, result in zip(outputs, results):  # noqa: B905  what strict adds is paid at each call
            cell[0] = result

    def thunk_of_nothing(code: Any = code, inputs: list[Cell] = inputs) -> Any:
        try:
            code(*[cell[0] for cell in inputs])
        except Exception:
            _raise_with_op(graph, thunk_of_nothing)
        return outputs

    return thunk if outputs else thunk_of_nothing


def _raise_with_op(graph: Callable[[], Any], thunk: Any) -> None:
    """Raise what is being handled, with what PyTensor says about the graph it comes from."""
    loaded = graph()
    nodes = [output.owner for output in loaded.outputs if output.owner is not None]
    if not nodes:
        raise
    raise_with_op(loaded, nodes[0], thunk)
