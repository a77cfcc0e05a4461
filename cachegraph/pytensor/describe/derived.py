"""The key of a graph that PyTensor and PyMC derive from another: rewritten, differentiated, or a log density.

    key := level "op": scheme graph derivation rewrites registrations options code toolchain target

graph: graphs.py, of the graph that is given; derivation: its kind, and what it is told besides the graph, as
in values.py. The other parts are those of a function (key.py); the rewrites are all that are registered.

Only code of PyTensor, PyMC and their dependencies may take part: whose code runs, and what it reads, is then
in the key with the releases. All data of the graph is in the key with its content: rewrites fold it.

Version history
    1  first
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from types import FunctionType
from typing import Any

from pytensor.compile.mode import optdb
from pytensor.graph.basic import Constant
from pytensor.tensor.basic import infer_shape_db

from cachegraph.errors import Unfingerprintable
from cachegraph.fingerprint.encoding import encode
from cachegraph.key import CacheKey
from cachegraph.named_tuples import NamedTuple
from cachegraph.pytensor.describe.basis import Basis
from cachegraph.pytensor.describe.graphs import PyTensorGraphEncoder, encoding_context, nodes_of
from cachegraph.pytensor.describe.host_packages import HOST_PACKAGES
from cachegraph.pytensor.describe.key import surroundings
from cachegraph.pytensor.describe.registries import is_of
from cachegraph.pytensor.describe.rewrites import encode_databases
from cachegraph.pytensor.describe.tags import refuse_user_tags
from cachegraph.pytensor.describe.values import EncodingContext, encode_value

VERSION = 1
MOST_DATA = 1 << 22
"""The most bytes of constants: to read more takes longer than most derivations."""
_DENSITIES = "pymc.logprob.rewriting"
_DISPATCHERS = "pymc.logprob.abstract"


class DerivedDescription(NamedTuple):
    """The full description of a derived graph: `given` are the roots of the graph that it is derived from,
    `nodes` those of that graph, each after those it needs. `basis` tells whether its data is unchanged.
    """

    key: CacheKey
    given: tuple[Any, ...]
    nodes: tuple[Any, ...]
    basis: Basis


def describe_derived(kind: str, outputs: Sequence[Any], told: object) -> DerivedDescription:
    """Return the description of what the derivation `kind` makes of the graph of `outputs`.

    `told` is the rest of its arguments. Raises Unfingerprintable for what has no canonical encoding, and
    where code or tags of others may take part; SourceError as `describe` does.
    """
    context = encoding_context()
    given = _roots(outputs)
    nodes = nodes_of(given, outputs)
    refuse_user_tags(nodes)
    _refuse_much_data(nodes, outputs)
    parts = {
        "scheme": encode(("pytensor derived graph", VERSION)),
        "graph": PyTensorGraphEncoder(given, outputs, nodes, context).encoding(),
        "derivation": encode_value((kind, told), context),
    }
    basis = Basis(context)
    parts |= surroundings(context, _rewrites)
    if context.by_others or context.user_ops:
        raise Unfingerprintable("code of others", "only graphs and rewrites of PyTensor and PyMC are derived")
    return DerivedDescription(CacheKey.build("op", parts), tuple(given), tuple(nodes), basis)


def refuse_foreign_densities() -> None:
    """Raise Unfingerprintable if others than PyMC say what the log density of one of its distributions is."""
    for cls, function in _registered():
        if _is_held(cls) and not is_of(HOST_PACKAGES, function):
            raise Unfingerprintable(
                f"the log density of {cls.__qualname__}",
                f"it is {getattr(function, '__qualname__', function)}",
            )


def _registered() -> Iterator[tuple[type, Any]]:
    for item in vars(sys.modules[_DISPATCHERS]).values():
        if isinstance(item, FunctionType) and hasattr(item, "registry"):
            yield from item.registry.items()


def _is_held(cls: type) -> bool:
    """Return True for `object`, and for a class that a module of PyTensor's or PyMC's has under its name.

    PyMC makes classes of its own for distributions of users: no graph that has a key holds one.
    """
    return cls is object or (
        is_of(HOST_PACKAGES, cls) and getattr(sys.modules.get(cls.__module__), cls.__name__, None) is cls
    )


def _roots(outputs: Iterable[Any]) -> list[Any]:
    """Return the variables that the graph of `outputs` is computed from, constants excepted."""
    found: dict[Any, None] = {}
    seen: set[Any] = set()
    pending = list(outputs)[::-1]
    while pending:
        variable = pending.pop()
        if variable in seen:
            continue
        seen.add(variable)
        if variable.owner is not None:
            pending.extend(variable.owner.inputs[::-1])
        elif not isinstance(variable, Constant):
            found[variable] = None
    return list(found)


def _refuse_much_data(nodes: Iterable[Any], outputs: Iterable[Any]) -> None:
    """Raise Unfingerprintable for more than MOST_DATA bytes of constants, before they are read."""
    variables = (*outputs, *(variable for node in nodes for variable in node.inputs))
    sizes = {id(v.data): getattr(v.data, "nbytes", 0) for v in variables if isinstance(v, Constant)}
    if (total := sum(sizes.values())) > MOST_DATA:
        raise Unfingerprintable(
            f"{total} bytes of data", f"of graphs with more than {MOST_DATA} none is kept"
        )


def _rewrites(late: frozenset[str], context: EncodingContext) -> bytes:
    """Return the encoding of all that is registered; with PyMC, its rewrites of densities too."""
    densities = sys.modules.get(_DENSITIES)
    of_pymc = () if densities is None else (densities.logprob_rewrites_db,)
    return encode_databases((optdb, infer_shape_db, *of_pymc), late, context)
