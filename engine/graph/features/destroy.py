"""Features for Ops that overwrite inputs: `DestroyHandler`, `Supervisor` and `NoOutputFromInplace`.

The DestroyHandler finds the order of execution that such Ops require, and refuses graphs without one. The
others ask it, to forbid overwriting for some variables; without it they forbid nothing.

An Op declares with `view_map` {output: [inputs]} that an output may share the memory of inputs, and with
`destroy_map` {output: [inputs]} that an output overwrites inputs. The roots of a variable are the variables
at the end of its chain of views; all views of a root may share its memory. A node that overwrites an input
(a destroyer) must run after all other nodes that read memory which the input may share. The handler refuses
a graph if

    two nodes overwrite the same root;
    a node overwrites a constant, or a variable whose tag says `indestructible`;
    a destroyer reads the same memory through another input, unless its Op tolerates it
    (`destroyhandler_tolerate_same` [(overwritten, other)] if both are the same variable,
    `destroyhandler_tolerate_aliased` in any case);
    these orders and the graph together have a cycle.

The overwritten memory then belongs to the output, which is a root itself.

After a change the handler checks only destroyers that share memory with the changed nodes again. It finds
cycles by ranks (see `engine.graph.order`) over the edges of the graph and the orders together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from cachegraph.named_tuples import NamedTuple
from engine.errors import InconsistencyError
from engine.graph.apply import Apply
from engine.graph.feature import AlreadyThere, Feature, refuse_second, register_feature_callback, serve_one
from engine.graph.features.listeners import Bookkeeper
from engine.graph.order import GAP, raise_ranks
from engine.graph.tables import Output
from engine.graph.variables import Constant, Variable

if TYPE_CHECKING:
    from engine.graph.editable import EditableGraph


class _Destruction(NamedTuple):
    """The roots that a node overwrites, and the nodes that must run before it."""

    roots: tuple[Variable, ...]
    before: tuple[Apply, ...]


class DestroyHandler(Bookkeeper):
    """An index of destroyers, `destroyers(variable)` and `has_destroyers(variables)`, and their order."""

    provides = ("destroyers", "has_destroyers")
    attribute = "destroy_handler"

    def __init__(self) -> None:
        super().__init__()
        self._forget_all()

    def _forget_all(self) -> None:
        self._known: dict[Apply, _Destruction] = {}  # destroyers that were checked
        self._stale: dict[Apply, None] = {}  # destroyers to check (again)
        self._by_root: dict[Variable, dict[Apply, None]] = {}
        self._after: dict[Apply, dict[Apply, None]] = {}  # the destroyers that must run after a node
        self._ranks: dict[Apply, int] = {}
        self._moved: dict[Apply, None] = {}  # nodes whose ranks must be compared with their neighbours'

    def clone(self) -> DestroyHandler:
        return type(self)()

    @register_feature_callback
    def on_attach(self, fgraph: EditableGraph) -> None:
        refuse_second(fgraph, self)
        super().on_attach(fgraph)

    @register_feature_callback
    def on_detach(self, fgraph: EditableGraph) -> None:
        self._forget_all()
        self.fgraph = None

    @register_feature_callback
    def on_import(self, fgraph: EditableGraph, node: Apply, reason: str | None) -> None:
        """Mark `node` and the destroyers of its inputs for checking."""
        self._ranks[node] = GAP + max(
            [self._ranks[v.owner] for v in node.inputs if v.owner in self._ranks], default=0
        )
        self._moved[node] = None
        if node.op.destroy_map:
            self._stale[node] = None
        self._touch(node, node.inputs)

    @register_feature_callback
    def on_prune(self, fgraph: EditableGraph, node: Apply, reason: str | None) -> None:
        self._touch(node, node.inputs)
        self._forget(node)
        self._stale.pop(node, None)
        self._moved.pop(node, None)
        del self._ranks[node]

    @register_feature_callback
    def on_change_input(
        self, fgraph: EditableGraph, node: Apply, i: int, old: Variable, new: Variable, reason: str | None
    ) -> None:
        """Mark `node` and the destroyers of its old and new input for checking."""
        if isinstance(node.op, Output):
            return
        self._moved[node] = None
        if node.op.destroy_map:
            self._stale[node] = None
        self._touch(node, (old, new))

    def _touch(self, node: Apply, variables: Iterable[Variable]) -> None:
        """Mark the destroyers whose readers change when `node` starts or stops using `variables`."""
        for variable in variables:
            for root in roots_of(variable):
                self._stale.update(self._by_root.get(root, {}))
        if node.op.view_map and self.fgraph is not None:
            for view in views_of(self.fgraph, node.outputs):
                self._stale.update(
                    (c, None) for c, _ in self.fgraph.clients.get(view, ()) if c.op.destroy_map
                )

    def _forget(self, node: Apply) -> None:
        """Remove what is known of a destroyer."""
        known = self._known.pop(node, None)
        if known is None:
            return
        for root in known.roots:
            self._by_root[root].pop(node, None)
            if not self._by_root[root]:
                del self._by_root[root]
        for before in known.before:
            waiting = self._after.get(before, {})
            waiting.pop(node, None)
            if not waiting:
                self._after.pop(before, None)

    def _refresh(self, fgraph: EditableGraph) -> None:
        """Check the stale destroyers; one that is refused stays stale."""
        for node in list(self._stale):
            self._forget(node)
            roots = tuple(dict.fromkeys(r for v in _overwritten(node) for r in roots_of(v)))
            for root in roots:
                self._by_root.setdefault(root, {})[node] = None
            self._known[node] = _Destruction(roots, ())
        for node in list(self._stale):
            before = self._checked_readers(fgraph, node)
            self._known[node] = self._known[node]._replace(before=before)
            for reader in before:
                self._after.setdefault(reader, {})[node] = None
            self._moved[node] = None
            del self._stale[node]

    def _checked_readers(self, fgraph: EditableGraph, node: Apply) -> tuple[Apply, ...]:
        """Return the nodes that must run before the destroyer `node`; refuse what it may not overwrite."""
        for root in self._known[node].roots:
            if isinstance(root, Constant) or getattr(root.tag, "indestructible", False):
                raise InconsistencyError(
                    f"Ordering a graph: {node} overwrites {root}, which must not be overwritten"
                )
            others = [other for other in self._by_root[root] if other is not node]
            if others:
                raise InconsistencyError(f"Ordering a graph: both {node} and {others[0]} overwrite {root}")
        _check_aliases(node)
        readers: dict[Apply, None] = {}
        for view in views_of(fgraph, self._known[node].roots):
            readers.update((c, None) for c, _ in fgraph.clients[view] if not isinstance(c.op, Output))
        readers.pop(node, None)
        return tuple(readers)

    @register_feature_callback
    def orderings(self, fgraph: EditableGraph) -> dict[Apply, list[Apply]]:
        """Return, for each destroyer, the nodes that must run before it; refuse a wrong destroyer."""
        self._refresh(fgraph)
        return {node: list(known.before) for node, known in self._known.items() if known.before}

    @register_feature_callback
    def on_validate(self, fgraph: EditableGraph) -> None:
        """Refuse a graph in which every order reads memory after it was overwritten."""
        self._refresh(fgraph)

        def successors(node: Apply) -> Iterator[Apply]:
            yield from fgraph.nodes_that_need(node)
            yield from self._after.get(node, ())

        raise_ranks(self._ranks, list(self._moved_edges(fgraph)), successors)
        self._moved.clear()

    def _moved_edges(self, fgraph: EditableGraph) -> Iterator[tuple[Apply, Apply]]:
        """Yield the edges that may disagree with the ranks: those of imported, restored or changed nodes."""
        for node in self._moved:
            for needing in fgraph.nodes_that_need(node):
                if needing in self._ranks:
                    yield node, needing
            for variable in node.inputs:
                if variable.owner in self._ranks:
                    yield variable.owner, node
            if node in self._known:
                for before in self._known[node].before:
                    yield before, node

    def destroyers(self, fgraph: EditableGraph, variable: Variable) -> list[Apply]:
        """Return the nodes that overwrite `variable` or memory that it may share."""
        self._refresh(fgraph)
        return list(
            dict.fromkeys(node for root in roots_of(variable) for node in self._by_root.get(root, ()))
        )

    def has_destroyers(self, fgraph: EditableGraph, variables: Iterable[Variable]) -> bool:
        """Return True if any of `variables` has a destroyer."""
        return any(self.destroyers(fgraph, variable) for variable in variables)


def roots_of(variable: Variable) -> Iterator[Variable]:
    """Yield the variables at the end of the chains of views of `variable`: itself, if it views nothing."""
    waiting, seen = [variable], {variable}
    while waiting:
        view = waiting.pop()
        viewed = [] if view.owner is None else view.owner.op.view_map.get(view.index or 0, [])
        if view.owner is None or not viewed:
            yield view
            continue
        new = [view.owner.inputs[i] for i in viewed if view.owner.inputs[i] not in seen]
        seen.update(new)
        waiting += new


def views_of(fgraph: EditableGraph, roots: Iterable[Variable]) -> list[Variable]:
    """Return `roots` and all variables of the graph that view one of them, directly or through others."""
    found = dict.fromkeys(roots)
    waiting = list(found)
    while waiting:
        for client, index in fgraph.clients.get(waiting.pop(), ()):
            for output, viewed in client.op.view_map.items():
                view = client.outputs[output]
                if index in viewed and view not in found:
                    found[view] = None
                    waiting.append(view)
    return list(found)


def _overwritten(node: Apply) -> list[Variable]:
    return [node.inputs[i] for inputs in node.op.destroy_map.values() for i in inputs]


def _check_aliases(node: Apply) -> None:
    """Refuse a node that reads what it overwrites through another input, unless its Op tolerates that."""
    op = node.op
    same = set(getattr(op, "destroyhandler_tolerate_same", ()))
    aliased = set(getattr(op, "destroyhandler_tolerate_aliased", ()))
    for overwritten in sorted({i for inputs in op.destroy_map.values() for i in inputs}):
        roots = set(roots_of(node.inputs[overwritten]))
        for index, variable in enumerate(node.inputs):
            if index == overwritten or (overwritten, index) in aliased:
                continue
            is_same = variable is node.inputs[overwritten]
            if roots.isdisjoint(roots_of(variable)) or (is_same and (overwritten, index) in same):
                continue
            raise InconsistencyError(
                f"Ordering a graph: {node} overwrites its input {overwritten} and reads the same memory "
                f"as input {index}"
            )


class Supervisor(Feature):
    """A ban on nodes that overwrite one of the variables `protected`, or an output.

    A number in `protected` stands for the input at that position when the Feature is attached.
    """

    def __init__(self, protected: Iterable[Variable | int]) -> None:
        self.fgraph: EditableGraph | None = None
        self.protected = list(protected)

    @register_feature_callback
    def on_attach(self, fgraph: EditableGraph) -> None:
        if any(isinstance(feature, Supervisor) for feature in fgraph.features):
            raise AlreadyThere("Attaching Supervisor: the graph has one already")
        serve_one(self, fgraph)
        self.protected = [fgraph.inputs[item] if isinstance(item, int) else item for item in self.protected]

    @register_feature_callback
    def on_detach(self, fgraph: EditableGraph) -> None:
        self.fgraph = None

    @register_feature_callback
    def on_validate(self, fgraph: EditableGraph) -> None:
        if not hasattr(fgraph, "destroyers"):
            return
        for variable in (*self.protected, *fgraph.outputs):
            if fgraph.destroyers(variable):
                raise InconsistencyError(
                    f"Validating a graph: {fgraph.destroyers(variable)[0]} overwrites {variable}, "
                    "which is protected"
                )

    def clone(self) -> Supervisor:
        inputs = [] if self.fgraph is None else self.fgraph.inputs
        return type(self)([inputs.index(item) if item in inputs else item for item in self.protected])


class NoOutputFromInplace(Feature):
    """A ban on computing one of the outputs `protected_out_ids` by overwriting an input."""

    def __init__(self, protected_out_ids: Iterable[int]) -> None:
        self.protected_out_ids = tuple(protected_out_ids)

    @register_feature_callback
    def on_attach(self, fgraph: EditableGraph) -> None:
        if any(isinstance(feature, NoOutputFromInplace) for feature in fgraph.features):
            raise AlreadyThere("Attaching NoOutputFromInplace: the graph has one already")

    @register_feature_callback
    def on_validate(self, fgraph: EditableGraph) -> None:
        if not hasattr(fgraph, "destroyers"):
            return
        for place in self.protected_out_ids:
            output = fgraph.outputs[place]
            if output.owner is not None and output.index in output.owner.op.destroy_map:
                raise InconsistencyError(
                    f"Validating a graph: output {place} ({output}) is computed by overwriting an input of "
                    f"{output.owner}, which is forbidden for this output"
                )
