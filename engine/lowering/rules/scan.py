"""Lowering of Scan: a loop of the program, whose passes call the kernels of the inner graph.

New rows are written to their final place (scan_rows.py): no step moves a row. What is the same in every
step is computed outside the loop (body.py).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import cast

from msgspec import Struct

from engine.graph.apply import Apply
from engine.graph.variables import Variable
from engine.inner.scan import Scan
from engine.inner.scan_info import ScanInfo
from engine.lowering.body import Body, InnerGraph, inner_graph
from engine.lowering.lower import Lowering, dtype
from engine.lowering.op_rule import FindRule, OpRule, count_uses, rules_for
from engine.lowering.rules.scan_rows import Mapped, Ring, Rows, Trace, sequence_row
from engine.lowering.steps import CarriedRegister, Check, LoopStep


class _Step(Struct, frozen=True):
    """The part of a step that the wanted outer outputs need.

    It has the inner outputs at `positions`, the rule for each node of its graph, and the number of reads of
    each variable.
    """

    info: ScanInfo
    graph: InnerGraph
    rules: dict[Apply, OpRule]
    positions: tuple[int, ...]
    uses: Mapping[Variable, int]

    @classmethod
    def of(cls, op: Scan, rule_of: FindRule, wanted: Collection[int]) -> _Step:
        """Return what `wanted` outer outputs need, with the states that anything computed reads."""
        info, graph = op.info, inner_graph(op.fgraph)
        found = {*wanted, *([info.n_inner_outputs - 1] if info.is_while else [])}
        taps, rules = info.inner_inputs(graph.inputs).taps, rules_for(graph.nodes, rule_of)
        while True:
            positions = tuple(sorted(found))
            uses = count_uses(rules, [graph.outputs[p] for p in positions])
            read = {s for s in range(info.n_states) if any(uses.get(tap) for tap in taps[s])}
            if read <= found:
                return cls(info, graph, rules, positions, uses)
            found |= read

    def read(self, node: Apply) -> list[Variable]:
        """Return the outer inputs whose values the steps read."""
        outer, inner = self.info.outer_inputs(node.inputs), self.info.inner_inputs(self.graph.inputs)
        rows = [v for v, row in zip(outer.sequences, inner.rows, strict=True) if self.uses.get(row)]
        states = [v for s, v in enumerate(outer.initials) if s in self.positions]
        others = zip(outer.non_sequences, inner.non_sequences, strict=True)
        return [*rows, *states, *(v for v, non_sequence in others if self.uses.get(non_sequence))]


def scan_rule(rule_of: FindRule) -> OpRule:
    """Return the rule of Scan, whose inner graph has nodes with the rules that `rule_of` gives."""

    def read(node: Apply) -> list[Variable]:
        op = cast(Scan, node.op)
        return _Step.of(op, rule_of, range(len(node.outputs))).read(node)

    def lengths(node: Apply) -> list[Variable]:
        op = cast(Scan, node.op)
        step = _Step.of(op, rule_of, ())
        inner = op.info.inner_inputs(step.graph.inputs)
        every_row = [*inner.rows, *(tap for taps in inner.taps for tap in taps)]
        if op.info.is_while or any(map(step.uses.get, every_row)):
            return [node.inputs[0], *read(node)]
        return [node.inputs[0], *step.read(node)]

    return OpRule(lambda lowering, node: _Lowered(lowering, node).run(), read, lengths)


class _Lowered:
    """One Scan while it is lowered."""

    def __init__(self, lowering: Lowering, node: Apply) -> None:
        self.lowering, self.table, self.node = lowering, lowering.table, node
        self.op = cast(Scan, node.op)
        self.info = self.op.info
        self.outer = self.info.outer_inputs(node.inputs)
        self.count = lowering.scalar_of(self.outer.n_steps)
        self.wanted = {p for p, output in enumerate(node.outputs) if lowering.is_needed(output)}
        self.step = _Step.of(self.op, lowering.rule_of, self.wanted)
        self.inner = self.info.inner_inputs(self.step.graph.inputs)
        self.rows: dict[int, Rows] = {}

    def run(self) -> None:
        """Lower the checks, the loop, and the results after it."""
        self._check_lengths()
        loop = self.table.begin_loop(self._stage(), self.count)
        outputs = self.step.graph.outputs
        destroyable = [self.step.graph.inputs[place] for place in self.info.destroyable]
        wanted = [outputs[p] for p in self.step.positions]
        body = Body(self.lowering, loop, self.step.graph, wanted, destroyable)
        self._declare(body, loop)
        with self.table.region(loop.floor):
            self._lower_step(body, loop)
        late = [m for m in self.rows.values() if isinstance(m, Mapped) and m.is_late]
        if self.wanted or self.info.is_while or late:
            self.table.end_loop(loop, str(self.op))
        else:
            self.table.drop_loop(loop)
        self._give_results(loop)

    def _check_lengths(self) -> None:
        """Demand enough steps (at least 0), rows of each sequence, and initial rows of each state."""
        table, name = self.table, str(self.op)
        table.demand(self.count, Check("steps", name, ()))
        for number, sequence in enumerate(self.outer.sequences):
            length = table.canonical(self.lowering.dims_of(sequence)[0])
            if length != table.canonical(self.count):
                check = Check("sequence", name, (str(number), str(length), str(self.count)))
                table.demand(table.compute("SUB", length, self.count), check)
        for state, initial in enumerate(self.outer.initials):
            due = table.constant(self.info.n_initial(state))
            table.same(due, self.lowering.dims_of(initial)[0], Check("initial-rows", name, (str(state),)))

    def _stage(self) -> int:
        """Return the first stage in which everything is known that the steps read."""
        lowering, table = self.lowering, self.table
        stages = [table.floor, table.stage((self.count,))]
        stages += [table.stage(lowering.dims_of(variable)) for variable in self.node.inputs[1:]]
        stages += [lowering.value_of(variable).stage for variable in self.step.read(self.node)]
        stages += [lowering.first_stage(self.node.outputs[p]) for p in self.wanted]
        in_registers = {v for node, rule in self.step.rules.items() for v in rule.lengths(node)}
        for inner, outer in zip(self.inner.non_sequences, self.outer.non_sequences, strict=True):
            if inner in in_registers and dtype(inner) == "int64" and not lowering.dims_of(outer):
                stages.append(table.stage((lowering.scalar_of(outer),)))
        return max(stages)

    def _declare(self, body: Body, loop: LoopStep) -> None:
        """Declare where each step finds its inputs and writes its outputs."""
        lowering, step = self.lowering, self.step
        for row, sequence in zip(self.inner.rows, self.outer.sequences, strict=True):
            body.dims[row] = lowering.dims_of(sequence)[1:]
            if step.uses.get(row):
                body.declare(row, sequence_row(self.table, loop, lowering.value_of(sequence)))
        for number, taps in enumerate(self.inner.taps):
            self._declare_state(body, loop, number, taps)
        for inner, outer in zip(self.inner.non_sequences, self.outer.non_sequences, strict=True):
            body.declare_outer(inner, outer)
        for position in range(self.info.n_states, len(self.node.outputs)):
            what = (str(self.op), f"mapped output {position - self.info.n_states}")
            output = self.node.outputs[position]
            self.rows[position] = Mapped(lowering, loop, output, self.info.is_while, what)
        for position, rows in self.rows.items():
            if position in step.positions and not (isinstance(rows, Ring) and rows.is_inplace):
                body.targets.setdefault(body.analysis.origin(step.graph.outputs[position]), rows.place)

    def _declare_state(self, body: Body, loop: LoopStep, number: int, taps: Sequence[Variable]) -> None:
        initial, output = self.outer.initials[number], self.node.outputs[number]
        for tap in taps:
            body.dims[tap] = self.lowering.dims_of(initial)[1:]
        if number not in self.step.positions:
            return
        m, keep, is_wanted = self.info.n_initial(number), self.info.keeps[number], number in self.wanted
        what = (str(self.op), f"state {number}")
        rows: Trace | Ring
        if keep is None and is_wanted:
            rows = Trace(self.lowering, loop, output, initial, what)
            rows.begin(m, self.info.is_while)
        else:
            rows = Ring(self.lowering, loop, output, initial, what)
            is_inplace = (
                len(taps) == m == 1 and body.analysis.origin(self.step.graph.outputs[number]) is taps[0]
            )
            rows.begin(m, keep or m, is_inplace)
        self.rows[number] = rows
        for offset, tap in zip(self.info.taps[number], taps, strict=True):
            if self.step.uses.get(tap):
                body.declare(tap, rows.tap(offset))

    def _lower_step(self, body: Body, loop: LoopStep) -> None:
        """Lower the graph of a step, and write its outputs to their places."""
        graph = self.step.graph
        # Values that a step only passes on are copied before the step may overwrite them.
        passed_on = [p for p in self.step.positions if graph.outputs[p] in graph.inputs]
        for position in passed_on:
            self._write(body, position)
        body.lower_nodes()
        for position in self.step.positions:
            if position not in passed_on:
                self._write(body, position)
        for position, rows in self.rows.items():
            if isinstance(rows, Mapped):
                rows.lengths(body.dims_of(graph.outputs[position]))
        if self.info.is_while:
            loop.until = body.value_of(graph.outputs[-1])
            if loop.until.buffer is not None:
                loop.until.buffer.is_loaded = True
            loop.done = self.table.new(loop.stage + 1)
            loop.carried.append(CarriedRegister(loop.done, self.table.constant(0)))

    def _write(self, body: Body, position: int) -> None:
        if position in self.rows:
            output = self.step.graph.outputs[position]
            body.write(output, self.rows[position].place_of(body.value_of(output)))

    def _give_results(self, loop: LoopStep) -> None:
        """Declare the lengths of the outer outputs, and the values of the wanted ones."""
        lowering, table = self.lowering, self.table
        done = self.count if loop.done is None else loop.done
        for position, output in enumerate(self.node.outputs):
            rows = self.rows.get(position)
            if position < self.info.n_states:
                keep = self.info.keeps[position]
                m = table.constant(self.info.n_initial(position))
                length = table.compute("ADDSAT", done, m) if keep is None else table.constant(keep)
                row = lowering.dims_of(self.outer.initials[position])[1:]
                lowering.dims[output] = (length, *row)
            else:
                lowering.dims[output] = cast(Mapped, rows).dims(done)
            if position in self.wanted:
                lowering.values[output] = cast(Rows, rows).result(done)
