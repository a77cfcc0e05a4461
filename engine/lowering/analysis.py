"""`GraphAnalysis`: the facts about a graph that decide how it is lowered, found before the first node is."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from typing import cast

from engine.graph.apply import Apply
from engine.graph.variables import Variable
from engine.lowering.op_rule import FindRule, count_uses, rules_for
from engine.lowering.overwriting import overwriting_nodes

MOST_SKIPPED = 8
"""A result without at most so many first rows is not copied: their memory is kept with it."""


class GraphAnalysis:
    """The order of the nodes, the reads of each value (`uses`), and the nodes that overwrite an input.

    `fused` has the variables that are computed inside the loops of the reduction that reads them.
    """

    def __init__(
        self,
        nodes: Sequence[Apply],
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        destroyable: Collection[Variable],
        rule_of: FindRule,
    ) -> None:
        self.rules = rules_for(nodes, rule_of)
        """The rule for each node. To find one takes longer than to apply many a rule."""
        self.uses = count_uses(self.rules, outputs)
        self.fused = {node.inputs[0] for node in nodes if self._reduces_alone(node)}
        self.nodes = self._with_reductions_first(nodes)
        self.overwriting = overwriting_nodes(self.nodes, inputs, outputs, destroyable)

    def _reduces_alone(self, node: Apply) -> bool:
        """Return True if `node` is a needed reduction, and nothing else reads its input."""
        is_alone = bool(node.inputs) and self.uses.get(node.inputs[0]) == 1
        return is_alone and bool(self.uses.get(node.outputs[0])) and self.rules[node].reduces

    def _with_reductions_first(self, nodes: Sequence[Apply]) -> list[Apply]:
        """Return the nodes, each reduction straight behind the node that runs in its loops.

        Only these loops read the inputs of that node, so nothing may overwrite them in between.
        """
        reductions: dict[Variable, list[Apply]] = {}
        for node in nodes:
            if self._may_run_fused(node):
                # Of several reductions of one input all but one are asked for their lengths alone.
                reductions.setdefault(node.inputs[0], []).append(node)
        order: list[Apply] = []
        for node in nodes:
            waiting = [] if self._may_run_fused(node) else [node]
            while waiting:
                order.append(waiting.pop())
                waiting += reductions.pop(order[-1].outputs[0], [])[::-1]
        return order

    def _may_run_fused(self, node: Apply) -> bool:
        """Return True if `node` is a reduction that may have a computation in its loops."""
        if not node.inputs or node.inputs[0] not in self.fused or not self.rules[node].reduces:
            return False
        producer = node.inputs[0].owner
        return producer is not None and len(producer.outputs) == 1

    @cached_property
    def readers(self) -> dict[Variable, list[Apply]]:
        """The nodes that have a variable as an input, for each variable that is one."""
        found: dict[Variable, list[Apply]] = {}
        for node in self.nodes:
            for variable in node.inputs:
                found.setdefault(variable, []).append(node)
        return found

    def origin(self, variable: Variable) -> Variable:
        """Return the variable that has the memory of `variable` first: nodes that overwrite pass it on."""
        while variable.owner in self.overwriting:
            overwritten = variable.owner.op.destroy_map.get(cast(int, variable.index))
            if overwritten is None:
                break
            variable = variable.owner.inputs[overwritten[0]]
        return variable

    def kept_arrays(self, outputs: Sequence[Variable]) -> dict[Variable, int]:
        """Return the variables computed into the caller's arrays, each with its number of skipped rows."""
        kept = {self.origin(variable): 0 for variable in outputs}
        for variable in outputs:
            skipped = self.skipped(variable)
            if skipped is not None and skipped <= MOST_SKIPPED:
                kept.setdefault(self.origin(cast(Apply, variable.owner).inputs[0]), skipped)
        return kept

    def skipped(self, variable: Variable) -> int | None:
        """Return how many first rows of another variable `variable` leaves out, if it is all the others."""
        return None if variable.owner is None else self.rules[variable.owner].skipped(variable.owner)
