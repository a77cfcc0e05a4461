"""The encoding of a graph, written and read back: the grammar that keys of the engine and the adapter
share.

    graph    := table(type) table(op) table(constant) uint(n) type-number* uint(n) node* uint(n) variable*
    table    := uint(n) bytes*
    node     := op-number uint(n) variable* uint(n) type-number*
    variable := uint: 2 k for variable k (inputs, then each node's outputs), 2 j + 1 for constant j

`uint` and `bytes` as in fingerprint/primitives.py. Types and Ops are numbered in the order in which they
first occur, equal ones once. A subclass of GraphEncoder encodes types, Ops and constants, and says whether
equal constants have one number. This module imports no decoder of values: a hit needs the encoder alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from cachegraph.fingerprint.primitives import NumberedRows, Reader, counted, pack_uint, prefixed

Node = tuple[Any, list[int], list[str]]
"""A node that was read: its Op, its inputs as numbers of variables, and the types of its outputs."""


class GraphEncoder:
    """An encoder of one graph, whose nodes come in the order that its structure or its execution gives.

    Types, Ops and variables are known by id: the graph keeps them alive.
    """

    merges_constants: ClassVar[bool]

    def __init__(self, inputs: Sequence[Any], nodes: Sequence[Any], outputs: Sequence[Any]) -> None:
        self.inputs = inputs
        self.nodes = nodes
        self.outputs = outputs
        self.numbers: dict[int, bytes] = {}
        self._types = NumberedRows()
        self._ops = NumberedRows()
        self._constants: list[bytes] = []
        self._constant_numbers: dict[bytes, int] = {}

    def encode_type(self, type_: Any) -> bytes:
        """Return the row of a type."""
        raise NotImplementedError

    def encode_op(self, op: Any) -> bytes:
        """Return the row of an Op."""
        raise NotImplementedError

    def encode_constant(self, constant: Any) -> bytes:
        """Return the row of `constant`: a variable that is no input and that no node computes."""
        raise NotImplementedError

    def encoding(self) -> bytes:
        """Return the encoding; raises what the writers of the rows raise."""
        self.numbers = {id(variable): pack_uint(2 * k) for k, variable in enumerate(self.inputs)}
        inputs = [self.type_number(variable.type) for variable in self.inputs]
        count = len(inputs)
        nodes: list[bytes] = []
        for node in self.nodes:
            nodes.append(self._node(node))
            for output in node.outputs:
                # An input stays an input, even if a node that is needed for another output computes it.
                self.numbers.setdefault(id(output), pack_uint(2 * count))
                count += 1
        outputs = [self._number(variable) for variable in self.outputs]
        constants = pack_uint(len(self._constants)) + b"".join(map(prefixed, self._constants))
        tables = (self._types.encoding(), self._ops.encoding(), constants)
        return b"".join((*tables, *counted(inputs), *counted(nodes), *counted(outputs)))

    def type_number(self, type_: Any) -> bytes:
        """Return the packed number of a type."""
        return self._types.known(type_) or self._types.add(type_, self.encode_type(type_))

    def _node(self, node: Any) -> bytes:
        op = self._ops.known(node.op) or self._ops.add(node.op, self.encode_op(node.op))
        numbers = self.numbers
        inputs = [numbers.get(id(variable)) or self._number(variable) for variable in node.inputs]
        types = [self.type_number(variable.type) for variable in node.outputs]
        return b"".join((op, *counted(inputs), *counted(types)))

    def _number(self, variable: Any) -> bytes:
        found = self.numbers.get(id(variable))
        if found is None:
            position = self._constant_position(self.encode_constant(variable))
            found = self.numbers[id(variable)] = pack_uint(2 * position + 1)
        return found

    def _constant_position(self, row: bytes) -> int:
        new = len(self._constants)
        position = self._constant_numbers.setdefault(row, new) if self.merges_constants else new
        if position == new:
            self._constants.append(row)
        return position


def read_graph(
    reader: Reader,
    read_type: Callable[[Reader], str],
    read_op: Callable[[Reader], Any],
    read_constant: Callable[[Reader, Sequence[str]], str],
) -> tuple[list[str], list[Node], list[int], list[str]]:
    """Return the input types, nodes, outputs (numbers of variables) and constants of the graph that follows.

    Each function reads a row of its table, `read_constant` with the types. Raises InvalidEncoding and
    IndexError for what no GraphEncoder wrote, and what the functions raise.
    """
    types = [read_type(reader.nested()) for _ in range(reader.uint())]
    ops = [read_op(reader.nested()) for _ in range(reader.uint())]
    constants = [read_constant(reader.nested(), types) for _ in range(reader.uint())]
    inputs = [types[number] for number in _read_numbers(reader)]
    nodes = [_read_node(reader, ops, types) for _ in range(reader.uint())]
    return inputs, nodes, _read_numbers(reader), constants


def _read_node(reader: Reader, ops: Sequence[Any], types: Sequence[str]) -> Node:
    op, inputs = ops[reader.uint()], _read_numbers(reader)
    return op, inputs, [types[number] for number in _read_numbers(reader)]


def _read_numbers(reader: Reader) -> list[int]:
    return [reader.uint() for _ in range(reader.uint())]
