"""`OpFromGraph`: an Op that computes a graph; with it a graph is built of equal parts, each rewritten and compiled once.

Its gradient is another Op of the same kind, whose inputs are the inputs, the outputs and the gradients for the outputs.
Equal Ops share it, so the gradient of a chain of equal layers is a chain of equal layers too.

What stands in for its derivatives (`pullback`, `pushforward`) and the Op's name make Ops differ, but not what is computed from them:
`for_compilation` is the Op without both, and `key_props` leaves both out.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from engine.gradient.reverse import connections
from engine.graph.apply import Apply
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
from engine.tensor.conversion import as_tensor_variable


class OpFromGraph(Op, HasInnerGraph):
    """Computes `outputs` from `inputs`, whatever variables it is applied to.

    With `inline` it is replaced by its graph when a function is made, before anything else is rewritten. `pullback`
    (or `lop_overrides`, its older name) stands in for the gradient: a callable, or an OpFromGraph, of the inputs, the
    outputs and the gradients for the outputs; or a list with, for each input, None (the gradient of the graph) or a
    callable that gives the gradient for that input. `pushforward` (or `rop_overrides`) stands in for the tangents of the
    outputs: a callable, or an OpFromGraph, of the inputs and their tangents; or a list with, for each output, None or a
    callable. `connection_pattern` has a row for each input: whether each output depends on it; by default this follows
    from the graph.

    Two are equal if their graphs, `inline`, `name`, `pullback`, `pushforward` and `connection_pattern` are. Shared
    variables must be among the inputs (`strict` says so, and cannot be False): MissingInputError. Refuses (TypeError,
    ValueError) inputs that are no variables, are constants or come twice, overrides of another length than there are
    inputs, and Ops that overwrite.
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
    ) -> None:
        overrides = one_of("pullback", pullback, "lop_overrides", lop_overrides)
        tangents = one_of("pushforward", pushforward, "rop_overrides", rop_overrides)
        if not strict:
            raise ValueError(
                "Making an OpFromGraph: strict=False is not supported; list shared variables as inputs"
            )
        _check_inputs(inputs)
        check_roots(inputs, outputs)
        self.fgraph = _checked_graph(FrozenFunctionGraph.from_io(inputs, outputs))
        self.is_inline = bool(inline)
        self.name = name
        self.overrides = checked_overrides("pullback", overrides, len(inputs), "inputs")
        self.tangents = checked_overrides("pushforward", tangents, len(outputs), "outputs")
        self.connected = _checked_connections(connection_pattern, len(inputs), len(outputs))

    @classmethod
    def from_fgraph(cls, fgraph: FrozenFunctionGraph, *, inline: bool = False) -> OpFromGraph:
        """Return the plain Op of a frozen graph: without a name and without anything in place of its gradient."""
        new = OpFromGraph.__new__(OpFromGraph)
        new.fgraph = fgraph
        new.is_inline, new.name = inline, None
        new.overrides = new.tangents = new.connected = None
        return new

    def for_compilation(self) -> OpFromGraph:
        """Return the plain Op of the same graph: all that matters once gradients are taken."""
        is_plain = type(self) is OpFromGraph and not self.is_inline and self.name is None
        if is_plain and self.overrides is None and self.tangents is None and self.connected is None:
            return self
        return OpFromGraph.from_fgraph(self.fgraph)

    def key_props(self) -> dict[str, Any]:
        """Return all properties but those that only gradients and readers see."""
        hidden = ("name", "overrides", "tangents", "connected")
        return {name: value for name, value in self.props_dict().items() if name not in hidden}

    def make_node(self, *inputs: Any) -> Apply:
        """Return the application to `inputs`; raises TypeError for another number of them, or what has another type.

        Applied to variables that broadcast where the graph's own inputs do not, it is the Op of the graph of these.
        """
        if len(inputs) != len(self.inner_inputs):
            raise TypeError(
                f"Applying {self}: it takes {len(self.inner_inputs)} inputs, {len(inputs)} were given"
            )
        pairs = zip(inputs, self.inner_inputs, strict=True)
        variables = [inner.type.filter_variable(as_tensor_variable(given)) for given, inner in pairs]
        op = self
        if any(
            _broadcast(v) != _broadcast(inner) for v, inner in zip(variables, self.inner_inputs, strict=True)
        ):
            op = self.with_inner_graph(_for_types(self.fgraph, variables))
        return Apply(op, variables, [output.type.make_variable() for output in op.inner_outputs])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        for cell, result in zip(output_storage, computed_outputs(self.fgraph, inputs), strict=True):
            cell[0] = result.copy()

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """What the Op was made with, else what follows from its graph."""
        found = self.connected or self.fgraph.computed(
            "connections", lambda graph: connections(graph.inputs, graph.outputs)
        )
        return [list(row) for row in found]

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
        """Return the Op of a graph of derivatives, and which of them there are."""
        found = [variable for variable in derivative.outputs if variable is not None]
        present = tuple([variable is not None for variable in derivative.outputs])
        if not found:
            return None, present
        check_roots(derivative.inputs, found)
        graph = FrozenFunctionGraph.from_structural_inputs(derivative.inputs, found)
        return OpFromGraph.from_fgraph(graph, inline=self.is_inline), present

    def __str__(self) -> str:
        return f"{self.name or type(self).__name__}{'{inline}' if self.is_inline else ''}"

    __repr__ = __str__


