"""The stored form of an optimized graph.

    content := format(1 byte) uint(number of outputs) place* uint(number of frozen graphs) bytes(frozen)* bytes(main)
    place   := uint: 0 for an output that is computed | 1 a constant | 2+i the input i | 2+n+j the output j before it,
               n the number of inputs
    frozen  := pickle of (section, types of the inputs, place of each node in a baked order)
    main    := pickle of (section, names, features)

`uint` and `bytes` as in fingerprint/encoder.py, sections as in graph_section.py. A frozen graph is one that an Op holds; it
names the frozen graphs before it, each followed by the variables that it computes, by numbers that come after those of
externals.py. `names` are pairs of a variable and the number of its name, `features` the names of what is attached to the
graph, each with what it needs.

Version history
    1  first
    2  constants refer to arrays of the graph in hand
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytensor.compile.aliasing import Supervisor
from pytensor.graph.basic import Apply, Constant
from pytensor.graph.destroyhandler import DestroyHandler
from pytensor.graph.features import PreserveVariableAttributes
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.rewriting.shape import ShapeFeature

from cachegraph import pickling
from cachegraph.fingerprint.primitives import Reader, pack_uint, prefixed
from cachegraph.pytensor.describe.host_packages import HOSTS
from cachegraph.pytensor.stored.externals import Context, arrays_in
from cachegraph.pytensor.stored.frozen_graphs import inner_graphs, named_by, pack_frozen, unpack_frozen
from cachegraph.pytensor.stored.graph_section import GraphTable, Section

FORMAT = 2
COMPUTED = 0
CONSTANT = 1
FIRST_INPUT = 2

_FEATURES = {cls.__name__: cls for cls in (PreserveVariableAttributes, ShapeFeature, DestroyHandler)}


def pack(fgraph: Any, context: Context) -> bytes:
    """`fgraph` in its stored form, which names what is in `context`.

    Of a variable that has a name which is not there, the name is not kept. Raises Unstorable for a constant that is no plain
    value, and what pickle raises for an Op that cannot be pickled.
    """
    external = context.external()
    order = fgraph.toposort()
    frozen = []
    for graph in inner_graphs([node.op for node in order], external):
        frozen.append(pack_frozen(graph, external))
        external += named_by(graph)
    table = GraphTable(fgraph.inputs, order, fgraph.outputs, arrays_in(external))
    kept = _kept_names(table.variables[len(fgraph.inputs) :], len(fgraph.inputs), context.names)
    main = pickling.dumps((table.section.dumps(external), kept, _features(fgraph)))
    places = output_places(fgraph)
    head = (bytes((FORMAT,)), pack_uint(len(places)), *map(pack_uint, places), pack_uint(len(frozen)))
    return b"".join((*head, *map(prefixed, (*frozen, main))))


def read_places(content: bytes) -> list[int]:
    """Where the results of the graph in `content` are stored; raises InvalidEncoding for what `pack` did not write."""
    return _read_places(Reader(content, "reading an optimized graph"))


def unpack(content: bytes, context: Context, inputs: Sequence[Any]) -> FunctionGraph:
    """The graph that `content` holds, on `inputs`; what it names is in `context`.

    Raises InvalidEncoding for what `pack` did not write, and as pickling.loads does.
    """
    reader = Reader(content, "reading an optimized graph")
    _read_places(reader)
    external = context.external()
    for _ in range(reader.uint()):
        external += named_by(unpack_frozen(reader.bytes(), external))
    section, kept, features = pickling.loads(reader.bytes(), HOSTS)
    reader.end()
    variables, outputs = Section.loads(section, external).rebuild(inputs, _apply)
    for variable, number in kept:
        variables[variable].name = context.names.get(number)
    fgraph = FunctionGraph(inputs, outputs, clone=False)
    for name, detail in features:
        fgraph.attach_feature(_feature(fgraph, name, detail))
    return fgraph


def output_places(fgraph: Any) -> list[int]:
    """Where the results of `fgraph` are stored: see the grammar."""
    known = {variable: FIRST_INPUT + number for number, variable in enumerate(fgraph.inputs)}
    places = []
    for number, variable in enumerate(fgraph.outputs):
        fresh = CONSTANT if isinstance(variable, Constant) else COMPUTED
        places.append(known.get(variable, fresh))
        known.setdefault(variable, FIRST_INPUT + len(fgraph.inputs) + number)
    return places


def _read_places(reader: Reader) -> list[int]:
    if (version := reader.byte()) != FORMAT:
        raise reader.error(f"format {FORMAT}", f"format {version}")
    return [reader.uint() for _ in range(reader.uint())]


def _kept_names(variables: Sequence[Any], first: int, names: Mapping[int, str]) -> list[tuple[int, int]]:
    """Pairs (number of a variable, number of its name); `first` is the number of the first of `variables`."""
    numbers: dict[str, int] = {}
    for number, name in names.items():
        numbers.setdefault(name, number)
    named = ((first + n, variable.name) for n, variable in enumerate(variables))
    return [(number, numbers[name]) for number, name in named if name in numbers]


def _apply(op: Any, inputs: list[Any], types: list[Any], position: int) -> list[Any]:
    outputs: list[Any] = Apply(op, inputs, [type_() for type_ in types]).outputs
    return outputs


def _features(fgraph: Any) -> list[tuple[str, Any]]:
    """What is attached to the graph and of use once it is optimized, in order."""
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
