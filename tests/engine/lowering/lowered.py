"""Graphs lowered and assembled without compiling anything."""

from __future__ import annotations

from collections.abc import Sequence

from cachegraph.key import CacheKey
from engine.graph import Constant, Variable
from engine.graph.traversal import ancestors, io_toposort
from engine.lowering.assemble import assemble
from engine.lowering.lower import Lowering
from engine.lowering.rules import rule_of
from engine.runtime.program import Program
from engine.tensor.type import is_data


def lower(inputs: Sequence[Variable], outputs: Sequence[Variable]) -> Lowering:
    """Return the lowering of a graph as it is; its key describes its own data."""
    data = [v for v in ancestors(outputs) if isinstance(v, Constant) and is_data(v)]
    lowering = Lowering(rule_of, inputs, io_toposort(inputs, outputs), outputs, list(dict.fromkeys(data)))
    lowering.run()
    return lowering


def kernels(inputs: Sequence[Variable], outputs: Sequence[Variable]) -> list[str]:
    """Return the summary of each step of a graph: those of a loop's body, then the loop."""
    steps = lower(inputs, outputs).table.steps
    return [step.op if step.kernel is None else step.kernel.summary for step in steps]


def program(inputs: Sequence[Variable], outputs: Sequence[Variable], updated: Sequence[int] = ()) -> Program:
    """Return the program of a graph, its kernels under keys that no cache has."""
    lowering = Lowering(rule_of, inputs, io_toposort(inputs, outputs), outputs, [])
    results = lowering.run()
    used = dict.fromkeys(step.kernel for step in lowering.table.steps if step.kernel is not None)
    keys = {kernel: CacheKey.build("kernel", {"kernel": kernel.encoding()}) for kernel in used}
    common = [CacheKey.build("kernel", {name: b""}) for name in ("machine", "fast call")]
    return assemble(lowering, results, len(outputs) - len(updated), updated, common, keys, {})
