"""The tags of variables and nodes: those that are identity, and those of users.

A tag is identity if something that decides results reads it and nothing else in the graph says the same.
Three tables name every tag that PyTensor 3.3 and PyMC 6.4 know, and its readers; a test reads their source
for tags that are in no table (docs/decisions/0050). All other tags are a user's own.

PyTensor's own rewrites and those of PyMC read no name, and no tag but those of these tables. A rewrite or
an implementation for numba that somebody else registered may read both: if there is one, the key contains
names and tags as notes.

    notes := value((of variables, of nodes))
    of variables := (position, name, tags by name)*     inputs, then of each node its constants and outputs
    of nodes := (position, tags by name, names of its Op and of those within)*
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pytensor.graph.basic import Constant
from pytensor.graph.op import HasInnerGraph

from cachegraph.errors import Unfingerprintable
from cachegraph.pytensor.describe.attributes import parts_of
from cachegraph.pytensor.describe.values import EncodingContext, encode_value

OF_VARIABLES = {
    "psd": "tensor/rewriting/linalg/utils.py: solve becomes cholesky",
    "symmetric": "tensor/rewriting/linalg/utils.py: solve of a symmetric matrix",
    "lower_triangular": "tensor/rewriting/linalg: solve becomes a triangular one; set by pymc/math.py",
    "upper_triangular": "tensor/rewriting/linalg: solve becomes a triangular one; set by pymc/math.py",
    "positive": "tensor/rewriting/linalg/summary.py of PyTensor 3.3.0: log of a product becomes a sum",
    "indestructible": "graph/destroyhandler.py: what must not be overwritten",
}
"""Tags of variables that are identity, and their readers."""

OF_NODES = {
    "local_log_erfc_applied": "tensor/rewriting/math.py: not to be rewritten again",
    "local_grad_log_erfc_neg": "tensor/rewriting/math.py: not to be rewritten again",
}
"""Tags of nodes that are identity if they are set, and their readers."""

NOT_IDENTITY = {
    "trace": "where a variable was made: shown with errors",
    "removed_by": "which rewrites removed a node: for debugging",
    "imported_by": "which rewrites added a node: for debugging",
    "values_eq_approx": "how DebugMode compares",
    "nan_guard_mode_check": "whether NanGuardMode looks",
    "used": "whether a generator was drawn from: for a warning when a graph is made",
    "observations": "pymc/model/core.py: for readers of a model",
    "transform": "pymc/model/core.py: for readers of a model",
    "is_diagonal": "assumptions/diagonal.py: derived from a constant's data",
    "is_tridiagonal": "assumptions/tridiagonal.py: derived from a constant's data",
    "is_permutation": "assumptions/permutation.py: derived from a constant's data",
    "is_selection": "assumptions/selection.py: derived from a constant's data",
    "is_arange": "tensor/rewriting/subtensor.py: derived from a constant's data",
    "is_positive": "tensor/subtensor.py: derived from a constant's data",
    "is_non_negative": "tensor/subtensor.py: derived from a constant's data",
    "unique_indices": "tensor/rewriting/subtensor.py: derived from a constant's data",
    "jointly_unique_indices": "tensor/rewriting/subtensor.py: derived from a constant's data",
    "connection_pattern": "scan/op.py: derived from the node",
    "ufunc": "tensor/elemwise.py: what perform calls, cached",
    "gufunc": "tensor/blockwise.py: what perform calls, cached",
    "sig": "tensor/elemwise.py: how perform calls, cached",
    "fake_node": "tensor/elemwise.py: what C code is made for, cached",
}
"""Tags that are not identity, and why."""

_DECLARED = frozenset((*OF_VARIABLES, *OF_NODES, *NOT_IDENTITY))
_OF_VARIABLES = frozenset(OF_VARIABLES)
_OF_NODES = frozenset(OF_NODES)


def variable_tags(variable: Any) -> dict[str, object] | None:
    """Return the tags of `variable` that are identity, by name; None if it has none."""
    tags = variable.tag.__dict__
    if _OF_VARIABLES.isdisjoint(tags):
        return None
    return {name: tags[name] for name in _OF_VARIABLES & tags.keys()}


def node_tags(node: Any) -> dict[str, object] | None:
    """Return the tags of `node` that are identity, by name; None if it has none."""
    tags = node.tag.__dict__
    if _OF_NODES.isdisjoint(tags):
        return None
    return dict.fromkeys(_OF_NODES & tags.keys(), True)


def user_tags(holder: Any) -> dict[str, object]:
    """Return the tags of a variable or node that neither PyTensor nor PyMC knows, by name."""
    tags = holder.tag.__dict__
    return {name: value for name, value in tags.items() if name not in _DECLARED}


def encode_notes(
    inputs: Sequence[Any], outputs: Sequence[Any], nodes: Sequence[Any], context: EncodingContext
) -> bytes:
    """Return the encoding of a graph's names and tags; raises Unfingerprintable for a tag."""
    variables = enumerate((*inputs, *_variables(nodes), *(v for v in outputs if isinstance(v, Constant))))
    of_variables = [(place, v.name, user_tags(v)) for place, v in variables if v.name or user_tags(v)]
    rows = ((place, user_tags(node), list(op_names(node.op))) for place, node in enumerate(nodes))
    return encode_value((of_variables, [row for row in rows if row[1] or any(row[2])]), context)


def op_names(op: Any) -> Iterator[str | None]:
    """Yield the names of `op` and of the Ops within it, None for one without a name."""
    waiting = [op]
    while waiting:
        found = waiting.pop()
        name = getattr(found, "name", None)
        yield name if isinstance(name, str) else None
        inner = [node.op for node in found.fgraph.toposort()] if isinstance(found, HasInnerGraph) else []
        waiting += reversed([*parts_of(found), *inner])


def refuse_user_tags(nodes: Sequence[Any]) -> None:
    """Raise Unfingerprintable for user tags at `nodes`, whose Ops may read them: a stored graph has none."""
    for node in nodes:
        for holder in (node, *node.inputs, *node.outputs):
            if tags := user_tags(holder):
                raise Unfingerprintable(
                    f"the tags {sorted(tags)} at {node}, whose Op may read them when it runs",
                    "let Ops hold what they need",
                )


def _variables(nodes: Sequence[Any]) -> Iterator[Any]:
    for node in nodes:
        yield from (variable for variable in node.inputs if isinstance(variable, Constant))
        yield from node.outputs
