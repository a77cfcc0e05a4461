"""Iterative walks over graphs, which may be 100,000 nodes deep: ancestors, inputs, topological order."""

from __future__ import annotations

from collections import deque
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
from typing import Any, Literal, TypeVar, cast, overload

from engine.graph.apply import Apply
from engine.graph.variables import Constant, Variable, is_named

T = TypeVar("T")
Orderings = Mapping[Apply, Iterable[Apply | Variable]]


@overload
def walk(
    nodes: Iterable[T],
    expand: Callable[[T], Iterable[T] | None],
    bfs: bool = True,
    return_children: Literal[False] = False,
) -> Generator[T, None, None]: ...
@overload
def walk(
    nodes: Iterable[T], expand: Callable[[T], Iterable[T] | None], bfs: bool, return_children: Literal[True]
) -> Generator[tuple[T, Iterable[T] | None], None, None]: ...
def walk(
    nodes: Iterable[T],
    expand: Callable[[T], Iterable[T] | None],
    bfs: bool = True,
    return_children: bool = False,
) -> Generator[T | tuple[T, Iterable[T] | None], None, None]:
    """Yield each item reachable from `nodes` through `expand` once, breadth or depth first.

    Depth first goes from right to left, as PyTensor does. With `return_children` yield pairs of an item
    and its children.
    """
    seen: set[T] = set()
    waiting = deque(nodes)
    while waiting:
        item = waiting.popleft() if bfs else waiting.pop()
        if item in seen:
            continue
        seen.add(item)
        if not return_children:
            yield item
        found = expand(item)
        children = None if found is None else list(found)
        if return_children:
            yield item, children
        if children:
            waiting.extend(children)


def ancestors(
    graphs: Iterable[Variable], blockers: Iterable[Variable] | None = None
) -> Generator[Variable, None, None]:
    """Yield `graphs` and all variables that they are computed from, except those behind `blockers`.

    Depth first, from right to left, as PyTensor does.
    """
    blocked = frozenset(blockers or ())
    seen: set[Variable] = set()
    stack = list(graphs)
    while stack:
        variable = stack.pop()
        if variable in seen:
            continue
        seen.add(variable)
        yield variable
        if variable.owner is not None and variable not in blocked:
            stack.extend(variable.owner.inputs)


def apply_ancestors(
    graphs: Iterable[Variable], blockers: Iterable[Variable] | None = None
) -> Generator[Apply, None, None]:
    """Yield the nodes that `graphs` are computed from, except those behind `blockers`, each once.

    They come in the order of `ancestors`.
    """
    blocked = frozenset(blockers or ())
    seen: set[Apply | None] = {None}
    for variable in ancestors(graphs, blocked):
        node = None if variable in blocked else variable.owner
        if node not in seen:
            seen.add(node)
            yield cast(Apply, node)


def graph_inputs(
    graphs: Iterable[Variable], blockers: Iterable[Variable] | None = None
) -> Generator[Variable, None, None]:
    """Yield the variables without an owner (constants too) that `graphs` are computed from."""
    return (variable for variable in ancestors(graphs, blockers) if variable.owner is None)


def explicit_graph_inputs(graph: Variable | Iterable[Variable]) -> Generator[Variable, None, None]:
    """Yield the inputs that a caller must give: neither constants nor variables with a value of their own."""
    for variable in graph_inputs([graph] if isinstance(graph, Variable) else graph):
        if not isinstance(variable, Constant) and not hasattr(variable, "get_value"):
            yield variable


def vars_between(ins: Iterable[Variable], outs: Iterable[Variable]) -> Generator[Variable, None, None]:
    """Yield the variables that `outs` are computed from, with `ins` and `outs`, nothing behind `ins`.

    All outputs of a node are included, also unused ones.
    """
    blocked = frozenset(ins)

    def expand(variable: Variable) -> Iterable[Variable] | None:
        if variable.owner is None or variable in blocked:
            return None
        return (*variable.owner.outputs, *variable.owner.inputs)

    return walk(outs, expand, bfs=False)


def orphans_between(ins: Iterable[Variable], outs: Iterable[Variable]) -> Generator[Variable, None, None]:
    """Yield the variables without an owner, constants too, that `outs` need besides `ins`."""
    known = frozenset(ins)
    return (v for v in vars_between(known, outs) if v.owner is None and v not in known)


def applys_between(ins: Iterable[Variable], outs: Iterable[Variable]) -> Generator[Apply, None, None]:
    """Yield the nodes between `ins` and `outs`, each once, in the order of `vars_between`."""
    known = frozenset(ins)
    nodes = (variable.owner for variable in vars_between(known, outs) if variable not in known)
    yield from dict.fromkeys(node for node in nodes if node is not None)


def apply_depends_on(apply: Apply, depends_on: Apply | Iterable[Apply]) -> bool:
    """Return True if `apply` is, or needs, one of the nodes `depends_on`."""
    wanted = {depends_on} if isinstance(depends_on, Apply) else set(depends_on)
    return apply in wanted or any(variable.owner in wanted for variable in ancestors(apply.inputs))


def variable_depends_on(variable: Variable, depends_on: Variable | Iterable[Variable]) -> bool:
    """Return True if `variable` is, or is computed from, one of the variables `depends_on`."""
    wanted = {depends_on} if isinstance(depends_on, Variable) else set(depends_on)
    return any(found in wanted for found in ancestors([variable]))


