"""Walks over graphs: ancestors, inputs, topological order. All are iterative: a graph may be 100,000 nodes deep."""

from __future__ import annotations

from collections.abc import (
    Callable,
    Collection,
    Container,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Set,
)
from typing import TypeVar

from engine.graph.apply import Apply
from engine.graph.variables import Constant, Variable

T = TypeVar("T")


def walk(nodes: Iterable[T], expand: Callable[[T], Iterable[T] | None]) -> Generator[T, None, None]:
    """Each thing reachable from `nodes` through `expand`, once, depth first."""
    stack = list(nodes)[::-1]
    seen: set[int] = set()
    keep: list[T] = []
    while stack:
        item = stack.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        keep.append(item)
        yield item
        found = expand(item)
        if found:
            stack.extend(reversed(list(found)))


def ancestors(
    graphs: Iterable[Variable], blockers: Collection[Variable] | None = None
) -> Generator[Variable, None, None]:
    """`graphs` and all variables that they are computed from, not looking behind `blockers`."""
    blocked = set(blockers or ())

    def expand(variable: Variable) -> Iterable[Variable] | None:
        if variable.owner is None or variable in blocked:
            return None
        return variable.owner.inputs

    yield from walk(graphs, expand)


def graph_inputs(
    graphs: Iterable[Variable], blockers: Collection[Variable] | None = None
) -> Generator[Variable, None, None]:
    """The variables without an owner (constants too) that `graphs` are computed from."""
    yield from (variable for variable in ancestors(graphs, blockers) if variable.owner is None)


def explicit_graph_inputs(graph: Variable | Iterable[Variable]) -> Generator[Variable, None, None]:
    """The inputs that a caller must give: neither constants nor variables that hold a value of their own."""
    graphs = [graph] if isinstance(graph, Variable) else graph
    for variable in graph_inputs(graphs):
        if not isinstance(variable, Constant) and not hasattr(variable, "get_value"):
            yield variable


def vars_between(ins: Collection[Variable], outs: Iterable[Variable]) -> Generator[Variable, None, None]:
    """The variables that `outs` are computed from, `ins` and `outs` included, nothing behind `ins`."""
    yield from ancestors(outs, ins)


def applys_between(ins: Collection[Variable], outs: Iterable[Variable]) -> Iterator[Apply]:
    """The nodes between `ins` and `outs`, in topological order."""
    return iter(io_toposort(ins, outs))


def io_toposort(inputs: Collection[Variable], outputs: Iterable[Variable]) -> list[Apply]:
    """The nodes that compute `outputs` from `inputs`, each after those it needs.

    The order is fixed by structure alone: depth first from the outputs, inputs from left to right.
    """
    done: set[Apply] = set()
    blocked = inputs if isinstance(inputs, Set | Mapping) else set(inputs)
    order: list[Apply] = []
    for output in outputs:
        if output.owner is None or output in blocked or output.owner in done:
            continue
        _append_ancestors(output.owner, blocked, done, order)
    return order


def _append_ancestors(
    root: Apply, blocked: Container[Variable], done: set[Apply], order: list[Apply]
) -> None:
    """Append to `order` the nodes that `root` needs, then `root`; refuses (ValueError) a cycle."""
    stack: list[tuple[Apply, Iterator[Variable]]] = [(root, iter(root.inputs))]
    open_nodes = {root}
    while stack:
        node, remaining = stack[-1]
        for variable in remaining:
            owner = variable.owner
            if owner is None or owner in done or variable in blocked:
                continue
            if owner in open_nodes:
                raise ValueError(f"Ordering a graph: {owner} needs its own output; the graph has a cycle")
            open_nodes.add(owner)
            stack.append((owner, iter(owner.inputs)))
            break
        else:
            stack.pop()
            open_nodes.discard(node)
            done.add(node)
            order.append(node)


def toposort(graphs: Sequence[Variable], blockers: Collection[Variable] | None = None) -> list[Apply]:
    """The nodes that `graphs` are computed from, in the order of `io_toposort`, not looking behind `blockers`."""
    return io_toposort(blockers or (), graphs)
