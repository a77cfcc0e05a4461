"""`PPrinter` and the printers that it chooses from: how users have their Ops written in formulas.

Names and meaning are PyTensor's. Every operator is in parentheses, so precedences are not needed. A formula
is written from its roots: a printer that asks for an input's text finds it, and deep formulas need no stack.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.graph.traversal import io_toposort
from engine.graph.variables import Variable


class PrinterState:
    """The texts of the variables that one formula has so far, `memo`, and what prints it, `pprinter`."""

    def __init__(self, pprinter: PPrinter) -> None:
        self.pprinter = pprinter
        self.memo: dict[Variable, str] = {}


class Printer(ABC):
    """A writer of variables: of the results of an Op, or of roots."""

    @abstractmethod
    def process(self, output: Variable, pstate: PrinterState) -> str:
        """Return the text of `output`; `pstate.pprinter.process(variable, pstate)` is that of another one."""


Condition = Op | type | Callable[[PrinterState, Variable], bool]


class PPrinter(Printer):
    """A choice of printers: by the Op that computes a variable, by its class, or by a condition.

    An Op comes before its class, and a class before conditions, of which the latest one comes first. The text
    of what no printer was assigned to is empty.
    """

    def __init__(self) -> None:
        self.printers: list[tuple[Callable[[PrinterState, Variable], bool], Printer]] = []
        self.printers_dict: dict[Op | type, Printer] = {}

    def assign(self, condition: Condition, printer: Printer) -> None:
        """Have `printer` write what an Op computes, an Op of a class, or what a condition holds for."""
        if isinstance(condition, Op | type):
            self.printers_dict[condition] = printer
        else:
            self.printers.insert(0, (condition, printer))

    def clone(self) -> PPrinter:
        """Return a copy, whose printers can be assigned without changing these."""
        copy = type(self)()
        copy.printers = list(self.printers)
        copy.printers_dict = dict(self.printers_dict)
        return copy

    def clone_assign(self, condition: Condition, printer: Printer) -> PPrinter:
        """Return a copy with one more printer."""
        copy = self.clone()
        copy.assign(condition, printer)
        return copy

    def process(self, output: Variable, pstate: PrinterState | None = None) -> str:
        """Return the text of `output`. Its length is that of all uses together."""
        state = PrinterState(self) if pstate is None else pstate
        nodes = io_toposort(state.memo, [output])
        read = {variable for node in nodes for variable in node.inputs}
        for variable in [each for node in nodes for each in node.outputs if each in read]:
            state.memo[variable] = self._written(variable, state)
        return self._written(output, state)

    def _written(self, variable: Variable, state: PrinterState) -> str:
        if variable in state.memo:
            return state.memo[variable]
        op = variable.owner_op
        printer = self.printers_dict.get(op) or self.printers_dict.get(type(op))
        if printer is not None:
            return printer.process(variable, state)
        for condition, chosen in self.printers:
            if condition(state, variable):
                return chosen.process(variable, state)
        return ""

    __call__ = process


class NodePrinter(Printer):
    """A printer of what an Op computes, from the texts of its inputs. Raises TypeError for a root."""

    def process(self, output: Variable, pstate: PrinterState) -> str:
        node = output.owner
        if node is None:
            raise TypeError(f"Printing {output} with {type(self).__name__}: no Op computes it")
        return self.of_node(node, output, [pstate.pprinter.process(each, pstate) for each in node.inputs])

    @abstractmethod
    def of_node(self, node: Apply, output: Variable, inputs: Sequence[str]) -> str:
        """Return the text of `output`, one of those of `node`, for the texts of the node's inputs."""


class OperatorPrinter(NodePrinter):
    """Writes an operator between its arguments, or before a single one, in parentheses."""

    def __init__(self, operator: str, precedence: int = 0, assoc: str = "left") -> None:
        self.operator = operator

    def of_node(self, node: Apply, output: Variable, inputs: Sequence[str]) -> str:
        return (
            f"({self.operator}{inputs[0]})" if len(inputs) == 1 else f"({f' {self.operator} '.join(inputs)})"
        )


class PatternPrinter(NodePrinter):
    """Writes a pattern for each output, in which `%(0)s` is the first input.

    A pattern is a text, or a tuple that begins with one.
    """

    def __init__(self, *patterns: str | tuple[Any, ...]) -> None:
        self.patterns = [pattern if isinstance(pattern, str) else pattern[0] for pattern in patterns]

    def of_node(self, node: Apply, output: Variable, inputs: Sequence[str]) -> str:
        texts = {str(number): text for number, text in enumerate(inputs)}
        return str(self.patterns[node.outputs.index(output)] % texts)


class FunctionPrinter(NodePrinter):
    """Writes a call of a function, one of `names` for each output, with the Op's properties `keywords`."""

    def __init__(self, names: Sequence[str], keywords: Sequence[str] = ()) -> None:
        self.names = names
        self.keywords = keywords

    def of_node(self, node: Apply, output: Variable, inputs: Sequence[str]) -> str:
        keywords = [f"{name}={getattr(node.op, name)}" for name in self.keywords or ()]
        return f"{self.names[node.outputs.index(output)]}({', '.join([*inputs, *keywords])})"


class IgnorePrinter(NodePrinter):
    """Writes the first input alone."""

    def of_node(self, node: Apply, output: Variable, inputs: Sequence[str]) -> str:
        return inputs[0]


class DefaultPrinter(Printer):
    """Writes an Op as a function of its inputs, and a root as its name or its type."""

    def process(self, output: Variable, pstate: PrinterState) -> str:
        if output.owner is None:
            return str(output)
        texts = [pstate.pprinter.process(each, pstate) for each in output.owner.inputs]
        return f"{output.owner.op}({', '.join(texts)})"


default_printer = DefaultPrinter()
