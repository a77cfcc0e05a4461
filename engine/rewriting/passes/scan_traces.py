"""Shorter buffers: a Scan keeps only the last rows of a state of which only these are read.

A loop that a condition ends has an unknown number of steps. It is taken from one output, so that no other
is kept for its length alone. A read of the k-th last row must stay an IndexError if there are fewer steps:
its index then becomes one that is out of range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

import engine.tensor as pt
from engine import scalar
from engine.graph import Apply, Constant, Variable
from engine.inner.scan_building import State
from engine.rewriting.opened_scans import Derived, OpenedScan, Read
from engine.rewriting.passes.shapes import length_elsewhere
from engine.tensor import Shape_i, Subtensor
from engine.tensor.elemwise import elemwise
from engine.tensor.index_entries import INTEGER
from engine.tensor.matching import tensor_type_of
from engine.tensor.shape import folded_shape_i


def share_lengths(scan: OpenedScan) -> None:
    """Take the lengths of all outputs from one, preferably an output with rows that are needed anyway."""
    if scan.loop.stop is None:
        return
    firsts = dict(zip(scan.buffers, [-state.taps[0] for state in scan.loop.states], strict=True))
    asked = {output: _lengths_of(scan, output) for output in scan.outputs}
    source = _source(scan, [output for output, nodes in asked.items() if nodes])
    for output, nodes in asked.items():
        if source is None or output is source or not nodes:
            continue
        if len(nodes) == len(scan.fgraph.clients[output]):
            scan.unread.add(output)
        for node in nodes:
            scan.derived[node.outputs[0]] = _length(source, firsts.get(output, 0) - firsts.get(source, 0))


def _source(scan: OpenedScan, asked: list[Variable]) -> Variable | None:
    """Return the output to take the length from, if any length is needed."""
    if not asked:
        return None
    whole = [output for output in scan.mapped if output is not None and _is_read(scan, output)]
    for state, buffer in zip(scan.loop.states, scan.buffers, strict=True):
        if state.keep is None and _is_read(scan, buffer) and not is_read_late(scan, state, buffer):
            whole.append(buffer)
    source = (whole or asked)[0]
    scan.whole.update(s for s, buffer in zip(scan.loop.states, scan.buffers, strict=True) if buffer is source)
    return source


def _lengths_of(scan: OpenedScan, output: Variable) -> list[Apply]:
    return [node for node, _ in scan.fgraph.clients[output] if node.op == Shape_i(0)]


def _is_read(scan: OpenedScan, output: Variable) -> bool:
    """Return True if more than the length of an output is used."""
    return any(node.op != Shape_i(0) for node, _ in scan.fgraph.clients[output])


def _length(source: Variable, more: int) -> Derived:
    return lambda outputs: pt.add(folded_shape_i(outputs.instead_of(source), 0), more)


def reduce_traces(scan: OpenedScan) -> None:
    """Keep only the last rows of states and mapped outputs of which only these are read."""
    for state, buffer in zip(scan.loop.states, scan.buffers, strict=True):
        if state.keep is None and state not in scan.whole:
            found = _Reads(scan, state).of(scan.fgraph.clients[buffer])
            if found is not None:
                state.keep, scan.reads[state] = found
    for output, row in list(zip(scan.mapped, scan.loop.mapped, strict=True)):
        if output is not None and output not in scan.unread:
            _reduce_mapped(scan, output, row)


def is_read_late(scan: OpenedScan, state: State, buffer: Variable) -> bool:
    """Return True if only the last rows of a state's buffer are read, apart from lengths."""
    clients = [(node, index) for node, index in scan.fgraph.clients[buffer] if node.op != Shape_i(0)]
    return _Reads(scan, state).of(clients) is not None


def _reduce_mapped(scan: OpenedScan, output: Variable, row: Any) -> None:
    """Make a mapped output of which only the last row is read a state, which keeps one row."""
    clients = list(scan.fgraph.clients[output])
    if any(first_entry(*client) != (INTEGER, -1) for client in clients):
        return
    lengths = [length_elsewhere(output, axis) for axis in range(1, row.type.ndim + 1)]
    if None in lengths:
        return
    initial = pt.alloc(pt.zeros((), row.type.dtype), 1, *lengths)
    if not row.type.is_super(initial.type.clone(shape=initial.type.shape[1:])):
        return
    state = State(initial, (-1,), [row.type.make_variable()], row)
    place = next(k for k, found in enumerate(scan.mapped) if found is output)
    del scan.mapped[place], scan.loop.mapped[place]
    scan.buffers.append(output)
    scan.loop.states.append(state)
    reads = _Reads(scan, state)
    for node, _ in clients:
        reads.add_step(node, 1)
    state.keep, scan.reads[state] = 1, reads.found


