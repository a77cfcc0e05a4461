"""`dprint`: a graph as a tree of text, one line per use of a variable.

A line shows the Op, or the variable without an owner, the id of the node, and the details asked for. `···`
follows a node whose inputs were printed before. Branches deeper than `MAX_INDENT` continue below at the
left margin: so the text grows with the graph and not with the square of its depth. Inner graphs of Ops are
printed once, below: `i0` is the first input of one, and of a loop an arrow says what it is given.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TextIO, get_args

from cachegraph.named_tuples import NamedTuple
from engine.assumptions.summary import assumption_tags
from engine.graph.apply import Apply
from engine.graph.traversal import inner_graph
from engine.graph.variables import Constant, Variable
from engine.graph_files import pydotprint  # noqa: F401 (PyTensor's path)
from engine.inner.scan_roles import ScanRoles, roles_of
from engine.tensor.formula_printers import (  # noqa: F401 (PyTensor's path)
    FunctionPrinter,
    IgnorePrinter,
    OperatorPrinter,
    PatternPrinter,
    PPrinter,
    Printer,
    PrinterState,
    default_printer,
)
from engine.tensor.formulas import pp as pp  # PyTensor's path
from engine.tensor.formulas import pp as pprint  # noqa: F401 (PyTensor's other name)
from engine.tensor.op_texts import op_text
from engine.tensor.printed import Print as Print  # PyTensor's path

MAX_INDENT = 64
MAX_ITEMS = 10
"""Larger constants are printed as their type alone."""

IdType = Literal["CHAR", "int", "id", "auto", ""]


def dprint(
    graph_like: Any,
    depth: int = -1,
    print_type: bool = False,
    print_shape: bool = False,
    file: Literal["str", "rich"] | TextIO | None = None,
    id_type: IdType = "CHAR",
    stop_on_name: bool = False,
    *,
    used_ids: dict[Variable | Apply, str] | None = None,
    print_destroy_map: bool = False,
    print_view_map: bool = False,
    print_memory_map: bool = False,
    print_inner_graphs: bool = True,
    print_fgraph_inputs: bool = False,
    print_assumptions: bool = False,
    print_op_info: bool = False,
) -> Any:
    """Print `graph_like`: a variable, node, graph, compiled function, or a sequence of these.

    `depth` limits the levels (-1: all), `stop_on_name` stops at variables with a name. The other options
    add types, static shapes, the inputs that Ops overwrite (`d=`) and view (`v=`; `print_memory_map` means
    both), the inputs of graphs and functions (`→`), the known properties of matrices (`a={diag}`)
    and what the inputs and outputs of loops are for (`print_op_info`). Ids of nodes are letters, numbers,
    Python's `id`, automatic names of variables ("auto"), or none (`id_type`); texts that share a dictionary
    `used_ids` share ids.

    Write to the text file `file` and return it, to standard output for None; return the text itself for
    "str", and a tree of the library rich for "rich". Refuse (TypeError) other objects, (ValueError) another
    `id_type`.
    """
    if id_type not in get_args(IdType):
        raise ValueError(f"Printing a graph: id_type is {id_type!r}; it is one of {get_args(IdType)}")
    shown = _Shown(
        depth,
        print_type,
        print_shape,
        id_type,
        stop_on_name,
        print_destroy_map or print_memory_map,
        print_view_map or print_memory_map,
        print_op_info,
    )
    parts = _Parts()
    parts.add(graph_like)
    tags = assumption_tags(parts.outputs) if print_assumptions else {}
    printer = _Printer(shown, {} if used_ids is None else used_ids, parts, tags)
    if file == "rich":
        return printer.tree_of_rich(print_inner_graphs)
    lines = printer.lines(print_inner_graphs, print_fgraph_inputs)
    text = "\n".join(lines) + "\n"
    if file == "str":
        return text
    if isinstance(file, str):
        raise TypeError(
            f"Printing a graph to {file!r}: `file` is a text file, None, 'rich' or 'str' (the text itself)"
        )
    (sys.stdout if file is None else file).write(text)
    return file


class _Shown(NamedTuple):
    """The options of `dprint` that choose the parts of a line."""

    depth: int
    type: bool
    shape: bool
    id_type: IdType
    stop_on_name: bool
    destroy_map: bool
    view_map: bool
    op_info: bool


class _Parts:
    """The variables to print, in order, and each node's position in the order of execution, if known."""

    def __init__(self) -> None:
        self.inputs: list[Variable] = []
        self.outputs: list[Variable] = []
        self.order: dict[Apply, int] = {}

    def add(self, item: Any) -> None:
        if isinstance(item, Variable):
            self.outputs.append(item)
        elif isinstance(item, Apply):
            self.outputs.extend(item.outputs)
        elif hasattr(item, "maker"):
            self.add(item.maker.fgraph)
        elif hasattr(item, "outputs") and hasattr(item, "toposort"):
            self.inputs.extend(item.inputs)
            self.outputs.extend(item.outputs)
            self.order.update({node: position for position, node in enumerate(item.toposort())})
        elif isinstance(getattr(item, "variable", None), Variable):
            self.outputs.append(item.variable)
        elif isinstance(item, Iterable) and not isinstance(item, str):
            for each in item:
                self.add(each)
        else:
            raise TypeError(
                f"Printing {item!r}: it is neither a variable, a sequence of variables, a graph "
                "nor a function"
            )


