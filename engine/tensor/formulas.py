"""`pp`: a variable as a formula on one line, as PyTensor writes it.

Operators stand between their arguments, in parentheses; other Ops are functions: `Exp(x)`. What is used
twice is written twice. `pp.assign(op, printer)` has an Op written by a printer of a user's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from engine import scalar
from engine.graph.apply import Apply
from engine.graph.variables import Constant, Variable
from engine.tensor.creation import Alloc
from engine.tensor.elemwise import DimShuffle, Elemwise
from engine.tensor.formula_printers import NodePrinter, PPrinter, PrinterState
from engine.tensor.reduction import Reduction
from engine.tensor.shape import MakeVector
from engine.tensor.slicing import IncSubtensor, Subtensor
from engine.tensor.subtensor import AdvancedIncSubtensor, AdvancedSubtensor

OPERATORS = {
    scalar.add: "+",
    scalar.sub: "-",
    scalar.mul: "*",
    scalar.true_div: "/",
    scalar.floor_div: "//",
    scalar.pow: "**",
}
NAMES: dict[object, str] = {scalar.second: "fill"}
MOST_ITEMS = 10
"""Larger constants are written as their type."""


class FormulaPrinter(NodePrinter):
    """Writes roots, and what Ops of the engine compute."""

    def process(self, output: Variable, pstate: PrinterState) -> str:
        node = output.owner
        if node is None:
            return _root(output)
        return self.of_node(node, output, [pstate.pprinter.process(each, pstate) for each in _read(node)])

    def of_node(self, node: Apply, output: Variable, inputs: Sequence[str]) -> str:
        written = _written(node, inputs)
        return written if len(node.outputs) == 1 else f"{written}.{output.index}"


def _root(variable: Variable) -> str:
    if not isinstance(variable, Constant):
        return variable.name or f"<{variable.type}>"
    if getattr(variable.data, "size", 1) > MOST_ITEMS:
        return f"<{variable.type}>"
    numbers = getattr(variable.data, "squeeze", lambda: variable.data)()
    return str(numbers) if variable.name is None else variable.name


def _read(node: Apply) -> list[Variable]:
    """Return the inputs of `node` as they are written: a value that is repeated to fit a part, once."""
    inputs = list(node.inputs)
    source = inputs[1].owner if isinstance(node.op, IncSubtensor | AdvancedIncSubtensor) else None
    if source is not None and isinstance(source.op, Alloc):
        inputs[1] = source.inputs[0]
    return inputs


def _written(node: Apply, inputs: Sequence[str]) -> str:
    op: Any = node.op
    if isinstance(op, Elemwise):
        return _of_numbers(op.scalar_op, inputs)
    if isinstance(op, DimShuffle):
        return _reordered(op, inputs[0])
    if isinstance(op, Subtensor | AdvancedSubtensor):
        return f"{inputs[0]}[{_index(op.entries, list(inputs[1:]))}]"
    if isinstance(op, IncSubtensor | AdvancedIncSubtensor):
        name = "set_subtensor" if op.set_instead_of_inc else "inc_subtensor"
        return f"{name}({inputs[0]}[{_index(op.entries, list(inputs[2:]))}], {inputs[1]})"
    if isinstance(op, MakeVector):
        return f"[{', '.join(inputs)}]"
    if isinstance(op, Reduction):
        whole = len(op.axis) == node.inputs[0].type.ndim
        return f"{type(op).__name__.lower()}({inputs[0]}, axis={None if whole else op.axis})"
    return f"{op}({', '.join(inputs)})"


def _of_numbers(op: Any, inputs: Sequence[str]) -> str:
    if op in OPERATORS:
        return f"({f' {OPERATORS[op]} '.join(inputs)})"
    if op == scalar.neg:
        return f"(-{inputs[0]})"
    if op == scalar.abs:
        return f"|{inputs[0]}|"
    if isinstance(op, scalar.Cast):
        return f"{op.dtype}({inputs[0]})"
    name = str(op)
    return f"{NAMES.get(op, name[:1].upper() + name[1:])}({', '.join(inputs)})"


def _reordered(op: DimShuffle, text: str) -> str:
    """Return a tensor with its axes in another order; new axes and those left out are not written."""
    order = [axis for axis in op.new_order if axis != "x"]
    if order == sorted(order):
        return text
    return f"{text}.T" if order == list(range(op.input_ndim))[::-1] else f"{op}({text})"


def _index(entries: Sequence[str], numbers: list[str]) -> str:
    """Return the index between the brackets; each letter of an entry is the next number."""
    return ", ".join(re.sub("[a-z]", lambda _: numbers.pop(0), entry) for entry in entries)


pp = PPrinter()
pp.assign(lambda pstate, variable: True, FormulaPrinter())
