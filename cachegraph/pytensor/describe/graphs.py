"""The canonical encoding of PyTensor's graphs: those that are compiled and those that Ops hold.

    graph    := graph as in cachegraph/graph_codec.py, then uint(n) tagged*
    tagged   := ('v' variable | 'n' uint(node)) value(tags by name)

Nodes of a graph to compile come depth first from its outputs, by identity: two equal nodes are two. Those
of a frozen graph come in its own order, which is part of its identity. Equal constants have one number:
PyTensor's first pass merges them, and which of those in frozen graphs are one object depends on what else
a process made. The encoding contains no names, and only the tags of tags.py; of a frozen graph only those
of constants, since thawing drops the others. A constant that is data is a further input instead, after the
others, in the order in which data occurs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from pytensor.graph.basic import Constant

from cachegraph.errors import Unfingerprintable
from cachegraph.fingerprint.primitives import counted, pack_uint
from cachegraph.graph_codec import GraphEncoder
from cachegraph.named_tuples import NamedTuple
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
    """The encoding of a frozen graph without user Ops and without code that may change, and its modules.

    It holds as long as the data of its constants, `arrays`, has the same names.
    """

    encoding: bytes
    modules: frozenset[str]
    arrays: tuple[tuple[bytes, Any], ...]
    foreign: int


_FROZEN: WeakKeyDictionary[Any, _KnownFrozen] = WeakKeyDictionary()


def encode_frozen(graph: Any, context: EncodingContext) -> bytes:
    """Return the encoding of a frozen graph, cached per graph; raises Unfingerprintable."""
    known = _FROZEN.get(graph)
    if known is not None and all(name_of_array(array) == name for name, array in known.arrays):
        context.modules |= known.modules
        context.arrays += known.arrays
        context.foreign += known.foreign
        return known.encoding
    within = EncodingContext(context.described, encode_frozen)
    within.classes = context.classes
    encoding = PyTensorGraphEncoder(
        graph.inputs, graph.outputs, graph.toposort(), within, thawed=True
    ).encoding()
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
    """Return the encoding of an Op that belongs to no description; raises Unfingerprintable."""
    return encode_op(op, encoding_context())


class PyTensorGraphEncoder(GraphEncoder):
    """The encoder of one graph of PyTensor's.

    `is_data` tells which constants are data (None: none); `data` has them, in the order in which they occur.
    They become further inputs.
    """

    merges_constants = True

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
        self.data = _data_of(inputs, outputs, nodes, is_data)
        super().__init__((*inputs, *self.data), nodes, outputs)
        self.context = context
        self.thawed = thawed

    def encode_type(self, type_: Any) -> bytes:
        """Return the row of a type; raises Unfingerprintable."""
        return encode_type(type_, self.context)

    def encode_op(self, op: Any) -> bytes:
        """Return the row of an Op; raises Unfingerprintable."""
        return self.context.op(op)

    def encode_constant(self, constant: Any) -> bytes:
        """Return the row of a constant, with its tags; raises Unfingerprintable."""
        if not isinstance(constant, Constant):
            raise Unfingerprintable(f"the variable {constant}", "it is computed from nothing that is given")
        try:
            tags = variable_tags(constant)
            encoding = encode_constant(constant, self.context)
            return encoding if tags is None else encoding + encode_value(tags, self.context)
        except Unfingerprintable as error:
            error.inside("a constant")
            raise

    def encoding(self) -> bytes:
        """Return the encoding; raises Unfingerprintable, with the path to what has none."""
        graph = super().encoding()
        return b"".join((graph, *counted(list(self._tagged()))))

    def names(self) -> tuple[str, ...]:
        """Return the names of the variables in the order of their numbers, for explanations only."""
        names = (variable.name for variable in self._variables())
        return tuple(name if isinstance(name, str) else "" for name in names)

    def _variables(self) -> Iterator[Any]:
        yield from self.inputs
        for node in self.nodes:
            yield from node.outputs

    def _tagged(self) -> Iterator[bytes]:
        if self.thawed:
            return
        for variable in self._variables():
            if (tags := variable_tags(variable)) is not None:
                yield b"v" + self.numbers[id(variable)] + encode_value(tags, self.context)
        for position, node in enumerate(self.nodes):
            if (tags := node_tags(node)) is not None:
                yield b"n" + pack_uint(position) + encode_value(tags, self.context)


def nodes_of(inputs: Sequence[Any], outputs: Iterable[Any]) -> list[Any]:
    """Return the nodes between `inputs` and `outputs`, depth first, each after those it needs."""
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
