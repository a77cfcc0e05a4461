"""The canonical encoding of PyTensor's graphs, those that are compiled and those that Ops hold.

    graph    := table(type) table(op) table(constant) uint(n) type-number* uint(n) node* uint(n) variable* uint(n) tagged*
    table    := uint(n) bytes*
    node     := op-number uint(n) variable* uint(n) type-number*
    variable := uint: 2 k for variable k (inputs first, then the outputs of each node in turn), 2 j + 1 for constant j
    tagged   := ('v' variable | 'n' uint(node)) value(tags by name)

Nodes of a graph to compile come depth first from its outputs, by identity: two equal nodes are two. Those of a frozen graph
come in its own order, which is part of it. Types, Ops and constants are numbered as they are met, equal ones once: PyTensor's
first pass merges equal constants, and which of those in frozen graphs are one object depends on what else a process made.
Names are not in it, nor are tags but those of tags.py; thawing a frozen graph drops those of all but constants.
A constant that is data has a row of its own among the inputs instead, in the order in which data is met, after the inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from pytensor.graph.basic import Constant

from cachegraph.errors import Unfingerprintable
from cachegraph.fingerprint.primitives import NumberedRows, counted, pack_uint
from cachegraph.pytensor.describe.held_arrays import name_of_array
from cachegraph.pytensor.describe.host_packages import host_checkouts
from cachegraph.pytensor.describe.tags import node_tags, variable_tags
from cachegraph.pytensor.describe.values import (
    EncodingContext,
    encode_constant,
    encode_op,
    encode_type,
    encode_value,
)


class _KnownFrozen(NamedTuple):
    """The encoding of a frozen graph in which neither code was met, which may change, nor Ops of users, and its modules.

    It holds as long as the data of its constants, `arrays`, has the names that it had.
    """

    encoding: bytes
    modules: frozenset[str]
    arrays: tuple[tuple[bytes, Any], ...]
    foreign: int


_FROZEN: WeakKeyDictionary[Any, _KnownFrozen] = WeakKeyDictionary()


def encode_frozen(graph: Any, context: EncodingContext) -> bytes:
    """The encoding of a frozen graph, kept with it; raises Unfingerprintable."""
    known = _FROZEN.get(graph)
    if known is not None and all(name_of_array(array) == name for name, array in known.arrays):
        context.modules |= known.modules
        context.arrays += known.arrays
        context.foreign += known.foreign
        return known.encoding
    within = EncodingContext(context.described, encode_frozen)
    within.classes = context.classes
    encoding = GraphWriter(graph.inputs, graph.outputs, graph.toposort(), within, thawed=True).encoding()
    context.modules |= within.modules
    context.arrays += within.arrays
    context.code += within.code
    context.foreign += within.foreign
    context.coded += within.coded
    for op_encoding, op in within.user_ops.items():
        context.user_ops.setdefault(op_encoding, op)
    if not within.code and not within.user_ops:
        _FROZEN[graph] = _KnownFrozen(
            encoding, frozenset(within.modules), tuple(within.arrays), within.foreign
        )
    return encoding


def encoding_context() -> EncodingContext:
    """Return a context in which nothing was encoded yet."""
    return EncodingContext(host_checkouts(), encode_frozen)


def encode_op_alone(op: Any) -> bytes:
    """The encoding of an Op that is part of no description; raises Unfingerprintable."""
    return encode_op(op, encoding_context())


class GraphWriter:
    """Writes one graph. What is known by its id is kept alive by the graph.

    `is_data` tells which constants are data (None: none): `data` has them, in the order they are met.
    """

    def __init__(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        nodes: Sequence[Any],
        context: EncodingContext,
        *,
        thawed: bool = False,
        is_data: Callable[[Any], bool] | None = None,
    ) -> None:
        self.inputs = inputs
        self.outputs = outputs
        self.nodes = nodes
        self.context = context
        self.thawed = thawed
        self.types = NumberedRows()
        self.ops = NumberedRows()
        self.constants = NumberedRows()
        self.numbers: dict[int, bytes] = {}
        self.data = _data_of(inputs, outputs, nodes, is_data)

    def encoding(self) -> bytes:
        """The encoding; raises Unfingerprintable, with the path to what has none."""
        roots = (*self.inputs, *self.data)
        self.numbers = {id(variable): pack_uint(2 * k) for k, variable in enumerate(roots)}
        inputs = [self._type(variable.type) for variable in roots]
        count = len(inputs)
        nodes: list[bytes] = []
        for node in self.nodes:
            nodes.append(self._node(node))
            for output in node.outputs:
                # One that is given, where another one of the same node is computed, stays what is given.
                self.numbers.setdefault(id(output), pack_uint(2 * count))
                count += 1
        outputs = [self._variable(variable) for variable in self.outputs]
        tables = (self.types.encoding(), self.ops.encoding(), self.constants.encoding())
        parts = (counted(inputs), counted(nodes), counted(outputs), counted(list(self._tagged())))
        return b"".join((*tables, *(piece for part in parts for piece in part)))

    def names(self) -> tuple[str, ...]:
        """The names of the variables, as they are numbered: for explanations, and in no encoding."""
        computed = (output for node in self.nodes for output in node.outputs)
        return tuple(
            name if isinstance(name := variable.name, str) else ""
            for variable in (*self.inputs, *self.data, *computed)
        )

    def _node(self, node: Any) -> bytes:
        op = self.ops.known(node.op) or self.ops.add(node.op, self.context.op(node.op))
        numbers = self.numbers
        inputs = [numbers.get(id(variable)) or self._variable(variable) for variable in node.inputs]
        types = [self._type(variable.type) for variable in node.outputs]
        return b"".join((op, pack_uint(len(inputs)), *inputs, pack_uint(len(types)), *types))

    def _variable(self, variable: Any) -> bytes:
        found = self.numbers.get(id(variable))
        if found is None:
            if not isinstance(variable, Constant):
                raise Unfingerprintable(
                    f"the variable {variable}", "it is computed from nothing that is given"
                )
            position = self.constants.position(self._constant(variable))
            found = self.numbers[id(variable)] = pack_uint(2 * position + 1)
        return found

    def _constant(self, constant: Any) -> bytes:
        try:
            tags = variable_tags(constant)
            encoding = encode_constant(constant, self.context)
            return encoding if tags is None else encoding + encode_value(tags, self.context)
        except Unfingerprintable as error:
            error.inside("a constant")
            raise

    def _type(self, type_: Any) -> bytes:
        return self.types.known(type_) or self.types.add(type_, encode_type(type_, self.context))

    def _tagged(self) -> Iterator[bytes]:
        if self.thawed:
            return
        for variable in (
            *self.inputs,
            *self.data,
            *(output for node in self.nodes for output in node.outputs),
        ):
            if (tags := variable_tags(variable)) is not None:
                yield b"v" + self.numbers[id(variable)] + encode_value(tags, self.context)
        for position, node in enumerate(self.nodes):
            if (tags := node_tags(node)) is not None:
                yield b"n" + pack_uint(position) + encode_value(tags, self.context)


def nodes_of(inputs: Sequence[Any], outputs: Iterable[Any]) -> list[Any]:
    """The nodes between `inputs` and `outputs`, depth first from the outputs, each after what it needs."""
    done = {id(variable) for variable in inputs}
    found: list[Any] = []
    for output in outputs:
        pending = [output]
        while pending:
            variable = pending[-1]
            node = None if id(variable) in done else variable.owner
            missing = (
                [] if node is None else [v for v in node.inputs if id(v) not in done and v.owner is not None]
            )
            if missing:
                pending.extend(reversed(missing))
                continue
            pending.pop()
            if node is not None:
                found.append(node)
                done.update(map(id, node.outputs))
    return found


def _data_of(
    inputs: Sequence[Any], outputs: Sequence[Any], nodes: Sequence[Any], is_data: Callable[[Any], bool] | None
) -> list[Any]:
    if is_data is None:
        return []
    context = (variable for node in nodes for variable in node.inputs)
    given = {id(variable) for variable in inputs}
    found = {
        id(v): v
        for v in (*context, *outputs)
        if isinstance(v, Constant) and id(v) not in given and is_data(v)
    }
    return list(found.values())
