"""`EditableGraph`: the changes of a mutable graph, which it reports to its Features.

Every change is atomic: when it is refused, or a Feature raises, the graph and its Features stay as they
were. Its cost depends on the change alone: the nodes that it imports and prunes, and the uses that it
moves.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence

from engine.configdefaults import config
from engine.errors import InconsistencyError, MissingInputError
from engine.graph.absent_gradients import NullType
from engine.graph.apply import Apply
from engine.graph.edits import (
    AddInput,
    AddOutput,
    AddRoot,
    Change,
    DropRoot,
    ImportNode,
    Narrow,
    Prune,
    RemoveInput,
    RemoveOutput,
)
from engine.graph.feature import reason_text
from engine.graph.journal import Journal, all_or_nothing
from engine.graph.order import GAP
from engine.graph.tables import GraphTables, Output, check_integrity
from engine.graph.traversal import io_toposort
from engine.graph.variables import Variable, place_text


class EditableGraph(GraphTables):
    """Tables of a graph, and the methods that change them, each change all or nothing."""

    def _make_empty(self) -> None:
        super()._make_empty()
        self.journal = Journal(self)

    # Additions

    def add_input(self, variable: Variable, check: bool = True) -> None:
        """Append an input, once; with `check`, refuse (ValueError) a variable that is computed."""
        if check and variable.owner is not None:
            raise ValueError(
                f"Adding input {variable}: it is computed by {variable.owner}. One of the provided inputs is "
                "the output of an already existing node. If that is okay, either discard that input's "
                "owner or use graph.clone."
            )
        if variable not in self.is_input:
            with self.journal.all_or_nothing():
                self.journal.do(AddInput(len(self.inputs), variable, None))

    @all_or_nothing
    def add_output(self, variable: Variable, reason: str | None = None, import_missing: bool = False) -> None:
        """Append an output and import the nodes that compute it."""
        reason = reason_text(reason)
        self._import(variable, reason, import_missing)
        self.journal.do(AddOutput(len(self.outputs), variable, reason))

    @all_or_nothing
    def import_var(self, variable: Variable, reason: str | None = None, import_missing: bool = False) -> None:
        """Import `variable` and the nodes that compute it; `import_missing` makes unknown roots inputs.

        Parts that no output needs stay until they are removed, or until one of their uses ends.
        """
        self._import(variable, reason_text(reason), import_missing)

    @all_or_nothing
    def import_node(self, apply_node: Apply, reason: str | None = None, import_missing: bool = False) -> None:
        """Import `apply_node` and all nodes that it needs, or nothing if a root is missing."""
        self._import_nodes(apply_node.outputs, reason_text(reason), import_missing, None)

    def _import(
        self, variable: Variable, reason: str | None, import_missing: bool, below: int | None = None
    ) -> None:
        if variable in self.is_variable:
            return
        if variable.owner is None:
            self._import_root(variable, variable, reason, import_missing)
        else:
            self._import_nodes([variable], reason, import_missing, below)

    def _import_nodes(
        self, outputs: Sequence[Variable], reason: str | None, import_missing: bool, below: int | None
    ) -> None:
        """Import the nodes that compute `outputs`; a missing root is refused before Features see a node.

        The nodes get ranks below `below`, if there is room.
        """
        ranks, journal = self.ranks, self.journal
        nodes = [node for node in io_toposort(self.is_variable, outputs) if node not in ranks]
        for node in nodes:
            for variable in node.inputs:
                if variable.owner is None and variable not in self.is_variable:
                    self._import_root(variable, node, reason, import_missing)
        step = GAP
        if below is not None:
            low = max([_rank(ranks, node) for node in nodes], default=0)
            step = max(1, (below - low) // (len(nodes) + 1))
        for node in nodes:
            edit = ImportNode(node, _rank(ranks, node) + step, reason)
            journal.do(edit)
            journal.tell(edit)

    def _import_root(
        self, variable: Variable, user: object, reason: str | None, import_missing: bool
    ) -> None:
        if variable.is_atomic:
            self.journal.do(AddRoot(variable, reason))
        elif isinstance(variable.type, NullType):
            raise TypeError(
                f"Importing {user}: Computation graph contains a NaN: a gradient without a value. "
                f"{variable.type.why_null}"
            )
        elif import_missing:
            self.journal.do(AddInput(len(self.inputs), variable, reason))
        else:
            what = "it" if user is variable else f"its input {variable}"
            raise MissingInputError(
                f"Importing {user}: {what} of type {variable.type} is neither an input of the graph, "
                "a constant nor computed; add it to the inputs, or give it a value with givens",
                variable,
            )

    # Replacements

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
        """Make `new_var` input `i` of `node`, or of the node that uses an output.

        Refuse (InconsistencyError) a node outside the graph and a variable that is computed from `node`,
        and, with `check`, (TypeError) a variable that may hold values of another type.
        """
        below = self._rank_of_user(node)
        self._change(node, i, new_var, reason_text(reason), import_missing, check, below)

    def _rank_of_user(self, node: Apply) -> int | None:
        if isinstance(node.op, Output) and node in self.output_uses:
            return None
        if node not in self.ranks:
            raise InconsistencyError(f"Changing an input of {node}: it is not in the graph; import it first")
        return self.ranks[node]

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
                f"Replacing {old} of type {old.type} by {new_var} of type {new_var.type} ({reason}): "
                "the types differ; convert the replacement first"
            )
        self._import(new_var, reason, import_missing, below)
        edit = Change(node, i, new_var, reason)
        self.journal.do(edit)
        self._prune_unused([old], reason)
        self.journal.tell(edit)

    @all_or_nothing
    def replace(
        self,
        var: Variable,
        new_var: Variable,
        reason: str | None = None,
        import_missing: bool = False,
        verbose: bool | None = None,
    ) -> None:
        """Replace the present uses of `var` by `new_var`; nodes imported with `new_var` still use `var`.

        Do nothing if the graph does not use `var`. A computed replacement of a less specific type gets the
        type of `var`. Refuse (TypeError) a replacement of another type, and (InconsistencyError) one that
        is in the graph and computed from a use of `var`. With `verbose`, or without it if the flag
        `optimizer_verbose` is set, it prints what is replaced.
        """
        if var is new_var or var not in self.is_variable:
            return
        reason = reason_text(reason)
        if config.is_printed(reason, verbose):
            text = f"rewriting: rewrite {reason} replaces {_with_node(var)} with {_with_node(new_var)}\n"
            sys.stdout.write(text)
        new_var = self._as_specific(var, new_var, reason)
        uses = list(self.clients[var])
        below = min([self.ranks[node] for node, _ in uses if node in self.ranks], default=None)
        for node, index in uses:
            self._change(node, index, new_var, reason, import_missing, True, below)

    def _as_specific(self, var: Variable, new_var: Variable, reason: str | None) -> Variable:
        """Return `new_var` as a variable of the type of `var`, at least as specific."""
        node = getattr(new_var, "owner", None)
        if node is not None and isinstance(node.inputs, list) and not var.type.is_super(new_var.type):
            both = var.type.intersection(new_var.type)
            if both is not None:
                self.journal.do(Narrow(new_var, both, reason))
        return var.type.filter_variable(new_var, allow_convert=False)

    @all_or_nothing
    def replace_all(
        self,
        pairs: Iterable[tuple[Variable, Variable]],
        reason: str | None = None,
        import_missing: bool = False,
        verbose: bool | None = None,
    ) -> None:
        """`replace` each pair, in order: all of them, or none."""
        for old, new in pairs:
            self.replace(old, new, reason, import_missing, verbose)

    # Removals

    def _prune_unused(self, variables: Sequence[Variable], reason: str | None) -> None:
        """Remove unused ones of `variables`, the nodes that compute them, and so on. Inputs stay."""
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
        """Remove a node that nothing uses; return its inputs, which may be unused now."""
        edit = Prune(node, reason)
        self.journal.do(edit)
        self.journal.tell(edit)
        return list(dict.fromkeys(node.inputs))

    @all_or_nothing
    def remove_node(self, node: Apply, reason: str | None = None) -> None:
        """Remove `node`, everything that depends on it (outputs too) and everything unused then.

        Do nothing for a node outside the graph.
        """
        if node in self.ranks:
            self._remove_users(list(node.outputs), [node], reason_text(reason))

    @all_or_nothing
    def remove_input(self, input_idx: int, reason: str | None = None) -> None:
        """Remove input number `input_idx`, everything that depends on it, and everything unused then."""
        variable = self.inputs[input_idx]
        self._remove_users([variable], [], reason_text(reason))
        self.journal.do(RemoveInput(self.inputs.index(variable), variable, reason_text(reason)))

    @all_or_nothing
    def remove_output(self, output_idx: int, reason: str | None = None) -> None:
        """Remove output number `output_idx` and everything unused then. Later outputs move up."""
        variable = self.outputs[output_idx]
        place = range(len(self.outputs))[output_idx]
        self.journal.do(RemoveOutput(place, self.output_uses[place], reason_text(reason)))
        self._prune_unused([variable], reason_text(reason))

    def _remove_users(self, variables: list[Variable], nodes: list[Apply], reason: str | None) -> None:
        """Remove `nodes`, the nodes and outputs that use `variables`, their users, and so on."""
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
        for node in sorted(users, key=lambda user: self.ranks[user], reverse=True):
            unused.update(dict.fromkeys(self._prune(node, reason)))
        self._prune_unused(list(unused), reason)

    def check_integrity(self) -> None:
        """Refuse (InconsistencyError) a graph whose nodes, variables, clients and ranks disagree."""
        check_integrity(self)


def _with_node(variable: Variable) -> str:
    """Return the text of `variable` and of the node that computes it."""
    return f"{place_text(variable)} of {variable.owner}"


def _rank(ranks: Mapping[Apply, int], node: Apply) -> int:
    """Return the highest rank of the nodes that `node` needs."""
    highest = 0
    for variable in node.inputs:
        rank = ranks.get(variable.owner, 0)  # type: ignore[arg-type]
        if rank > highest:
            highest = rank
    return highest