def inlined(
    nodes: Sequence[Apply], inputs: Sequence[Variable], outputs: Sequence[Variable]
) -> tuple[list[Apply], list[Variable]]:
    """Return `nodes`, in their order, without any OpFromGraph, and `outputs`, computed by them: each is replaced by copies of
    the nodes of its graph, in their order, at all depths. What has none of them is given back as it is."""
    if not any(isinstance(node.op, OpFromGraph) for node in nodes):
        return list(nodes), list(outputs)
    memo: dict[Variable, Variable] = {variable: variable for variable in inputs}
    copies: list[Apply] = []
    _inline_nodes(nodes, memo, copies)
    return copies, [memo.get(variable, variable) for variable in outputs]


def _inline_nodes(nodes: Sequence[Apply], memo: dict[Variable, Variable], copies: list[Apply]) -> None:
    """Append copies of `nodes` to `copies`, and add to `memo` what stands for their outputs."""
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
                f"Making an OpFromGraph: {node.op} of its graph overwrites an input; use the Op that does not: what may be "
                "overwritten is found out when a function is made"
            )
    return fgraph


def _for_types(fgraph: FrozenFunctionGraph, variables: Sequence[Variable]) -> FrozenFunctionGraph:
    """Return `fgraph` for inputs of the types of `variables`."""
    before = fgraph.unfreeze()
    after = [variable.type.make_variable() for variable in variables]
    outputs = clone_replace(before.outputs, dict(zip(before.inputs, after, strict=True)))
    return FrozenFunctionGraph.from_io(after, outputs)


def _broadcast(variable: Variable) -> Any:
    return getattr(variable.type, "broadcastable", None)


def _check_inputs(inputs: Sequence[Variable]) -> None:
    for position, variable in enumerate(inputs):
        if not isinstance(variable, Variable) or isinstance(variable, Constant):
            raise TypeError(
                f"Making an OpFromGraph: input {position} is {variable!r}; it must be a variable, no constant"
            )
    if len(set(inputs)) != len(inputs):
        raise ValueError("Making an OpFromGraph: a variable is among the inputs twice")


def _checked_connections(
    pattern: Sequence[Sequence[bool]] | None, n_inputs: int, n_outputs: int
) -> tuple[tuple[bool, ...], ...] | None:
    if pattern is None:
        return None
    rows = tuple([tuple([bool(item) for item in row]) for row in pattern])
    if len(rows) != n_inputs or any(len(row) != n_outputs for row in rows):
        raise ValueError(
            f"Making an OpFromGraph: connection_pattern must have {n_inputs} rows of {n_outputs}; found {pattern!r}"
        )
    return rows


class SymbolicOp(OpFromGraph):
    """Base class of Ops whose graph is `build_inner_graph` of variables of the types that they are applied to.

    An Op that was not applied yet has no graph; the Op of a node has one. A subclass adds its properties to
    `__props__`. Compiling knows its graph alone.
    """

    __props__ = (*(OpFromGraph.__props__ or ()),)

    def __init__(self) -> None:
        self.fgraph: Any = None
        self.is_inline, self.name = False, None
        self.overrides = self.tangents = self.connected = None

    def build_inner_graph(self, *inputs: Any) -> list[Any]:
        """Return the outputs, computed from `inputs`."""
        raise NotImplementedError(f"{type(self).__name__} must implement build_inner_graph()")

    def filter_inputs(self, *inputs: Any) -> list[Any]:
        """Return `inputs` as the variables that the Op takes; raises TypeError for what it does not take."""
        return [as_tensor_variable(value) for value in inputs]

    def make_node(self, *inputs: Any) -> Apply:
        variables = self.filter_inputs(*inputs)
        op = self if self.fgraph is None else self.without_graph()
        return OpFromGraph.make_node(_of_types(op, tuple([v.type for v in variables])), *variables)

    def without_graph(self) -> SymbolicOp:
        """Return this Op as it was before it was applied."""
        return self.with_graph(None)

    def with_graph(self, fgraph: FrozenFunctionGraph | None) -> SymbolicOp:
        """Return this Op for the types of the inputs of `fgraph`."""
        new: SymbolicOp = object.__new__(type(self))
        new.__setstate__({**self.__getstate__(), "fgraph": fgraph})
        return new


@lru_cache(maxsize=1024)
def _of_types(op: SymbolicOp, types: Sequence[Any]) -> SymbolicOp:
    inputs = [type.make_variable() for type in types]
    return op.with_graph(FrozenFunctionGraph.from_io(inputs, op.build_inner_graph(*inputs)))