def truncated_graph_inputs(
    outputs: Sequence[Variable], ancestors_to_include: Iterable[Variable] | None = None
) -> list[Variable]:
    """Return the inputs of the subgraph from `ancestors_to_include` to `outputs`.

    They are those of `ancestors_to_include` that `outputs` need, and the variables closest to `outputs`
    that do not depend on them. Without `ancestors_to_include` they are the outputs.
    """
    if not ancestors_to_include:
        return list(dict.fromkeys(outputs))
    included = frozenset(ancestors_to_include)
    dependent = _dependent(outputs, included)
    found: list[Variable] = []
    seen: set[Variable] = set()
    blockers = set(included)
    candidates = list(outputs)
    while candidates:
        variable = candidates.pop()
        if variable in seen:
            continue
        seen.add(variable)
        if variable in included:
            found.append(variable)
            if variable.owner is not None and any(v in dependent for v in variable.owner.inputs):
                candidates.extend(variable.owner.inputs)
        elif variable in dependent or variable_depends_on(variable, blockers):
            assert variable.owner is not None
            candidates.extend(variable.owner.inputs)
        else:
            found.append(variable)
        blockers.add(variable)
    return found


def _dependent(outputs: Iterable[Variable], included: Set[Variable]) -> set[Variable]:
    """Return the variables that are, or depend on, one of `included`."""
    dependent = set(included)
    for node in io_toposort((), outputs):
        if any(variable in dependent for variable in node.inputs):
            dependent.update(node.outputs)
    return dependent


def get_var_by_name(graphs: Iterable[Variable], target_var_id: str) -> tuple[Variable, ...]:
    """Return the variables whose name or automatic name is `target_var_id` among `graphs`, their ancestors
    and the inner graphs of users' Ops, breadth first.

    Inner graphs of the engine's Ops are frozen: their variables have no names.
    """

    def expand(variable: Variable) -> Iterable[Variable] | None:
        if variable.owner is None:
            return None
        return [*variable.owner.inputs, *getattr(inner_graph(variable.owner.op), "outputs", ())]

    return tuple([variable for variable in walk(graphs, expand) if is_named(variable, target_var_id)])


def general_toposort(outputs: Iterable[T], deps: Callable[[T], Iterable[T] | None]) -> list[T]:
    """Return `outputs` and all that they depend on through `deps`, each item after its dependencies.

    Among items that are ready, those come first that became ready first. Refuse (ValueError) a cycle.
    """
    needed = {item: dict.fromkeys(found or ()) for item, found in walk(outputs, deps, False, True)}
    users: dict[T, list[T]] = {}
    for item, dependencies in needed.items():
        for dependency in dependencies:
            users.setdefault(dependency, []).append(item)
    waiting = {item: len(dependencies) for item, dependencies in needed.items()}
    order = [item for item, count in waiting.items() if not count]
    for item in order:
        for user in users.get(item, ()):
            waiting[user] -= 1
            if not waiting[user]:
                order.append(user)
    if len(order) != len(needed):
        raise ValueError(f"Ordering {len(needed)} items: the graph contains cycles")
    return order


def io_toposort(
    inputs: Iterable[Variable], outputs: Iterable[Variable], orderings: Orderings | None = None
) -> list[Apply]:
    """Return the nodes that compute `outputs` from `inputs`, each after those it needs.

    Structure alone fixes the order: depth first from the outputs, inputs from left to right. `orderings`
    lists further nodes or variables that must come before a node. Refuse (ValueError) a cycle.
    """
    blocked: Container[Variable] = inputs if isinstance(inputs, Set | Mapping) else set(inputs)
    done: set[Any] = {None}  # None is the owner of inputs and constants: nothing to wait for
    order: list[Apply] = []
    for output in outputs:
        if output.owner not in done and output not in blocked:
            _append_ancestors(output.owner, blocked, orderings or {}, done, order)
    return order


def _append_ancestors(
    root: Any, blocked: Container[Variable], orderings: Orderings, done: set[Any], order: list[Apply]
) -> None:
    """Append to `order` the nodes that `root` needs, then `root`; refuse (ValueError) a cycle."""
    stack: list[Any] = []
    node, remaining = root, _needed(root, orderings)
    opened = {root}
    while True:
        for variable in remaining:
            owner: Any = variable.owner
            if owner in done or variable in blocked:
                continue
            if owner in opened:
                raise ValueError(f"Ordering a graph: {owner} needs its own output; the graph has a cycle")
            stack.append((node, remaining))
            node, remaining = owner, iter(owner.inputs) if not orderings else _needed(owner, orderings)
            opened.add(node)
            break
        else:
            done.add(node)
            order.append(node)
            if not stack:
                return
            node, remaining = stack.pop()


def _needed(node: Apply, orderings: Orderings) -> Iterator[Variable]:
    """Yield the variables that `node` waits for: its inputs, and an output of each node ordered before it."""
    before = orderings.get(node, ())
    yield from node.inputs
    yield from (item if isinstance(item, Variable) else item.outputs[0] for item in before)


def toposort(graphs: Iterable[Variable], blockers: Collection[Variable] | None = None) -> list[Apply]:
    """Return the nodes that `graphs` are computed from, except those behind `blockers`."""
    return io_toposort(blockers or (), graphs)


def inner_graph(op: Any) -> Any:
    """Return the inner graph of `op`, or of the scalar Op that it applies; None if there is none."""
    return getattr(op, "fgraph", None) or getattr(getattr(op, "scalar_op", None), "fgraph", None)