_NOTHING_GIVEN: Mapping[Variable, str] = {}


class _Printer:
    """The state of one text: ids given, nodes printed and Ops with inner graphs."""

    def __init__(
        self,
        shown: _Shown,
        ids: dict[Variable | Apply, str],
        parts: _Parts,
        tags: Mapping[Variable, str],
    ) -> None:
        self.shown = shown
        self.ids = ids
        self.parts = parts
        self.tags = tags
        self.done: set[Apply] = set()
        self.inner: dict[Any, dict[Apply, None]] = {}
        """The Ops with inner graphs, in order, and the nodes that apply each."""

    def lines(self, inner_graphs: bool, inputs: bool) -> Iterator[str]:
        for variable in self.parts.inputs if inputs else ():
            yield from self.tree(variable, "→ ", "  ")
        for variable in self.parts.outputs:
            yield from self.tree(variable, "", "")
        if self.inner and inner_graphs:
            yield from ("", "Inner graphs:")
            yield from self.inner_graphs()

    def tree_of_rich(self, inner_graphs: bool) -> Any:
        """Return the graph as a tree of the library rich."""
        from engine.rich_tree import rich_tree

        inner = self.inner if inner_graphs else {}
        return rich_tree(self.parts.outputs, self.label, inner, self.shown.depth, self.shown.stop_on_name)

    def inner_graphs(self) -> Iterator[str]:
        printed: set[Any] = set()
        while len(printed) < len(self.inner):  # inner graphs may have inner graphs
            op, nodes = next(item for item in self.inner.items() if item[0] not in printed)
            printed.add(op)
            graph = inner_graph(op)
            ids = ", ".join([self.id_of(node) for node in nodes])
            yield from ("", f"{op_text(op)} [id {ids}]" if ids else op_text(op))
            roles = roles_of(op)
            given = {} if roles is None else self.given_to_step(roles, graph.inputs, list(nodes))
            for number, output in enumerate(graph.outputs):
                role = roles.inner_outputs[number] if roles and self.shown.op_info else ""
                yield from self.tree(output, " ← ", "   ", role, given)

    def given_to_step(
        self, roles: ScanRoles, inputs: Sequence[Variable], nodes: Sequence[Apply]
    ) -> dict[Variable, str]:
        """Return for each of `inputs` of a step an arrow to what the only node gives for it, and its role."""
        texts = {v: [f"({role})"] for v, role in zip(inputs, roles.inner_inputs, strict=True)}
        texts = texts if self.shown.op_info else {v: [] for v in inputs}
        outer = roles.outer_inputs
        for variable, role in zip(inputs, roles.inner_inputs, strict=True) if len(nodes) == 1 else ():
            name = role.replace("inner_in", "outer_in")
            place = outer.index(name) if name in outer else outer.index(name.rpartition("-")[0])
            found = nodes[0].inputs[place]
            identity = self.id_of(found.owner or found)
            texts[variable].insert(0, f"-> [id {identity}]" if identity else "")
        return {variable: " ".join(filter(None, words)) for variable, words in texts.items()}

    def tree(
        self,
        root: Variable,
        first: str,
        following: str,
        role: str = "",
        given: Mapping[Variable, str] = _NOTHING_GIVEN,
    ) -> Iterator[str]:
        """Yield the lines of `root` (prefixed by `first`) and of its ancestors (by `following`); `given` are
        the texts behind the inputs of an inner graph.
        """
        sections = [(root, first, following, 1, role)]
        for variable, lead, indent, level, role in sections:
            if self.shown.depth == 0:
                return
            stack = [(variable, lead, indent, level, 0, role)]
            while stack:
                variable, lead, indent, level, width, role = stack.pop()
                yield lead + self.label(variable, role, given)
                node = variable.owner
                if node is None or not node.inputs or level == self.shown.depth:
                    continue
                if node in self.done or (self.shown.stop_on_name and variable.name is not None):
                    yield f"{indent} └─ ···"
                elif width == MAX_INDENT:
                    yield f"{indent} └─ ··· (continued below)"
                    sections.append((variable, "", "", level, role))
                else:
                    self.done.add(node)
                    roles = roles_of(node.op) if self.shown.op_info else None
                    stack.extend(reversed(_branches(node, indent, level + 1, width + 1, roles)))

    def label(
        self, variable: Variable, role: str = "", given: Mapping[Variable, str] = _NOTHING_GIVEN
    ) -> str:
        node, shown = variable.owner, self.shown
        found = self.id_of(variable if node is None else node)
        parts = [_text_of(variable), f"[id {found}]" if found else ""]
        parts.append(f"<{variable.type}>" if shown.type else "")
        parts.append(_shape_of(variable) if shown.shape else "")
        parts.append(f"a={self.tags[variable]}" if variable in self.tags else "")
        if node is not None:
            if inner_graph(node.op) is not None:
                self.inner.setdefault(node.op, {})[node] = None
            parts.append("" if variable.name is None else f"'{variable.name}'")
            parts.append(f"d={node.op.destroy_map}" if shown.destroy_map and node.op.destroy_map else "")
            parts.append(f"v={node.op.view_map}" if shown.view_map and node.op.view_map else "")
            parts.append(str(self.parts.order.get(node, "")))
            roles = roles_of(node.op) if shown.op_info and not role else None
            role = roles.outer_outputs[node.outputs.index(variable)] if roles else role
        parts += [given.get(variable, ""), f"({role})" if role else ""]
        return " ".join([part for part in parts if part])

    def id_of(self, item: Variable | Apply) -> str:
        if item not in self.ids:
            number = len(self.ids)
            styles = {"CHAR": char_from_number(number), "int": str(number), "id": str(id(item)), "": ""}
            is_named = self.shown.id_type == "auto"
            self.ids[item] = _auto_name(item) if is_named else styles[self.shown.id_type]
        return self.ids[item]


