"""One stored graph, and the frozen graphs that Ops hold, stored and re-interned.

    section  := pickle of (ops, types, constants, applied)
    constant := (position among types, class of the variable, data as in constants.py)
    applied  := u32, little-endian: number of outputs, variable*, node*
    node     := op, number of inputs, variable*, number of outputs, type*      positions among ops and types
    variable := number: the inputs of the graph, then its constants, then the outputs of its nodes in order

The form is flat: neither writing nor reading it recurses, however deep the graph is. An Op refers to the
graphs it holds by their number among the external objects of the pickle, as it does to the functions and
classes of externals.py. Equal types of tensors are one.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

from pytensor.graph.basic import Constant, FrozenApply, NominalVariable
from pytensor.graph.fg import FrozenFunctionGraph, Output
from pytensor.tensor.type import TensorType

from cachegraph import pickling
from cachegraph.named_tuples import NamedTuple
from cachegraph.pytensor.describe.held_arrays import HeldArrays
from cachegraph.pytensor.describe.host_packages import HOST_PACKAGES
from cachegraph.pytensor.stored.constants import pack_constant, same_constant, unpack_constant
from cachegraph.pytensor.stored.externals import arrays_in
from cachegraph.pytensor.stored.op_pickling import dumps, held_graphs

_TRUSTED = (*HOST_PACKAGES, "cachegraph.pytensor.stored.op_pickling")

StoredConstant = tuple[int, Any, Any]


class Section(NamedTuple):
    """One graph: tables of its Ops and types, its constants, and its nodes."""

    ops: tuple[Any, ...]
    types: tuple[Any, ...]
    constants: tuple[StoredConstant, ...]
    applied: bytes

    def dumps(self, external: Sequence[object]) -> bytes:
        """Return the pickled section; raises what pickle raises for an Op or a constant that it refuses."""
        return dumps((self.ops, self.types, self.constants, self.applied), external)

    @classmethod
    def loads(cls, content: bytes, external: Sequence[object]) -> Section:
        """Return the section that `content` holds; raises as pickling.loads does."""
        return cls(*pickling.loads(content, _TRUSTED, external))

    def rebuild(
        self,
        inputs: Sequence[Any],
        apply: Callable[[Any, list[Any], list[Any], int], Sequence[Any]],
    ) -> tuple[list[Any], list[Any]]:
        """Return all variables and the outputs, on these inputs; `apply(op, inputs, types, position)` makes a
        node's outputs.

        Raises StopIteration and IndexError for a section that was not written here.
        """
        variables = [*inputs, *(self._constant(constant) for constant in self.constants)]
        numbers = iter(_numbers(self.applied))
        outputs = list(islice(numbers, next(numbers)))
        for position, op in enumerate(numbers):
            arguments = [variables[number] for number in islice(numbers, next(numbers))]
            types = [self.types[number] for number in islice(numbers, next(numbers))]
            variables += apply(self.ops[op], arguments, types, position)
        return variables, [variables[number] for number in outputs]

    def _constant(self, constant: StoredConstant) -> Any:
        type_number, cls, data = constant
        return unpack_constant(cls, self.types[type_number], data)


class GraphTable:
    """The variables, Ops, types and constants of one graph, numbered as in a section.

    `nodes` are in an order in which they can be computed; `held` are the arrays that constants may refer to.
    Raises Unstorable for a constant that is no plain value.
    """

    def __init__(
        self, inputs: Sequence[Any], nodes: Sequence[Any], outputs: Sequence[Any], held: HeldArrays
    ) -> None:
        self._held = held
        self._ops = _Distinct(id)
        self._types = _Distinct(_type_key)
        self._nodes = nodes
        self._outputs = outputs
        self.variables: list[Any] = [*inputs, *_constants(inputs, nodes, outputs)]
        self._constants = tuple(map(self._constant, self.variables[len(inputs) :]))
        self.variables += (variable for node in nodes for variable in node.outputs)
        # A frozen graph may list one node twice, as its original had two: the first can be computed.
        self._numbers: dict[Any, int] = {}
        for number, variable in enumerate(self.variables):
            self._numbers.setdefault(variable, number)

    @property
    def section(self) -> Section:
        """The section; raises KeyError for a variable that is no input, constant, or node's output."""
        outputs = [self._numbers[output] for output in self._outputs]
        applied = [len(outputs), *outputs, *(number for node in self._nodes for number in self._node(node))]
        packed = struct.pack(f"<{len(applied)}I", *applied)
        return Section(tuple(self._ops.items), tuple(self._types.items), self._constants, packed)

    def _constant(self, variable: Any) -> StoredConstant:
        return self._types.number(variable.type), type(variable), pack_constant(variable.data, self._held)

    def _node(self, node: Any) -> list[int]:
        operands = [self._numbers[variable] for variable in node.inputs]
        types = [self._types.number(variable.type) for variable in node.outputs]
        return [self._ops.number(node.op), len(operands), *operands, len(types), *types]


