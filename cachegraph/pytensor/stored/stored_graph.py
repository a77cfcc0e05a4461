"""The stored form of a function's optimized graph, and that graph, read back when somebody looks at it.

    content := format(1 byte) uint(number of outputs) source* uint(number of frozen graphs) bytes(frozen)*
               bytes(main)
    source  := uint: 0 a computed output | 1 a constant | 2+i the input i | 2+n+j the output j before it,
               n the number of inputs
    frozen  := pickle of (section, types of the inputs, place of each node in a baked order)
    main    := pickle of (section, names, features)

`uint` and `bytes` as in fingerprint/primitives.py, sections and frozen graphs (those that Ops hold) as in
graph_section.py. A frozen graph refers to those before it, and to the variables they compute, by numbers
that follow those of externals.py. `names` are pairs of a variable and the number of its name. `features`
are the names of the Features attached to the graph, each with what rebuilds it.

Version history
    1  first
    2  constants refer to arrays of the graph in hand
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from pytensor.compile.aliasing import Supervisor
from pytensor.configdefaults import config
from pytensor.graph.basic import Apply, Constant
from pytensor.graph.destroyhandler import DestroyHandler
from pytensor.graph.features import PreserveVariableAttributes
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.rewriting.shape import ShapeFeature

from cachegraph import pickling
from cachegraph.fingerprint.encoding import encode
from cachegraph.fingerprint.primitives import Reader, pack_uint, prefixed, strong_digest
from cachegraph.key import CacheKey
from cachegraph.pytensor.describe.basis import Basis
from cachegraph.pytensor.describe.host_packages import HOST_PACKAGES

if TYPE_CHECKING:
    from cachegraph.pytensor.stored.externals import Context

FORMAT = 2
COMPUTED = 0
CONSTANT = 1
FIRST_INPUT = 2

_FEATURES = {cls.__name__: cls for cls in (PreserveVariableAttributes, ShapeFeature, DestroyHandler)}


class StoredGraph:
    """An optimized graph in its stored form: `content`, found under `key`, on the variables `inputs`.

    `sources` says where each result comes from (see the grammar). `context` gives what `content` refers to
    when it is read. `basis` tells whether what the key describes is unchanged. `nodes` are those of the graph
    that was packed, or read last, in the order of `content`.
    """

    def __init__(
        self,
        key: CacheKey,
        content: bytes,
        inputs: Sequence[Any],
        context: Callable[[], Context],
        basis: Basis,
    ) -> None:
        self.key = key
        self.content = content
        self.inputs = list(inputs)
        self.sources = read_sources(content)
        self.context = context
        self.basis = basis
        self.nodes: list[Any] = []

    @cached_property
    def description(self) -> bytes:
        """The description that the code of this graph is stored under: the function's key and the graph, to
        the last bit.

        If two processes rewrite one graph differently, each finds the code of its own result.
        """
        return encode((self.key.confirmation, strong_digest(self.content)))

    def load(self) -> Any:
        """Return the graph; raises InvalidEncoding, and what loading pickles raises."""
        # The graph's maker was warned already; and errors should not name this line as a variable's origin.
        with config.change_flags(warn_float64="ignore", traceback__limit=0):
            graph, self.nodes = unpack(self.content, self.context(), self.inputs)
        return graph

    def outline(self) -> Any:
        """Return what a new Function reads of its graph: inputs, and which results a node computes."""
        roots = [None] * len(self.inputs)
        for source in self.sources:
            is_fresh = source < FIRST_INPUT
            roots.append(
                (_COMPUTED if source == COMPUTED else None) if is_fresh else roots[source - FIRST_INPUT]
            )
        results = [SimpleNamespace(owner=owner) for owner in roots[len(self.inputs) :]]
        return SimpleNamespace(inputs=self.inputs, outputs=results, apply_nodes=())


_COMPUTED: Any = SimpleNamespace()
"""A stand-in for the node that computes a result."""


def pack(fgraph: Any, order: Sequence[Any], context: Context) -> bytes:
    """Return `fgraph`, whose nodes can be computed in `order`, in its stored form.

    It refers to the objects of `context`; names that it lacks are lost.

    Raises Unstorable for a constant that is no plain value, and what pickle raises for an Op that it refuses.
    """
    from cachegraph.pytensor.stored.externals import arrays_in
    from cachegraph.pytensor.stored.graph_section import GraphTable, inner_graphs, pack_inner_graphs

    external = context.external()
    frozen = pack_inner_graphs(inner_graphs([node.op for node in order], external), external)
    table = GraphTable(fgraph.inputs, order, fgraph.outputs, arrays_in(external))
    kept = _kept_names(table.variables[len(fgraph.inputs) :], len(fgraph.inputs), context.names)
    main = pickling.dumps((table.section.dumps(external), kept, _features(fgraph)))
    sources = output_sources(fgraph)
    head = (bytes((FORMAT,)), pack_uint(len(sources)), *map(pack_uint, sources), pack_uint(len(frozen)))
    return b"".join((*head, *map(prefixed, (*frozen, main))))


def read_sources(content: bytes) -> list[int]:
    """Return where each result of the graph in `content` comes from; raises InvalidEncoding."""
    return _read_sources(Reader(content, "reading an optimized graph"))


def unpack(content: bytes, context: Context, inputs: Sequence[Any]) -> tuple[FunctionGraph, list[Any]]:
    """Return the graph that `content` holds, on `inputs`, and its nodes in order.

    `context` has what `content` refers to. Raises InvalidEncoding for what `pack` did not write, and as
    pickling.loads does.
    """
    # Few graphs of functions that are found are read.
    from cachegraph.pytensor.stored.graph_section import Section, named_by, unpack_frozen

    reader = Reader(content, "reading an optimized graph")
    _read_sources(reader)
    external = context.external()
    for _ in range(reader.uint()):
        external += named_by(unpack_frozen(reader.bytes(), external))
    section, kept, features = pickling.loads(reader.bytes(), HOST_PACKAGES)
    reader.end()
    variables, outputs = Section.loads(section, external).rebuild(inputs, _apply)
    for variable, number in kept:
        variables[variable].name = context.names.get(number)
    fgraph = FunctionGraph(inputs, outputs, clone=False)
    for name, detail in features:
        fgraph.attach_feature(_feature(fgraph, name, detail))
    computed = variables[len(inputs) :]
    return fgraph, list(dict.fromkeys(v.owner for v in computed if v.owner is not None))


def output_sources(fgraph: Any) -> list[int]:
    """Return where each result of `fgraph` comes from: see the grammar."""
    known = {variable: FIRST_INPUT + number for number, variable in enumerate(fgraph.inputs)}
    sources = []
    for number, variable in enumerate(fgraph.outputs):
        fresh = CONSTANT if isinstance(variable, Constant) else COMPUTED
        sources.append(known.get(variable, fresh))
        known.setdefault(variable, FIRST_INPUT + len(fgraph.inputs) + number)
    return sources


def _read_sources(reader: Reader) -> list[int]:
    if (version := reader.byte()) != FORMAT:
        raise reader.error(f"format {FORMAT}", f"format {version}")
    return [reader.uint() for _ in range(reader.uint())]


def _kept_names(variables: Sequence[Any], first: int, names: Mapping[int, str]) -> list[tuple[int, int]]:
    """Return pairs (number of a variable, number of its name), counting variables from `first`."""
    numbers: dict[str, int] = {}
    for number, name in names.items():
        numbers.setdefault(name, number)
    named = ((first + n, variable.name) for n, variable in enumerate(variables))
    return [(number, numbers[name]) for number, name in named if name in numbers]


def _apply(op: Any, inputs: list[Any], types: list[Any], position: int) -> list[Any]:
    outputs: list[Any] = Apply(op, inputs, [type_() for type_ in types]).outputs
    return outputs


def _features(fgraph: Any) -> list[tuple[str, Any]]:
    """Return the Features of an optimized graph that are still of use, in order."""
    features: list[tuple[str, Any]] = []
    for feature in fgraph._features:
        name = type(feature).__name__
        if type(feature) is Supervisor:
            protected = set(feature.protected)
            features.append((name, [n for n, v in enumerate(fgraph.inputs) if v in protected]))
        elif type(feature) is _FEATURES.get(name):
            features.append((name, None))
    return features


def _feature(fgraph: Any, name: str, detail: Any) -> Any:
    if name == "Supervisor":
        return Supervisor([fgraph.inputs[position] for position in detail])
    return _FEATURES[name]()