def _auto_name(item: Variable | Apply) -> str:
    """Return the automatic name of a variable, or of the first output of a node."""
    return (item if isinstance(item, Variable) else item.outputs[0]).auto_name


def _branches(
    node: Apply, indent: str, level: int, width: int, roles: ScanRoles | None
) -> list[tuple[Variable, str, str, int, int, str]]:
    last = len(node.inputs) - 1
    return [
        (
            variable,
            f"{indent} {'└' if i == last else '├'}─ ",
            f"{indent} {' ' if i == last else '│'} ",
            level,
            width,
            "" if roles is None else roles.outer_inputs[i],
        )
        for i, variable in enumerate(node.inputs)
    ]


def _text_of(variable: Variable) -> str:
    node = variable.owner
    if node is not None:
        text = op_text(node.op)
        return text if len(node.outputs) == 1 else f"{text}.{variable.index}"
    if isinstance(variable, Constant) and getattr(variable.data, "size", 1) > MAX_ITEMS:
        return f"<{variable.type}>"
    return " ".join(str(variable).split())


def _shape_of(variable: Variable) -> str:
    shape: Sequence[int | None] | None = getattr(variable.type, "shape", None)
    return "" if shape is None else f"shape={str(tuple(shape)).replace('None', '?')}"


def char_from_number(number: int) -> str:
    """Return `number` as letters, as dprint numbers nodes: A to Z, then BA, BB and so on."""
    number, digit = divmod(number, 26)
    return (char_from_number(number) if number else "") + chr(ord("A") + digit)


def get_node_by_id(graphs: Any, target_var_id: str, id_types: IdType = "CHAR") -> Any:
    """Return the variable or node that `dprint(graphs)` gives the id `target_var_id`, or None."""
    ids: dict[Variable | Apply, str] = {}
    dprint(graphs, file="str", id_type=id_types, used_ids=ids)
    return next((item for item, found in ids.items() if found == target_var_id), None)


def min_informative_str(obj: Variable) -> str:
    """Return the graph of `obj` in lines of `A. name`, indented by depth; a name ends its branch.

    What was written before is written as its letters alone, `<B>`.
    """
    letters: dict[Variable, str] = {}
    lines: list[str] = []
    waiting = [(obj, 0)]
    while waiting:
        found, depth = waiting.pop()
        if found in letters:
            lines.append(f"{' ' * depth}<{letters[found]}>")
            continue
        letters[found] = char_from_number(len(letters))
        is_leaf = found.owner is None or found.name is not None
        text = str(found) if is_leaf or found.owner is None else op_text(found.owner.op)
        lines.append(f"{' ' * depth}{letters[found]}. {text}")
        if not is_leaf and found.owner is not None:
            waiting += [(each, depth + 1) for each in reversed(found.owner.inputs)]
    return "\n".join(lines)


debugprint = dprint