class _Reads:
    """The reads of a state's buffer, as reads of a buffer with only its last rows."""

    def __init__(self, scan: OpenedScan, state: State) -> None:
        self.scan = scan
        self.initial = state.initial
        self.first = -state.taps[0]
        self.keep = 1
        self.found: list[Read] = []

    def of(self, clients: Iterable[tuple[Apply, int]]) -> tuple[int, list[Read]] | None:
        """Return the number of rows that `clients` need, and all reads; None if they need more."""
        if not all(self._is_late(node, index) for node, index in clients):
            return None
        return self.keep, self.found

    def _is_late(self, node: Apply, index: int) -> bool:
        """Return True if a client of the buffer reads only its last rows, or its lengths."""
        if node.op == elemwise(scalar.second) and index == 0 and self.scan.loop.stop is None:
            return self._add_fill(node, pt.add(self.scan.loop.n_steps, self.first))
        entry = first_entry(node, index)
        if entry == ("a:", self.first) and len(cast(Subtensor, node.op).entries) == 1:
            return all(self._is_late_step(*client) for client in self.scan.fgraph.clients[node.outputs[0]])
        if entry is None or entry[0] not in (INTEGER, "a:") or not -self.first <= entry[1] < 0:
            return False
        return self._add(node, -entry[1], None)

    def _is_late_step(self, node: Apply, index: int) -> bool:
        """Return True if a client of the computed rows reads only the last of them, or their lengths."""
        if node.op == elemwise(scalar.second) and index == 0 and self.scan.loop.stop is None:
            return self._add_fill(node, self.scan.loop.n_steps)
        entry = first_entry(node, index)
        if entry is None or entry[0] != INTEGER or not -self.first <= entry[1] < 0:
            return False
        if self.scan.loop.stop is not None and entry[1] != -1:
            return False
        return self.add_step(node, -entry[1])

    def add_step(self, node: Apply, back: int) -> bool:
        """Record that `node` reads the row computed `back` steps before the end, if there is one."""
        if self.scan.does_at_least(back):
            return self._add(node, back, None)
        return self._add(node, back, lambda keep: self._index(back, keep))

    def _index(self, back: int, keep: int) -> Variable:
        """Return the index of that row among the last `keep`; one out of range if there are too few steps."""
        return pt.switch(pt.ge(self.scan.loop.n_steps, back), pt.constant(keep - back), pt.constant(keep))

    def _add(self, node: Apply, back: int, index: Callable[[int], Variable] | None) -> bool:
        """Record that `node` reads rows from `back` before the end, at `index` of the kept rows if given."""
        self.keep = max(self.keep, back)
        rest = node.inputs[2:]

        def read(buffer: Variable) -> Variable:
            start = pt.constant(-back) if index is None else index(self.keep)
            return node.op.make_node(buffer, start, *rest).outputs[0]

        self.found.append((node.outputs[0], read))
        return True

    def _add_fill(self, node: Apply, length: Any) -> bool:
        """Record that `node` reads the lengths of `length` rows."""
        lengths = [folded_shape_i(self.initial, axis) for axis in range(1, self.initial.type.ndim)]
        self.found.append((node.outputs[0], lambda _: pt.alloc(node.inputs[1], length, *lengths)))
        return True


def first_entry(node: Apply, index: int) -> tuple[str, int] | None:
    """Return the first index entry that `node` applies to input `index`, and its constant number, or None.

    An integer is counted from the end where the length is known.
    """
    if not isinstance(node.op, Subtensor) or index != 0 or not node.op.entries:
        return None
    entry, numbers = node.op.entries[0], node.inputs[1:]
    if sum(letter in entry for letter in "iabc") != 1 or not isinstance(numbers[0], Constant):
        return None
    place, length = int(numbers[0].data), tensor_type_of(node.inputs[0]).shape[0]
    if entry == INTEGER and length is not None and 0 <= place < length:
        place -= length
    return entry, place
