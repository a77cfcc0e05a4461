"""`FunctionGraph`: a graph between fixed inputs and outputs that can be changed, and tells its Features so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

from engine.errors import InconsistencyError, MissingInputError
from engine.graph.apply import Apply
from engine.graph.features import Feature
from engine.graph.op import Op
from engine.graph.replace import clone_get_equiv
from engine.graph.traversal import graph_inputs, io_toposort
from engine.graph.variables import Constant, Variable

if TYPE_CHECKING:
    from engine.graph.frozen import FrozenFunctionGraph


class Output(Op):
    """Stands in `clients` for the graph's own use of a variable as output number `idx`."""

    __props__ = ("idx",)

    def __init__(self, idx: int) -> None:
        self.idx = idx

    def make_node(self, *inputs: Variable) -> Apply:
        """The use of one variable as an output."""
        return Apply(self, inputs, [])


Client = tuple[Apply, int]


class FunctionGraph:
    """The nodes between `inputs` and `outputs`, with every variable's clients.

    With `clone` (the default) the graph owns copies of what it was given. Outputs that need a variable which is
    neither an input, a constant nor computed are refused (MissingInputError).
    """

    def __init__(
        self,
        inputs: Sequence[Variable] | None = None,
        outputs: Sequence[Variable] = (),
        features: Sequence[Feature] = (),
        clone: bool = True,
        memo: dict[Variable | Apply, Variable | Apply] | None = None,
    ) -> None:
        if inputs is None:
            inputs = [v for v in graph_inputs(outputs) if not isinstance(v, Constant)]
        if clone:
            memo = clone_get_equiv(inputs, outputs, copy_orphans=False, memo=memo)
            inputs = [cast(Variable, memo[v]) for v in inputs]
            outputs = [cast(Variable, memo[v]) for v in outputs]
        self.inputs: list[Variable] = []
        self.outputs: list[Variable] = []
        self.apply_nodes: dict[Apply, None] = {}
        self.variables: dict[Variable, None] = {}
        self.clients: dict[Variable, list[Client]] = {}
        self._features: list[Feature] = []
        self._provided: dict[str, Feature] = {}
        for variable in inputs:
            self.add_input(variable)
        for variable in outputs:
            self.add_output(variable, reason="init")
        for feature in features:
            self.attach_feature(feature)

    def add_input(self, variable: Variable, check: bool = True) -> None:
        """Append an input; with `check`, refuses (ValueError) a variable that is computed."""
        if check and variable.owner is not None:
            raise ValueError(
                f"Adding input {variable}: it is computed by {variable.owner}; an input has no owner"
            )
        if variable in self.inputs:
            return
        self.inputs.append(variable)
        self._add_variable(variable)

    def add_output(self, variable: Variable, reason: str | None = None) -> None:
        """Append an output and import what it is computed from."""
        self.import_var(variable, reason)
        node = Output(len(self.outputs)).make_node(variable)
        self.outputs.append(variable)
        self.clients[variable].append((node, 0))

    def import_var(self, variable: Variable, reason: str | None = None, import_missing: bool = False) -> None:
        """Import `variable` and the nodes that compute it; with `import_missing`, unknown roots become inputs."""
        if variable in self.variables:
            return
        if variable.owner is not None:
            self.import_node(variable.owner, reason=reason, import_missing=import_missing)
        elif isinstance(variable, Constant):
            self._add_variable(variable)
        elif import_missing:
            self.add_input(variable)
        else:
            raise MissingInputError(
                f"Importing {variable} of type {variable.type}: nothing computes it and it is not an input of the "
                "graph; add it to the inputs, or give it a value with givens",
                variable,
            )

    def import_node(
        self, apply_node: Apply, check: bool = True, reason: str | None = None, import_missing: bool = False
    ) -> None:
        """Import `apply_node` and all nodes that it needs. Nothing is imported if a root is missing."""
        new_nodes = [n for n in io_toposort(self.variables, apply_node.outputs) if n not in self.apply_nodes]
        if check:
            self._check_roots(new_nodes, import_missing)
        for node in new_nodes:
            for index, variable in enumerate(node.inputs):
                if variable.owner is None:
                    self.import_var(variable, reason, import_missing)
                self.clients[variable].append((node, index))
            for output in node.outputs:
                self._add_variable(output)
            self.apply_nodes[node] = None
            self.execute_callbacks("on_import", node, reason)

    def _check_roots(self, nodes: Iterable[Apply], import_missing: bool) -> None:
        for node in nodes:
            for variable in node.inputs:
                known = (
                    variable.owner is not None or variable in self.variables or isinstance(variable, Constant)
                )
                if not known and not import_missing:
                    raise MissingInputError(
                        f"Importing {node}: its input {variable} of type {variable.type} is neither an input of "
                        "the graph, a constant nor computed; add it to the inputs, or give it a value with givens",
                        variable,
                    )

    def _add_variable(self, variable: Variable) -> None:
        if variable not in self.variables:
            self.variables[variable] = None
            self.clients[variable] = []

    def change_node_input(
        self,
        node: Apply,
        i: int,
        new_var: Variable,
        reason: str | None = None,
        import_missing: bool = False,
        check: bool = True,
    ) -> None:
        """Make `new_var` input `i` of `node`; refuses (TypeError) one that may hold values of another type."""
        old = node.inputs[i]
        if new_var is old:
            return
        if check and not old.type.is_super(new_var.type):
            raise TypeError(
                f"Replacing {old} of type {old.type} by {new_var} of type {new_var.type} ({reason}): the types "
                "differ; convert the replacement first"
            )
        self.import_var(new_var, reason, import_missing)
        if isinstance(node.op, Output):
            self.outputs[node.op.idx] = new_var
        cast(list[Variable], node.inputs)[i] = new_var
        self.clients[new_var].append((node, i))
        self._remove_client(old, (node, i), reason)
        self.execute_callbacks("on_change_input", node, i, old, new_var, reason)

    def replace(
        self, var: Variable, new_var: Variable, reason: str | None = None, import_missing: bool = False
    ) -> None:
        """Use `new_var` wherever `var` is used now: what is imported with `new_var` goes on using `var`.

        A variable that is not used in the graph is left alone.
        """
        if var is new_var or var not in self.variables:
            return
        new_var = var.type.filter_variable(new_var)
        for node, index in list(self.clients[var]):
            self.change_node_input(node, index, new_var, reason, import_missing)

    def replace_all(self, pairs: Iterable[tuple[Variable, Variable]], reason: str | None = None) -> None:
        """`replace` each pair, in order."""
        for old, new in pairs:
            self.replace(old, new, reason)

    def _remove_client(self, variable: Variable, client: Client, reason: str | None) -> None:
        """Forget one use of `variable`, and prune what is used no more."""
        uses = self.clients[variable]
        uses.remove(client)
        stack = [variable]
        while stack:
            unused = stack.pop()
            if self.clients.get(unused, True):
                continue
            if unused.owner is None:
                self._forget_root(unused)
            elif not any(self.clients[output] for output in unused.owner.outputs):
                stack.extend(self._prune(unused.owner, reason))

    def _forget_root(self, variable: Variable) -> None:
        if isinstance(variable, Constant) or variable not in self.inputs:
            del self.clients[variable]
            del self.variables[variable]

    def _prune(self, node: Apply, reason: str | None) -> list[Variable]:
        """Take out a node that nothing uses; its inputs, which may be unused now."""
        del self.apply_nodes[node]
        for output in node.outputs:
            del self.clients[output]
            del self.variables[output]
        for index, variable in enumerate(node.inputs):
            self.clients[variable].remove((node, index))
        self.execute_callbacks("on_prune", node, reason)
        return list(dict.fromkeys(node.inputs))

    def attach_feature(self, feature: Feature) -> None:
        """Attach `feature`, once; refuses (InconsistencyError) one that provides a name already provided."""
        if feature in self._features:
            return
        for name in feature.provides:
            if name in self._provided or hasattr(type(self), name):
                raise InconsistencyError(
                    f"Attaching {type(feature).__name__}: the graph has a {name} already"
                )
        self._provided.update(dict.fromkeys(feature.provides, feature))
        self._features.append(feature)
        if "on_attach" in feature.callbacks:
            feature.on_attach(self)  # type: ignore[attr-defined]

    def remove_feature(self, feature: Feature) -> None:
        """Detach `feature`, if it is attached."""
        if feature not in self._features:
            return
        self._features.remove(feature)
        for name in feature.provides:
            del self._provided[name]
        if "on_detach" in feature.callbacks:
            feature.on_detach(self)  # type: ignore[attr-defined]

    def __getattr__(self, name: str) -> Any:
        feature = self.__dict__.get("_provided", {}).get(name)
        if feature is None:
            raise AttributeError(f"FunctionGraph has no {name}, and no Feature attached to it provides one")
        return lambda *args, **kwargs: getattr(feature, name)(self, *args, **kwargs)

    def execute_callbacks(self, name: str, *args: Any) -> None:
        """Call the callback `name` of every Feature that declares it."""
        for feature in self._features:
            if name in feature.callbacks:
                getattr(feature, name)(self, *args)

    def collect_callbacks(self, name: str, *args: Any) -> dict[Feature, Any]:
        """What the callback `name` of each Feature that declares it returns."""
        return {f: getattr(f, name)(self, *args) for f in self._features if name in f.callbacks}

    def toposort(self) -> list[Apply]:
        """The nodes, each after those it needs, in an order fixed by structure."""
        return io_toposort(self.inputs, self.outputs)

    def check_integrity(self) -> None:
        """Refuses (InconsistencyError) a graph whose nodes, variables and clients do not agree."""
        reachable = set(self.toposort())
        if reachable != set(self.apply_nodes):
            raise InconsistencyError("Checking a graph: its nodes are not those that its outputs need")
        uses = {
            v: [c for c in clients if not isinstance(c[0].op, Output)] for v, clients in self.clients.items()
        }
        expected: dict[Variable, list[Client]] = {v: [] for v in self.variables}
        for node in self.apply_nodes:
            for index, variable in enumerate(node.inputs):
                expected[variable].append((node, index))
        if {v: set(c) for v, c in uses.items()} != {v: set(c) for v, c in expected.items()}:
            raise InconsistencyError(
                "Checking a graph: the clients recorded are not the uses that its nodes make"
            )
        for index, output in enumerate(self.outputs):
            if not any(isinstance(n.op, Output) and n.op.idx == index for n, _ in self.clients[output]):
                raise InconsistencyError(
                    f"Checking a graph: output {index} is not among the clients of {output}"
                )

    def clone(self) -> FunctionGraph:
        """A copy with the same inputs, outputs and constants, and no Features."""
        return self.clone_get_equiv()[0]

    def clone_get_equiv(self) -> tuple[FunctionGraph, dict[Variable | Apply, Variable | Apply]]:
        """A copy, and the map from what is in this graph to what is in the copy."""
        memo: dict[Variable | Apply, Variable | Apply] = {}
        return FunctionGraph(self.inputs, self.outputs, memo=memo), memo

    def freeze(self) -> FrozenFunctionGraph:
        """This graph as an immutable one."""
        from engine.graph.frozen import FrozenFunctionGraph

        return FrozenFunctionGraph.from_io(self.inputs, self.outputs)

    def __contains__(self, item: Variable | Apply) -> bool:
        return item in (self.variables if isinstance(item, Variable) else self.apply_nodes)

    def __repr__(self) -> str:
        return f"FunctionGraph({', '.join(str(output) for output in self.outputs)})"
