"""`FunctionGraph`: a graph between inputs and outputs that can be changed, and tells its Features so.

Every change is made whole or not at all: when it is refused, or a Feature raises, the graph and its Features are as they
were. It costs what it changes: what it brings in, what it takes out, and the uses that it moves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from engine.errors import InconsistencyError, MissingInputError
from engine.graph.apply import Apply
from engine.graph.clients import Client, Clients, Output
from engine.graph.dot import to_svg
from engine.graph.edits import (
    AddInput,
    AddOutput,
    AddRoot,
    Change,
    DropRoot,
    Import,
    Narrow,
    Prune,
    RemoveInput,
    RemoveOutput,
)
from engine.graph.feature_host import FeatureHost
from engine.graph.features.protocol import Feature, reason_text
from engine.graph.features.replace_validate import ReplaceValidate
from engine.graph.flat import flatten, restore
from engine.graph.integrity import check_integrity
from engine.graph.journal import Journal, all_or_nothing
from engine.graph.order import GAP
from engine.graph.replace import clone_get_equiv
from engine.graph.traversal import graph_inputs, io_toposort
from engine.graph.variables import Constant, Variable

if TYPE_CHECKING:
    from engine.graph.frozen import FrozenFunctionGraph

__all__ = ["Client", "FunctionGraph", "Output"]

Memo = dict[Variable | Apply, Variable | Apply]


class FunctionGraph(FeatureHost):
    """The nodes between `inputs` and `outputs`, with every variable's clients.

    With `clone` (the default) the graph owns copies of what it was given. Outputs that need a variable which is
    neither an input, a constant nor computed are refused (MissingInputError). Attached are `features` and, unless they
    provide its names, a `ReplaceValidate`.

    `inputs` and `outputs` are lists, `apply_nodes` and `variables` sets (dictionaries by use), `clients` has for each
    variable its uses: pairs of a node and which of its inputs; for an output a node of the Op `Output`. All are to be
    read; to change them there are methods.
    """

    def __init__(
        self,
        inputs: Sequence[Variable] | None = None,
        outputs: Sequence[Variable] = (),
        features: Sequence[Feature] = (),
        clone: bool = True,
        memo: Memo | None = None,
    ) -> None:
        if inputs is None:
            inputs = [v for v in graph_inputs(outputs) if not isinstance(v, Constant)]
        if clone:
            memo = clone_get_equiv(inputs, outputs, copy_orphans=False, memo=memo)
            inputs = [cast(Variable, memo[v]) for v in inputs]
            outputs = [cast(Variable, memo[v]) for v in outputs]
        self._make_empty()
        for variable in inputs:
            self.add_input(variable)
        for variable in outputs:
            self.add_output(variable, reason="init")
        for feature in features:
            self.attach_feature(feature)
        if not any(name in self._provided for name in ReplaceValidate.provides):
            self.attach_feature(ReplaceValidate())

    def _make_empty(self) -> None:
        self.inputs: list[Variable] = []
        self.outputs: list[Variable] = []
        self.is_input: dict[Variable, None] = {}
        self.output_uses: list[Apply] = []
        self.apply_nodes: dict[Apply, int] = {}
        self.variables: dict[Variable, None] = {}
        self.clients: dict[Variable, Clients] = {}
        self.journal = Journal(self)
        self.take_features(())

    # What comes in

    def add_input(self, variable: Variable, check: bool = True) -> None:
        """Append an input, once; with `check`, refuses (ValueError) a variable that is computed."""
        if check and variable.owner is not None:
            raise ValueError(
                f"Adding input {variable}: it is computed by {variable.owner}; an input has no owner"
            )
        if variable not in self.is_input:
            with self.journal.all_or_nothing():
                self.journal.do(AddInput(len(self.inputs), variable, None))

    @all_or_nothing
    def add_output(self, variable: Variable, reason: str | None = None, import_missing: bool = False) -> None:
        """Append an output and import what it is computed from."""
        reason = reason_text(reason)
        self._import(variable, reason, import_missing)
        self.journal.do(AddOutput(len(self.outputs), variable, reason))

    @all_or_nothing
    def import_var(self, variable: Variable, reason: str | None = None, import_missing: bool = False) -> None:
        """Import `variable` and the nodes that compute it; with `import_missing`, unknown roots become inputs.

        What no output needs stays, until it is removed or a use of it ends.
        """
        self._import(variable, reason_text(reason), import_missing)

    @all_or_nothing
    def import_node(self, apply_node: Apply, reason: str | None = None, import_missing: bool = False) -> None:
        """Import `apply_node` and all nodes that it needs. Nothing is imported if a root is missing."""
        self._import_nodes(apply_node.outputs, reason_text(reason), import_missing, None)

    def _import(
        self, variable: Variable, reason: str | None, import_missing: bool, below: int | None = None
    ) -> None:
        if variable in self.variables:
            return
        if variable.owner is None:
            self._import_root(variable, variable, reason, import_missing)
        else:
            self._import_nodes([variable], reason, import_missing, below)

    def _import_nodes(
        self, outputs: Sequence[Variable], reason: str | None, import_missing: bool, below: int | None
    ) -> None:
        """Import what computes `outputs`: roots first, so that no Feature is told of nodes if one is missing.

        The ranks of the nodes are below `below`, if there is room.
        """
        ranks, journal = self.apply_nodes, self.journal
        nodes = [node for node in io_toposort(self.variables, outputs) if node not in ranks]
        for node in nodes:
            for variable in node.inputs:
                if variable.owner is None and variable not in self.variables:
                    self._import_root(variable, node, reason, import_missing)
        step = GAP
        if below is not None:
            low = max([_rank(ranks, node) for node in nodes], default=0)
            step = max(1, (below - low) // (len(nodes) + 1))
        for node in nodes:
            edit = Import(node, _rank(ranks, node) + step, reason)
            journal.do(edit)
            journal.tell(edit)

    def _import_root(
        self, variable: Variable, user: object, reason: str | None, import_missing: bool
    ) -> None:
        if isinstance(variable, Constant):
            self.journal.do(AddRoot(variable, reason))
        elif import_missing:
            self.journal.do(AddInput(len(self.inputs), variable, reason))
        else:
            what = "it" if user is variable else f"its input {variable}"
            raise MissingInputError(
                f"Importing {user}: {what} of type {variable.type} is neither an input of the graph, a constant nor "
                "computed; add it to the inputs, or give it a value with givens",
                variable,
            )

    # What changes

    @all_or_nothing
    def change_node_input(
        self,
        node: Apply,
        i: int,
        new_var: Variable,
        reason: str | None = None,
        import_missing: bool = False,
        check: bool = True,
    ) -> None:
        """Make `new_var` input `i` of `node`, or of the node that stands for an output.

        Refuses (TypeError) one that may hold values of another type, unless not to `check`, (InconsistencyError) one
        that is computed from `node`, and a node that is not in the graph.
        """
        below = self._rank_of_user(node)
        self._change(node, i, new_var, reason_text(reason), import_missing, check, below)

    def _rank_of_user(self, node: Apply) -> int | None:
        if isinstance(node.op, Output) and node in self.output_uses:
            return None
        if node not in self.apply_nodes:
            raise InconsistencyError(f"Changing an input of {node}: it is not in the graph; import it first")
        return self.apply_nodes[node]

    def _change(
        self,
        node: Apply,
        i: int,
        new_var: Variable,
        reason: str | None,
        import_missing: bool,
        check: bool,
        below: int | None,
    ) -> None:
        if not 0 <= i < len(node.inputs):
            raise IndexError(f"Changing input {i} of {node}: it has {len(node.inputs)} inputs")
        old = node.inputs[i]
        if new_var is old:
            return
        if isinstance(node.inputs, tuple):
            raise TypeError(
                f"Changing input {i} of {node}: the node is frozen; unfreeze the graph that it is in"
            )
        if check and not old.type.is_super(new_var.type):
            raise TypeError(
                f"Replacing {old} of type {old.type} by {new_var} of type {new_var.type} ({reason}): the types "
                "differ; convert the replacement first"
            )
        self._import(new_var, reason, import_missing, below)
        edit = Change(node, i, new_var, reason)
        self.journal.do(edit)
        self._prune_unused([old], reason)
        self.journal.tell(edit)

    @all_or_nothing
    def replace(
        self, var: Variable, new_var: Variable, reason: str | None = None, import_missing: bool = False
    ) -> None:
        """Use `new_var` wherever `var` is used now: what is imported with `new_var` goes on using `var`.

        A variable that is not used in the graph is left alone. A replacement that a node computes, and whose type knows
        less than that of `var`, gets to know it: what holds of `var` holds of it. Refuses (TypeError) a replacement of
        another type, and (InconsistencyError) one that is in the graph and computed from a use of `var`.
        """
        if var is new_var or var not in self.variables:
            return
        reason = reason_text(reason)
        new_var = self._as_specific(var, new_var, reason)
        uses = list(self.clients[var])
        below = min([self.apply_nodes[node] for node, _ in uses if node in self.apply_nodes], default=None)
        for node, index in uses:
            self._change(node, index, new_var, reason, import_missing, True, below)

    def _as_specific(self, var: Variable, new_var: Variable, reason: str | None) -> Variable:
        """`new_var` as a variable of the type of `var`, which knows of it what was known of `var`."""
        node = getattr(new_var, "owner", None)
        if node is not None and isinstance(node.inputs, list) and not var.type.is_super(new_var.type):
            both = var.type.intersection(new_var.type)
            if both is not None:
                self.journal.do(Narrow(new_var, both, reason))
        return var.type.filter_variable(new_var)

    @all_or_nothing
    def replace_all(
        self,
        pairs: Iterable[tuple[Variable, Variable]],
        reason: str | None = None,
        import_missing: bool = False,
    ) -> None:
        """`replace` each pair, in order: all of them, or none."""
        for old, new in pairs:
            self.replace(old, new, reason, import_missing)

    # What goes out

    def _prune_unused(self, variables: Sequence[Variable], reason: str | None) -> None:
        """Take out those of `variables` that are not used, what computes them, and so on. Inputs stay."""
        stack = list(variables)
        while stack:
            unused = stack.pop()
            if unused in self.is_input or self.clients.get(unused, True):
                continue
            if unused.owner is None:
                self.journal.do(DropRoot(unused, reason))
            elif not any(self.clients[output] for output in unused.owner.outputs):
                stack.extend(self._prune(unused.owner, reason))

    def _prune(self, node: Apply, reason: str | None) -> list[Variable]:
        """Take out a node that nothing uses; its inputs, which may be unused now."""
        edit = Prune(node, reason)
        self.journal.do(edit)
        self.journal.tell(edit)
        return list(dict.fromkeys(node.inputs))

    @all_or_nothing
    def remove_node(self, node: Apply, reason: str | None = None) -> None:
        """Remove `node`, all that depends on it, outputs too, and what is used no more then. A node that is not in the
        graph is left alone."""
        if node in self.apply_nodes:
            self._remove_users(list(node.outputs), [node], reason_text(reason))

    @all_or_nothing
    def remove_input(self, input_idx: int, reason: str | None = None) -> None:
        """Remove input number `input_idx`, all that depends on it, outputs too, and what is used no more then."""
        variable = self.inputs[input_idx]
        self._remove_users([variable], [], reason_text(reason))
        self.journal.do(RemoveInput(self.inputs.index(variable), variable, reason_text(reason)))

    @all_or_nothing
    def remove_output(self, output_idx: int, reason: str | None = None) -> None:
        """Remove output number `output_idx`, and what is used no more then. Those behind it move up."""
        variable = self.outputs[output_idx]
        place = range(len(self.outputs))[output_idx]
        self.journal.do(RemoveOutput(place, self.output_uses[place], reason_text(reason)))
        self._prune_unused([variable], reason_text(reason))

    def _remove_users(self, variables: list[Variable], nodes: list[Apply], reason: str | None) -> None:
        """Remove `nodes`, whatever uses `variables`, whatever uses that, and so on."""
        users = dict.fromkeys(nodes)
        outputs: dict[int, None] = {}
        while variables:
            for client, _ in self.clients[variables.pop()]:
                if isinstance(client.op, Output):
                    outputs[client.op.idx] = None
                elif client not in users:
                    users[client] = None
                    variables.extend(client.outputs)
        for place in sorted(outputs, reverse=True):
            self.journal.do(RemoveOutput(place, self.output_uses[place], reason))
        unused: dict[Variable, None] = {}
        for node in sorted(users, key=lambda user: self.apply_nodes[user], reverse=True):
            unused.update(dict.fromkeys(self._prune(node, reason)))
        self._prune_unused(list(unused), reason)

    # What it is

    def orderings(self) -> dict[Apply, list[Apply]]:
        """What must run before a node beside the nodes that it needs, as Features say."""
        found: dict[Apply, list[Apply]] = {}
        for before in self.collect_callbacks("orderings").values():
            for node, nodes in before.items():
                found.setdefault(node, []).extend(nodes)
        return found

    def toposort(self) -> list[Apply]:
        """The nodes, each after those it needs and those that `orderings` has for it, in an order fixed by structure."""
        order = self._sorted(None)
        orderings = self.orderings() if self.listeners("orderings") else None
        if not orderings:
            return order
        place = {node: number for number, node in enumerate(order)}
        return self._sorted({n: sorted(before, key=lambda b: place[b]) for n, before in orderings.items()})

    def _sorted(self, orderings: Mapping[Apply, list[Apply]] | None) -> list[Apply]:
        """The nodes that the outputs need, then the others."""
        order = io_toposort(self.is_input, self.outputs, orderings)
        if len(order) == len(self.apply_nodes):
            return order
        needed = set(order)
        others = [node.outputs[0] for node in self.apply_nodes if node not in needed]
        return io_toposort(self.is_input, [*self.outputs, *others], orderings)

    def nodes_that_need(self, node: Apply) -> list[Apply]:
        """The nodes that use an output of `node`, those that stand for outputs too."""
        return [client for output in node.outputs for client, _ in self.clients[output]]

    def get_clients(self, variable: Variable) -> Sequence[Client]:
        """The uses of `variable`: pairs of a node and which of its inputs."""
        return self.clients[variable]

    def check_integrity(self) -> None:
        """Refuses (InconsistencyError) a graph whose nodes, variables, clients and ranks do not agree."""
        check_integrity(self)

    def clone(self, check_integrity: bool = True) -> FunctionGraph:
        """A copy with the same constants, and clones of the Features."""
        return self.clone_get_equiv(check_integrity)[0]

    def clone_get_equiv(
        self, check_integrity: bool = True, attach_feature: bool = True
    ) -> tuple[FunctionGraph, Memo]:
        """A copy, and the map from what is in this graph to what is in the copy."""
        memo: Memo = {}
        copy = FunctionGraph(self.inputs, self.outputs, memo=memo)
        if check_integrity:
            copy.check_integrity()
        if attach_feature:
            for feature in self._features:
                copy.attach_feature(feature.clone())
        return copy, memo

    def freeze(self) -> FrozenFunctionGraph:
        """This graph as an immutable one; the order of its nodes is part of that if Features require one."""
        from engine.graph.frozen import FrozenFunctionGraph

        if not self.listeners("orderings") or not self.orderings():
            return FrozenFunctionGraph.from_io(self.inputs, self.outputs)
        return FrozenFunctionGraph.from_toposort(self.inputs, self.outputs, self.toposort())

    def __getstate__(self) -> dict[str, Any]:
        return flatten(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._make_empty()
        restore(self, state)

    def __contains__(self, item: Variable | Apply) -> bool:
        return item in (self.variables if isinstance(item, Variable) else self.apply_nodes)

    def _repr_svg_(self) -> str | None:
        return to_svg(self)

    def __repr__(self) -> str:
        return f"FunctionGraph({', '.join(str(output) for output in self.outputs)})"


def _rank(ranks: Mapping[Apply, int], node: Apply) -> int:
    """The highest rank of the nodes that `node` needs."""
    highest = 0
    for variable in node.inputs:
        rank = ranks.get(variable.owner, 0)  # type: ignore[arg-type]
        if rank > highest:
            highest = rank
    return highest
