"""What people note on a graph, names and tags of their own, where code of theirs may read it.

    notes := value((of variables, of nodes))
    of variables := (position, name, tags by name)*     inputs first, then of each node its constants and its outputs
    of nodes := (position, tags by name, names of its Op and of those within)*

PyTensor's own rewrites and those of PyMC read no name, and no tag but those of tags.py. A rewrite or an implementation for
numba that was registered by somebody else may: with such a one the notes are in the key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pytensor.graph.basic import Constant
from pytensor.graph.op import HasInnerGraph, Op

from cachegraph.errors import Unfingerprintable
from cachegraph.pytensor.describe.tags import own_tags
from cachegraph.pytensor.describe.values import Met, encode_value


def encode_notes(inputs: Sequence[Any], outputs: Sequence[Any], nodes: Sequence[Any], met: Met) -> bytes:
    """The encoding of what is noted on a graph; raises Unfingerprintable for a tag that has none."""
    variables = enumerate((*inputs, *_variables(nodes), *(v for v in outputs if isinstance(v, Constant))))
    of_variables = [(place, v.name, own_tags(v)) for place, v in variables if v.name or own_tags(v)]
    rows = ((place, own_tags(node), list(op_names(node.op))) for place, node in enumerate(nodes))
    return encode_value((of_variables, [row for row in rows if row[1] or any(row[2])]), met)


def op_names(op: Any) -> Iterator[str | None]:
    """The names of `op` and of the Ops within it, of which some have none."""
    waiting = [op]
    while waiting:
        found = waiting.pop()
        name = getattr(found, "name", None)
        yield name if isinstance(name, str) else None
        inner = [node.op for node in found.fgraph.toposort()] if isinstance(found, HasInnerGraph) else []
        waiting += reversed([*parts_of(found), *inner])


def parts_of(op: Any) -> list[Any]:
    """The Ops that `op` applies to parts of what it is given."""
    held = (getattr(op, name, None) for name in ("core_op", "scalar_op"))
    return [part for part in held if isinstance(part, Op)]


def refuse_tags(nodes: Sequence[Any]) -> None:
    """Raise Unfingerprintable for tags of a user's on what `nodes` of their Ops are given to run by: a stored graph has none."""
    for node in nodes:
        for holder in (node, *node.inputs, *node.outputs):
            if tags := own_tags(holder):
                raise Unfingerprintable(
                    f"the tags {sorted(tags)} at {node}, whose Op may read them when it runs",
                    "let Ops hold what they need",
                )


def _variables(nodes: Sequence[Any]) -> Iterator[Any]:
    for node in nodes:
        yield from (variable for variable in node.inputs if isinstance(variable, Constant))
        yield from node.outputs
