"""The programs of PyTensor's functions in the store.

    content := JSON of (format, number of inputs, placed*, outputs, data, kept, prologue, stage*)
               '\n' (nothing | pickle of array*)
    placed  := what the places after the inputs hold: (COMPUTED, node, output)
             | (READ, node, input) a constant that the node reads
             | (RESULT, output, 0) a constant that the function returns
    prologue := stage*
    stage   := (nodes, reasons) PyTensor computes
             | (nodes, function, inputs, outputs, scalars, number of requirements) the engine computes
    function := the fields of a FunctionReference (engine/compiling/compiled.py): in JSON, bytes are
                {"bytes": hexadecimal digits}, a small array {"numbers": hexadecimal digits, "dtype",
                "shape"}, and any other {"array": which of those that follow}

`nodes` are numbers in the stored form of the optimized graph (cachegraph/pytensor/stored/stored_graph.py);
inputs, outputs, data, kept and scalars (numbers, not arrays, for PyTensor) are places. No value of data, and
nothing that the prologue gives, is stored. The key describes the stored graph, the engine's source and
rewrites, the tools and the CPU level (engine/compiling/surroundings.py).
Loading a program reads the graph only if PyTensor computes some of it; else when the engine refuses values.

Version history
    1  first
    2  the prologue
    3  JSON: most programs hold no large array, and then nothing of pickles is imported
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from operator import index
from typing import Any

import numpy as np
from pytensor.graph.basic import Constant

from cachegraph import pickling
from cachegraph.cache import Artifact
from cachegraph.named_tuples import NamedTuple
from cachegraph.pytensor.stored.stored_graph import StoredGraph
from engine.compiling.compiled import FunctionReference
from engine.compiling.reference import load_function_of
from engine.pytensor.nodes import NodesStep, NodeStage, Places
from engine.pytensor.program import StagedProgram, Step
from engine.pytensor.requirement import Requirement
from engine.pytensor.steps import EngineStep, StagePart

FORMAT = 3
_KINDS = "biufc"
_FEW_BYTES = 4096
COMPUTED, READ, RESULT = range(3)
NAME = "a stage of a function of PyTensor's"

UNMET = Requirement(None, ValueError, "a condition of an Op does not hold")
"""Raised by the engine's step; PyTensor computes the nodes then, and raises the error of the Op."""

Placed = tuple[int, int, int]
ReadBlob = Callable[[str], bytes | None]


class NotReferable(Exception):
    """A function of the engine has no key by which the cache could find it again."""


def pack_program(program: StagedProgram, fgraph: Any, nodes: Sequence[Any]) -> Artifact:
    """Return `program` in its stored form. It computes `fgraph`, whose stored form has `nodes` in this order.

    Raises NotReferable if the engine's function of a stage has no key.
    """
    numbers = {node: number for number, node in enumerate(nodes)}
    once = _stored(program.once_stages, program.once_steps, numbers)
    stages = _stored(program.stages, program.steps, numbers)
    references = [function.digest for _, function in (*once, *stages) if function is not None]
    n_inputs = len(fgraph.inputs)
    sources = _sources(fgraph, nodes)
    placed = tuple(sources[key] for key, place in program.places.numbers.items() if place >= n_inputs)
    ports = tuple(program.outputs), tuple(program.data), tuple(program.kept)
    rows = tuple(row for row, _ in once), tuple(row for row, _ in stages)
    blobs: dict[str, bytes] = {}
    arrays: list[Any] = []
    text = json.dumps((FORMAT, n_inputs, placed, *ports, *rows), default=partial(_packed, arrays))
    content = text.encode() + b"\n" + (pickling.dumps(tuple(arrays), blobs=blobs) if arrays else b"")
    summary = f"{len(nodes)} nodes of PyTensor's in {len(once) + len(stages)} stages"
    return Artifact(content, blobs=blobs, summary=summary, references=references)


def _packed(arrays: list[Any], value: Any) -> object:
    """Return what stands for a value in JSON; an array that has no form there is added to `arrays`."""
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if not isinstance(value, np.ndarray):
        return index(value)
    is_plain = type(value) is np.ndarray and value.dtype.kind in _KINDS and value.flags.c_contiguous
    if is_plain and value.nbytes <= _FEW_BYTES:
        return {"numbers": value.tobytes().hex(), "dtype": value.dtype.str, "shape": value.shape}
    arrays.append(value)
    return {"array": len(arrays) - 1}


def _unpacked(arrays: Sequence[Any], value: dict[str, Any]) -> Any:
    """Return what `value` stands for; raises ValueError, KeyError, IndexError and TypeError for what
    `_packed` has not written."""
    if "bytes" in value:
        return bytes.fromhex(value["bytes"])
    if "numbers" not in value:
        return arrays[value["array"]]
    dtype = np.dtype(value["dtype"])
    if dtype.kind not in _KINDS:
        raise ValueError(f"loading a program: an array of {dtype}")
    return np.frombuffer(bytearray.fromhex(value["numbers"]), dtype).reshape(value["shape"])


def _stored(
    stages: Sequence[Any], steps: Sequence[Any], numbers: Mapping[Any, int]
) -> list[tuple[tuple[Any, ...], FunctionReference | None]]:
    """Return the stored form of stages, each with its function; raises NotReferable for one without a key."""
    found: list[tuple[tuple[Any, ...], FunctionReference | None]] = []
    for stage, step in zip(stages, steps, strict=True):
        own = tuple(numbers[node] for node in stage.nodes)
        if isinstance(stage, NodeStage):
            found.append(((own, tuple(stage.reasons)), None))
            continue
        function = step.function.reference()
        if function is None:
            raise NotReferable("a stage's function has no key")
        ports = tuple(step.inputs), tuple(step.outputs), tuple(step.scalars)
        found.append(((own, tuple(function), *ports, len(step.requirements)), function))
    return found


