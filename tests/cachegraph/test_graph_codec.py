"""Encoded graphs are read back as they were, whatever their rows of types, Ops and constants are."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from cachegraph.fingerprint.primitives import Reader
from cachegraph.graph_codec import GraphEncoder, read_graph


class TextEncoder(GraphEncoder):
    """An encoder of graphs whose types, Ops and constants are texts."""

    merges_constants = True

    def encode_type(self, type_: str) -> bytes:
        return type_.encode()

    def encode_op(self, op: str) -> bytes:
        return op.encode()

    def encode_constant(self, constant: Any) -> bytes:
        return self.type_number(constant.type) + constant.text.encode()


class SeparateEncoder(TextEncoder):
    merges_constants = False


def variable(type_: str = "int", text: str = "") -> Any:
    return SimpleNamespace(type=type_, text=text)


def read(encoding: bytes) -> Any:
    def text(reader: Reader) -> str:
        return reader.take(len(reader.peek(100))).decode()

    reader = Reader(encoding, "reading a graph")
    parts = read_graph(reader, text, text, lambda row, types: f"{types[row.uint()]} {text(row)}")
    reader.end()
    return parts


@pytest.mark.parametrize(("encoder", "constants"), [(TextEncoder, 1), (SeparateEncoder, 2)])
def test_a_graph_is_read_back(encoder: type[TextEncoder], constants: int) -> None:
    x, y, total = variable(), variable("float"), variable("float")
    one, other = variable("float", "1.5"), variable("float", "1.5")
    nodes = [
        SimpleNamespace(op="add", inputs=[x, y, one], outputs=[total]),
        SimpleNamespace(op="add", inputs=[total, other], outputs=[variable("float")]),
    ]
    found = read(encoder([x, y], nodes, [total, *nodes[1].outputs]).encoding())
    due = [("add", [0, 2, 1], ["float"]), ("add", [4, 2 * constants - 1], ["float"])]
    assert found == (["int", "float"], due, [4, 6], ["float 1.5"] * constants)


def test_an_input_that_a_node_computes_stays_an_input() -> None:
    x, y = variable(), variable()
    both = SimpleNamespace(op="divmod", inputs=[x], outputs=[y, variable()])
    found = read(TextEncoder([x, y], [both], [y, both.outputs[1]]).encoding())
    assert found[2] == [2, 6]
