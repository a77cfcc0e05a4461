"""The stored form of a graph that was derived from another, on variables of that other graph.

    content := format(1 byte) uint(number of frozen graphs) bytes(frozen)* bytes(main)
    main    := pickle of (section, names, tags of variables, tags of nodes)

`uint` and `bytes` as in fingerprint/primitives.py, frozen graphs as in stored_graph.py, sections as in
graph_section.py: the inputs of the section are the variables in hand, in an order that the key determines.
`names` are pairs of a variable's number and the number of a variable of that name, among those in hand and
the outputs of the graph in hand. Tags are pairs of a number and the tags that are identity
(describe/tags.py).

Version history
    1  first
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytensor.compile.builders import OpFromGraph
from pytensor.configdefaults import config
from pytensor.graph.basic import Apply, Variable

from cachegraph import pickling
from cachegraph.fingerprint.primitives import Reader, pack_uint, prefixed
from cachegraph.named_tuples import NamedTuple
from cachegraph.pytensor.describe.attributes import with_parts
from cachegraph.pytensor.describe.graphs import nodes_of
from cachegraph.pytensor.describe.host_packages import HOST_PACKAGES
from cachegraph.pytensor.describe.tags import node_tags, refuse_user_tags, variable_tags
from cachegraph.pytensor.errors import Unstorable
from cachegraph.pytensor.stored.externals import Context, arrays_in
from cachegraph.pytensor.stored.graph_section import (
    GraphTable,
    Section,
    inner_graphs,
    named_by,
    pack_inner_graphs,
    unpack_frozen,
)

FORMAT = 1
MOST_BYTES = 1 << 20
"""The longest stored form. What is longer holds numbers that were computed from data, anew for other data."""


class InHand(NamedTuple):
    """The variables `given` that a derived graph is built on, and the outputs `of` the graph in hand.

    `context` has what its stored form refers to.
    """

    given: tuple[Any, ...]
    of: tuple[Any, ...]
    context: Context


def pack_derived(outputs: Sequence[Any], hand: InHand) -> bytes:
    """Return the graph of `outputs` in its stored form.

    Raises Unstorable for a gradient that a user gave, which would be lost, for a constant that is no plain
    value, and for more than MOST_BYTES; Unfingerprintable for a tag of a user's; and what pickle raises for
    an Op that it refuses.
    """
    given = hand.given
    nodes = nodes_of(given, outputs)
    _refuse_lost(nodes, outputs)
    external = hand.context.external()
    frozen = pack_inner_graphs(inner_graphs([node.op for node in nodes], external), external)
    table = GraphTable(given, nodes, outputs, arrays_in(external))
    first = len(given)
    made = table.variables[first:]
    numbers = {v.name: number for number, v in enumerate((*given, *hand.of)) if v.name}
    names = [(first + n, numbers[v.name]) for n, v in enumerate(made) if v.name in numbers]
    tags = [(first + n, found) for n, v in enumerate(made) if (found := variable_tags(v)) is not None]
    of_nodes = [(n, found) for n, node in enumerate(nodes) if (found := node_tags(node)) is not None]
    main = pickling.dumps((table.section.dumps(external), names, tags, of_nodes))
    content = b"".join((bytes((FORMAT,)), pack_uint(len(frozen)), *map(prefixed, (*frozen, main))))
    if len(content) > MOST_BYTES:
        raise Unstorable(f"{len(content)} bytes, most of them numbers")
    return content


def unpack_derived(content: bytes, hand: InHand) -> list[Any]:
    """Return the outputs of the graph that `content` holds.

    Raises InvalidEncoding for what `pack_derived` did not write, and as pickling.loads does.
    """
    reader = Reader(content, "reading a derived graph")
    if (version := reader.byte()) != FORMAT:
        raise reader.error(f"format {FORMAT}", f"format {version}")
    external, given = hand.context.external(), hand.given
    # Types were warned of when the graph was made; and errors should not name this line as an origin.
    with config.change_flags(warn_float64="ignore", traceback__limit=0):
        for _ in range(reader.uint()):
            external += named_by(unpack_frozen(reader.bytes(), external))
        section, names, tags, of_nodes = pickling.loads(reader.bytes(), HOST_PACKAGES)
        reader.end()
        nodes: list[Any] = []

        def apply(op: Any, inputs: list[Any], types: list[Any], position: int) -> list[Any]:
            node = Apply(op, inputs, [type_() for type_ in types])
            nodes.append(node)
            return list(node.outputs)

        variables, outputs = Section.loads(section, external).rebuild(given, apply)
    of_hand = (*given, *hand.of)
    for number, named in names:
        variables[number].name = of_hand[named].name
    for holders, found in ((variables, tags), (nodes, of_nodes)):
        for number, values in found:
            holders[number].tag.__dict__.update(values)
    return outputs


def _refuse_lost(nodes: Sequence[Any], outputs: Sequence[Any]) -> None:
    if not all(isinstance(output, Variable) for output in outputs):
        raise Unstorable("a result that is no variable")
    for op in with_parts(node.op for node in nodes):
        if isinstance(op, OpFromGraph) and (op.pullback_overrides or op.pushforward_overrides):
            raise Unstorable(f"a gradient that {op} was given")
    refuse_user_tags(nodes)