def _sources(fgraph: Any, nodes: Sequence[Any]) -> dict[Any, Placed]:
    """Return what every variable but an input is, by what a program's places are named by."""
    found: dict[Any, Placed] = {}
    for number, node in enumerate(nodes):
        found.update((variable, (COMPUTED, number, n)) for n, variable in enumerate(node.outputs))
        for n, variable in enumerate(node.inputs):
            if isinstance(variable, Constant):
                found.setdefault(id(variable), (READ, number, n))
    for n, variable in enumerate(fgraph.outputs):
        if isinstance(variable, Constant):
            found.setdefault(id(variable), (RESULT, n, 0))
    return found


class StoredStage(NamedTuple):
    """A stage of the engine's: the numbers of its nodes."""

    nodes: tuple[int, ...]


class ReadGraph:
    """The optimized graph of a stored program, read when something of it is needed first."""

    def __init__(self, stored: StoredGraph, placed: Sequence[Placed]) -> None:
        self._stored = stored
        self._placed = placed

    @cached_property
    def graph(self) -> Any:
        """The graph."""
        return self._stored.load()

    @cached_property
    def nodes(self) -> list[Any]:
        """Its nodes, by number."""
        return self._stored.nodes if self.graph is not None else []

    @cached_property
    def variables(self) -> list[Any]:
        """Its variables, by place."""
        return [*self.graph.inputs, *map(self._variable, self._placed)]

    @cached_property
    def places(self) -> Places:
        """The places of its variables."""
        places = Places(self.graph.inputs)
        for variable in self.variables:
            places(variable)
        return places

    def _variable(self, placed: Placed) -> Any:
        kind, number, position = placed
        if kind == RESULT:
            return self.graph.outputs[number]
        node = self.nodes[number]
        return node.outputs[position] if kind == COMPUTED else node.inputs[position]


class StoredProgram(StagedProgram):
    """A program made of its stored form, without translating a graph."""

    def __init__(self, content: bytes, graph: StoredGraph, read_blob: ReadBlob) -> None:
        text, _, pickled = content.partition(b"\n")
        arrays = pickling.loads(pickled, (), read_blob=read_blob) if pickled else ()
        version, *parts = json.loads(text, object_hook=partial(_unpacked, arrays))
        if version != FORMAT:
            raise ValueError(f"loading a program: format {version}, not {FORMAT}")
        n_inputs, placed, outputs, data, kept, once, stages = parts
        if n_inputs != len(graph.inputs) or len(outputs) != len(graph.sources):
            raise ValueError("loading a program: it is not that of this graph")
        read = ReadGraph(graph, placed)
        is_read = any(kind != COMPUTED for kind, _, _ in placed)
        is_read = is_read or any(len(stage) == 2 for stage in (*once, *stages))
        self.places = read.places if is_read else _unread(n_inputs, len(placed))
        self.outputs, self.data, self.kept = list(outputs), list(data), list(kept)
        self.once_stages, self.once_steps = _loaded(read, once)
        self.stages, self.steps = _loaded(read, stages)


def _loaded(read: ReadGraph, rows: Sequence[tuple[Any, ...]]) -> tuple[list[Any], list[Step]]:
    """Return the stages of these rows, and their steps."""
    stages: list[Any] = []
    steps: list[Step] = []
    for nodes, *rest in rows:
        if len(rest) == 1:
            stage = NodeStage([read.nodes[number] for number in nodes], list(rest[0]))
            stages.append(stage)
            steps.append(NodesStep(read.graph, stage.nodes, read.places))
        else:
            stages.append(StoredStage(tuple(nodes)))
            steps.append(StoredStep(read, nodes, *rest))
    return stages, steps


def _unread(n_inputs: int, count: int) -> Places:
    """Return the places of a graph that is not read: of the inputs, and of `count` computed variables."""
    places = Places(range(n_inputs))
    for number in range(n_inputs, n_inputs + count):
        places(number)
    return places


class StoredStep(EngineStep):
    """A stage of a stored program, on the function that it refers to.

    If the engine's function raises an error, the graph is read: PyTensor computes the nodes then.
    """

    def __init__(
        self,
        read: ReadGraph,
        nodes: Sequence[int],
        function: Sequence[Any],
        inputs: Sequence[int],
        outputs: Sequence[int],
        scalars: Sequence[int],
        n_requirements: int,
    ) -> None:
        self.repeats = Counter()
        digest, confirmation, described, n_outputs, arrays = function
        types = tuple((name, dtype, tuple(shape)) for name, dtype, shape in described)
        reference = FunctionReference(digest, confirmation, types, n_outputs, tuple(arrays))
        self.function = load_function_of(reference, NAME)
        self.inputs, self.outputs, self.scalars = list(inputs), list(outputs), list(scalars)
        self.requirements = [UNMET] * n_requirements
        self._read, self._numbers = read, nodes

    @cached_property
    def part(self) -> StagePart:  # type: ignore[override]
        """The part of the graph that the step computes; it is read now."""
        read = self._read
        nodes = [read.nodes[number] for number in self._numbers]
        computed = {variable for node in nodes for variable in node.outputs}
        read_here = dict.fromkeys(variable for node in nodes for variable in node.inputs)
        sources = [v for v in read_here if v not in computed and not isinstance(v, Constant)]
        results = [read.variables[place] for place in self.outputs]
        return StagePart(read.graph, nodes, sources, results, read.places)