def _numbers(content: bytes) -> tuple[int, ...]:
    return struct.unpack(f"<{len(content) // 4}I", content)


def _constants(inputs: Sequence[Any], nodes: Sequence[Any], outputs: Sequence[Any]) -> list[Any]:
    """Return the constants of a graph, in the order in which they first occur."""
    operands = (variable for node in nodes for variable in node.inputs)
    known = set(inputs)
    found = (v for v in (*operands, *outputs) if v not in known and isinstance(v, Constant))
    return list(dict.fromkeys(found))


class _Distinct:
    """Objects numbered in the order in which they first occur: those with one key are one."""

    def __init__(self, key_of: Callable[[Any], object]) -> None:
        self._key_of = key_of
        self.items: list[Any] = []
        self._numbers: dict[object, int] = {}

    def number(self, item: Any) -> int:
        number = self._numbers.setdefault(self._key_of(item), len(self.items))
        if number == len(self.items):
            self.items.append(item)
        return number


_ATTRIBUTES_OF_TENSOR_TYPES = frozenset(("dtype", "shape", "broadcastable", "ndim", "name", "numpy_dtype"))


def _type_key(type_: Any) -> object:
    """Return what describes a type of tensors whole; the identity of any other."""
    if type(type_) is not TensorType or type_.__dict__.keys() != _ATTRIBUTES_OF_TENSOR_TYPES:
        return id(type_)
    return type_.dtype, type_.shape, type_.name


def inner_graphs(ops: Sequence[Any], external: Sequence[object]) -> list[Any]:
    """Return the frozen graphs that `ops` hold at all depths, each after those that its own Ops hold.

    Raises what pickle raises for an Op that it refuses.
    """
    found: dict[Any, None] = {}
    waiting: list[tuple[Any, bool]] = [(graph, False) for graph in reversed(held_graphs(ops, external))]
    while waiting:
        graph, is_complete = waiting.pop()
        if is_complete:
            found[graph] = None
        elif graph not in found:
            held = held_graphs([node.op for node in graph.toposort()], external)
            waiting += [(graph, True), *((inner, False) for inner in reversed(held))]
    return list(found)


def named_by(graph: Any) -> list[Any]:
    """Return the objects that Ops holding `graph` refer to: the graph, and the variables that it computes."""
    return [graph, *(variable for node in graph.toposort() for variable in node.outputs)]


def pack_frozen(graph: Any, external: Sequence[object]) -> bytes:
    """Return `graph` in the stored form; `external` has the graphs that its Ops hold."""
    order = graph.toposort()
    section = GraphTable(graph.inputs, order, graph.outputs, arrays_in(external)).section
    positions = tuple(node.topo_idx for node in order)
    types = tuple(variable.type for variable in graph.inputs)
    return pickling.dumps((section.dumps(external), types, positions))


def pack_inner_graphs(graphs: Sequence[Any], external: list[object]) -> list[bytes]:
    """Return frozen graphs in stored form, inner ones first; add to `external` what refers to them."""
    packed = []
    for graph in graphs:
        packed.append(pack_frozen(graph, external))
        external += named_by(graph)
    return packed


def unpack_frozen(content: bytes, external: Sequence[object]) -> Any:
    """Return the canonical frozen graph that `content` holds.

    Raises ValueError if PyTensor has interned an equal node whose constant differs in its bits, and as
    pickling.loads does.
    """
    section, types, positions = pickling.loads(content, HOST_PACKAGES)
    inputs = tuple(NominalVariable(number, type_) for number, type_ in enumerate(types))
    nodes: list[Any] = []

    def apply(op: Any, arguments: list[Any], output_types: list[Any], position: int) -> Any:
        nodes.append(_interned(op, tuple(arguments), tuple(output_types), positions[position]))
        return nodes[-1].outputs

    _, outputs = Section.loads(section, external).rebuild(inputs, apply)
    ends = tuple(_interned(Output(number), (output,), (), -1) for number, output in enumerate(outputs))
    return FrozenFunctionGraph(inputs, tuple(nodes), ends)


def _interned(op: Any, inputs: tuple[Any, ...], types: tuple[Any, ...], position: int) -> Any:
    node = FrozenApply(op, inputs, types, position)
    for wanted, found in zip(inputs, node.inputs, strict=True):
        if wanted is not found and not same_constant(wanted, found):
            raise ValueError(f"{node} is interned with the constant {found!r} where {wanted!r} was stored")
    return node
