"""How many steps a loop did that a condition ended: asked of one output, so that no other is kept for its length alone."""

from __future__ import annotations

import engine.tensor as pt
from engine.graph.apply import Apply
from engine.graph.variables import Variable
from engine.rewriting.opened_scans import Derived, OpenedScan
from engine.rewriting.passes.scan_traces import is_read_late
from engine.tensor import Shape_i


def share_lengths(scan: OpenedScan) -> None:
    """Take the lengths of all outputs of such a loop from one, whose rows are needed anyway if there is such."""
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
    """The output to ask for the length, if it is asked for."""
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
    """Whether more than the length of an output is used."""
    return any(node.op != Shape_i(0) for node, _ in scan.fgraph.clients[output])


def _length(source: Variable, more: int) -> Derived:
    return lambda outputs: pt.add(pt.shape_i(outputs.instead_of(source), 0), more)
