"""`OpFromGraph`: an Op that computes a graph, rewritten and compiled once for all its uses; and `SymbolicOp`.

The gradient is another such Op, from the inputs, the outputs and the outputs' gradients. Equal Ops
share it, so the gradient of a chain of equal layers is again a chain of equal layers.

Overrides of derivatives (`pullback`, `pushforward`) and the name distinguish Ops, but do not change
what is computed. `for_compilation` returns the Op without them, and `key_props` leaves them out.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from engine.graph.apply import Apply
from engine.graph.connections import io_connection_pattern as connections
from engine.graph.fgraph import FrozenFunctionGraph
from engine.graph.op import Op
from engine.graph.replace import clone_replace
from engine.graph.variables import Constant, Variable
from engine.inner.base import HasInnerGraph, computed_outputs
from engine.inner.derivatives import (
    Derivative,
    check_roots,
    checked_overrides,
    one_of,
    pullback_graph,
    pushforward_graph,
)
from engine.tensor.blockwise import vectorize_graph
from engine.tensor.conversion import as_symbolic


class OpFromGraph(Op, HasInnerGraph):
    """Computes `outputs` from `inputs` for any variables that it is applied to.

    With `inline`, its graph replaces it when a function is made, before other rewrites. `pullback`
    (older name: `lop_overrides`) overrides the gradient: a callable or OpFromGraph of the inputs, the
    outputs and the outputs' gradients, or a list with, for each input, such a callable or None (the
    graph's own gradient). `pushforward` (older name: `rop_overrides`) overrides the outputs' tangents
    in the same way: it takes the inputs and their tangents, and a list has an item for each output.
    `connection_pattern` has a row for each input that says which outputs depend on it; by default it
    follows from the graph. With `on_unused_input="ignore"` inputs may be repeated; the first is used.

    Two are equal if their graphs, `inline`, `name`, overrides and `connection_pattern` are. Raises
    MissingInputError for a shared variable that is not among the inputs (`strict`, which cannot be
    False); TypeError or ValueError for inputs that are repeated, constants or no variables, for
    overrides of the wrong length, and for graphs with Ops that overwrite.
    """

    __props__: tuple[str, ...] | None = (
        "fgraph",
        "is_inline",
        "name",
        "overrides",
        "tangents",
        "connected",
    )

    def __init__(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        *,
        inline: bool = False,
        pullback: Any = None,
        lop_overrides: Any = None,
        pushforward: Any = None,
        rop_overrides: Any = None,
        connection_pattern: Sequence[Sequence[bool]] | None = None,
        name: str | None = None,
        strict: bool = True,
        on_unused_input: str | None = None,
    ) -> None:
        overrides = one_of("pullback", pullback, "lop_overrides", lop_overrides)
        tangents = one_of("pushforward", pushforward, "rop_overrides", rop_overrides)
        if not strict:
            raise ValueError(
                "Making an OpFromGraph: strict=False is not supported; list shared variables as inputs"
            )
        inputs = _checked_inputs(inputs, on_unused_input == "ignore")
        check_roots(inputs, outputs)
        self.fgraph = _checked_graph(FrozenFunctionGraph.from_io(inputs, outputs))
        self.is_inline = bool(inline)
        self.name = name
        self.overrides = checked_overrides("pullback", overrides, len(inputs), "inputs")
        self.tangents = checked_overrides("pushforward", tangents, len(outputs), "outputs")
        self.connected = _checked_connections(connection_pattern, len(inputs), len(outputs))

    @classmethod
    def from_fgraph(cls, fgraph: FrozenFunctionGraph, *, inline: bool = False) -> OpFromGraph:
        """Return the plain Op of a frozen graph, without name or overrides."""
        new = OpFromGraph.__new__(OpFromGraph)
        new.fgraph = fgraph
        new.is_inline, new.name = inline, None
        new.overrides = new.tangents = new.connected = None
        return new

    def for_compilation(self) -> OpFromGraph:
        """Return the plain Op of the same graph."""
        is_plain = type(self) is OpFromGraph and not self.is_inline and self.name is None
        if is_plain and self.overrides is None and self.tangents is None and self.connected is None:
            return self
        return OpFromGraph.from_fgraph(self.fgraph)

    def key_props(self) -> dict[str, Any]:
        """Return the properties without those that only gradients and readers use."""
        hidden = ("name", "overrides", "tangents", "connected")
        return {name: value for name, value in self.props_dict().items() if name not in hidden}

    def make_node(self, *inputs: Any) -> Apply:
        """Return the node on `inputs`. Raises ValueError for a wrong number of inputs, TypeError for types.

        If an input broadcasts where the graph's own does not, the node's Op holds the graph for these
        types.
        """
        if len(inputs) != len(self.inner_inputs):
            raise ValueError(
                f"Applying {self}: Expected {len(self.inner_inputs)} input(s), {len(inputs)} were given"
            )
        pairs = zip(inputs, self.inner_inputs, strict=True)
        variables = [inner.type.filter_variable(as_symbolic(given)) for given, inner in pairs]
        op = self
        if any(
            _broadcast(v) != _broadcast(inner) for v, inner in zip(variables, self.inner_inputs, strict=True)
        ):
            op = self.with_inner_graph(_for_types(self.fgraph, variables))
        return Apply(op, variables, [output.type.make_variable() for output in op.inner_outputs])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        for cell, result in zip(output_storage, computed_outputs(self.fgraph, inputs), strict=True):
            cell[0] = result.copy()

    def vectorized(self, node: Apply, inputs: Sequence[Any]) -> Sequence[Any] | None:
        """Return the outputs of the graph for batches; None if the Op has derivatives of its own."""
        if type(self) is not OpFromGraph or self.overrides is not None or self.tangents is not None:
            return None
        return self.vectorized_graph(inputs)

    def vectorized_graph(self, inputs: Sequence[Any]) -> Sequence[Any]:
        """Return the outputs of the graph for batches of its inputs."""
        graph = self.fgraph.unfreeze()
        found: Sequence[Any] = vectorize_graph(graph.outputs, dict(zip(graph.inputs, inputs, strict=True)))
        return found

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Return the pattern given to the Op, or the one that follows from its graph."""
        return [list(row) for row in self.connections()]

    def connections(self) -> Sequence[Sequence[bool]]:
        """Return a row for each input that says which outputs depend on it."""
        found: Sequence[Sequence[bool]] = self.connected or self.fgraph.computed(
            "connections", lambda graph: connections(graph.inputs, graph.outputs)
        )
        return found

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        return self.pullback_wanted(inputs, outputs, cotangents, None)

    def pullback_wanted(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        cotangents: Sequence[Any],
        wanted: Sequence[bool] | None,
    ) -> list[Any]:
        asked = tuple(wanted or [True] * len(inputs))
        given = [cotangent for cotangent in cotangents if cotangent is not None]
        types = tuple([None if cotangent is None else cotangent.type for cotangent in cotangents])
        known: dict[Any, Any] = self.fgraph.computed("pullbacks", lambda _: {})
        key = (self.overrides, self.is_inline, types, asked)
        if key not in known:
            known[key] = self._of_graph(pullback_graph(self, types, asked))
        op, present = known[key]
        found = iter([] if op is None else op(*inputs, *outputs, *given, return_list=True))
        return [next(found) if is_present else None for is_present in present]

    def pushforward(self, inputs: Sequence[Any], outputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        given = [tangent for tangent in tangents if tangent is not None]
        types = tuple([None if tangent is None else tangent.type for tangent in tangents])
        known: dict[Any, Any] = self.fgraph.computed("pushforwards", lambda _: {})
        key = (self.tangents, self.is_inline, types)
        if key not in known:
            known[key] = self._of_graph(pushforward_graph(self, types))
        op, present = known[key]
        found = iter([] if op is None else op(*inputs, *given, return_list=True))
        return [next(found) if is_present else None for is_present in present]

    def _of_graph(self, derivative: Derivative) -> tuple[OpFromGraph | None, tuple[bool, ...]]:
        """Return the Op of a derivative graph (None if it is empty), and which derivatives exist."""
        found = [variable for variable in derivative.outputs if variable is not None]
        present = tuple([variable is not None for variable in derivative.outputs])
        if not found:
            return None, present
        check_roots(derivative.inputs, found)
        graph = FrozenFunctionGraph.from_structural_inputs(derivative.inputs, found)
        return OpFromGraph.from_fgraph(graph, inline=self.is_inline), present

    def __str__(self) -> str:
        return f"{self.name or type(self).__name__}{{inline={self.is_inline}}}"

    __repr__ = __str__


def inlined(
    nodes: Sequence[Apply], inputs: Sequence[Variable], outputs: Sequence[Variable]
) -> tuple[list[Apply], list[Variable]]:
    """Return `nodes` and `outputs` with each OpFromGraph replaced by copies of its graph's nodes, at
    all depths.

    Without any OpFromGraph they are returned unchanged.
    """
    if not any(isinstance(node.op, OpFromGraph) for node in nodes):
        return list(nodes), list(outputs)
    memo: dict[Variable, Variable] = {variable: variable for variable in inputs}
    copies: list[Apply] = []
    _inline_nodes(nodes, memo, copies)
    return copies, [memo.get(variable, variable) for variable in outputs]


def _inline_nodes(nodes: Sequence[Apply], memo: dict[Variable, Variable], copies: list[Apply]) -> None:
    """Append copies of `nodes` to `copies`, and map their outputs to the copies' in `memo`."""
    for node in nodes:
        arguments = [memo.get(variable, variable) for variable in node.inputs]
        if isinstance(node.op, OpFromGraph):
            inner: dict[Variable, Variable] = dict(zip(node.op.inner_inputs, arguments, strict=True))
            _inline_nodes(node.op.fgraph.nodes, inner, copies)
            results = [inner.get(variable, variable) for variable in node.op.inner_outputs]
        else:
            results = [v.type.make_variable(v.name) for v in node.outputs]
            copies.append(Apply(node.op, arguments, results))
        for old, new in zip(node.outputs, results, strict=True):
            memo.setdefault(old, new)


def _checked_graph(fgraph: FrozenFunctionGraph) -> FrozenFunctionGraph:
    for node in fgraph.nodes:
        if node.op.destroy_map:
            raise ValueError(
                f"Making an OpFromGraph: {node.op} of its graph overwrites an input; use the Op that does "
                "not: rewriting makes Ops overwrite where it is safe"
            )
    return fgraph


def _for_types(fgraph: FrozenFunctionGraph, variables: Sequence[Variable]) -> FrozenFunctionGraph:
    """Return `fgraph` rebuilt for inputs of the types of `variables`."""
    before = fgraph.unfreeze()
    after = [variable.type.make_variable() for variable in variables]
    outputs = clone_replace(before.outputs, dict(zip(before.inputs, after, strict=True)))
    return FrozenFunctionGraph.from_io(after, outputs)


def _broadcast(variable: Variable) -> Any:
    return getattr(variable.type, "broadcastable", None)


def _checked_inputs(inputs: Sequence[Variable], may_repeat: bool) -> list[Variable]:
    """Return `inputs`, with variables that nothing uses in the place of repeated ones."""
    # A constant may be a part of another one in the graph already, which no input could replace.
    for position, variable in enumerate(inputs):
        if not isinstance(variable, Variable) or isinstance(variable, Constant):
            raise TypeError(
                f"Making an OpFromGraph: input {position} is {variable!r}; it must be a variable, no constant"
            )
    repeated = [variable for variable in dict.fromkeys(inputs) if inputs.count(variable) > 1]
    if repeated and not may_repeat:
        raise ValueError(
            "The following variables were provided more than once as inputs to the OpFromGraph: "
            f"{repeated}; copy them, or use on_unused_input='ignore'"
        )
    return [v if v not in inputs[:k] else v.type.make_variable() for k, v in enumerate(inputs)]


def _checked_connections(
    pattern: Sequence[Sequence[bool]] | None, n_inputs: int, n_outputs: int
) -> tuple[tuple[bool, ...], ...] | None:
    if pattern is None:
        return None
    rows = tuple([tuple([bool(item) for item in row]) for row in pattern])
    if len(rows) != n_inputs or any(len(row) != n_outputs for row in rows):
        raise ValueError(
            f"Making an OpFromGraph: connection_pattern must have {n_inputs} rows of {n_outputs}; found "
            f"{pattern!r}"
        )
    return rows


class SymbolicOp(OpFromGraph):
    """Base class of Ops whose graph is built, by `build_inner_graph`, for the types they are applied to.

    An Op that is not yet applied has no graph; the Op of a node has one. A subclass adds its properties
    to `__props__`. Compiling uses only the graph.
    """

    __props__ = (*(OpFromGraph.__props__ or ()),)

    def __init__(self) -> None:
        self.fgraph: Any = None
        self.is_inline, self.name = False, None
        self.overrides = self.tangents = self.connected = None

    def build_inner_graph(self, *inputs: Any) -> list[Any]:
        """Return the outputs computed from `inputs`."""
        raise NotImplementedError(f"{type(self).__name__} must implement build_inner_graph()")

    def filter_inputs(self, *inputs: Any) -> list[Any]:
        """Return `inputs` as variables that the Op takes. Raises TypeError for others."""
        return [as_symbolic(value) for value in inputs]

    def make_node(self, *inputs: Any) -> Apply:
        variables = self.filter_inputs(*inputs)
        op = self if self.fgraph is None else self.without_graph()
        return OpFromGraph.make_node(_of_types(op, tuple([v.type for v in variables])), *variables)

    def without_graph(self) -> SymbolicOp:
        """Return this Op as it was before it was applied."""
        return self.with_graph(None)

    def with_graph(self, fgraph: FrozenFunctionGraph | None) -> SymbolicOp:
        """Return this Op with the graph `fgraph`."""
        new: SymbolicOp = object.__new__(type(self))
        new.__setstate__({**self.__getstate__(), "fgraph": fgraph})
        return new


@lru_cache(maxsize=1024)
def _of_types(op: SymbolicOp, types: Sequence[Any]) -> SymbolicOp:
    inputs = [type.make_variable() for type in types]
    return op.with_graph(FrozenFunctionGraph.from_io(inputs, op.build_inner_graph(*inputs)))
