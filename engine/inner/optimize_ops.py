"""Solver Ops: `MinimizeOp`, `MinimizeScalarOp`, `RootOp`, `RootScalarOp`, with a graph and a SciPy method.

The graph computes, from the unknown and the parameters, the objective or the equations and the
derivatives that the method uses. Gradients for the parameters come from the implicit function
theorem: if F(x*, p) = 0, where F is the equations or the gradient of the objective, then dx*/dp =
-(dF/dx)^-1 dF/dp. This takes one linear system, whatever the number of parameters, and does not
depend on how the solution was found. Where the solver failed, the gradient is meaningless.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from engine.gradient.backpropagation import pull_back
from engine.gradient.reverse import grad
from engine.graph.apply import Apply
from engine.graph.connections import io_connection_pattern as connections
from engine.graph.fgraph import FrozenFunctionGraph
from engine.graph.op import Op
from engine.graph.replace import clone_replace
from engine.graph.traversal import ancestors
from engine.graph.variables import Variable
from engine.inner.base import HasInnerGraph, computed_outputs
from engine.inner.solvers import Solver, canonical_options, find_method
from engine.scalar.promotion import FLOATS
from engine.tensor.conversion import as_symbolic
from engine.tensor.type import TensorType, tensor_type


class ScipyWrapperOp(Op, HasInnerGraph):
    """Base class of solvers. Inputs: the starting point, the parameters, the limits; outputs: the
    solution, success.

    Success is a 0-d bool. The limits are vectors, one for each name in `limits`. `jac` and `hess` ask
    for first and second derivatives; those that the method does not use are dropped. Two are equal if
    their graphs, methods, `optimizer_kwargs` and `limits` are.

    Raises ValueError for a method or options that SciPy does not have, for unknowns or objectives of an
    unsuitable rank, for unequal numbers of equations and unknowns, for an objective that does not
    depend on the unknown, and for `hess` without `jac`; TypeError for integers, and for
    optimizer_kwargs that are not plain values.
    """

    __props__ = ("fgraph", "method", "options", "limits")
    solver: ClassVar[str]
    ranks: ClassVar[tuple[int, ...]] = (0, 1)
    is_minimization: ClassVar[bool]

    def __init__(
        self,
        x: Variable,
        *parameters: Variable,
        objective: Variable,
        method: str,
        jac: bool = True,
        hess: bool = False,
        optimizer_kwargs: Mapping[str, Any] | None = None,
        limits: Sequence[str] = (),
    ) -> None:
        self._check(x, objective, jac, hess)
        derivatives = int(jac) + int(hess)
        chosen = find_method(self.solver, method, derivatives, limits)
        self.method = chosen.name
        self.options = canonical_options(self.solver, optimizer_kwargs)
        self.limits = tuple(limits)
        # The derivatives are taken of a copy: the loop of a Jacobian would take in the ancestors of
        # its variables.
        inputs = [variable.type.make_variable() for variable in (x, *parameters)]
        outputs: list[Any] = FrozenFunctionGraph.from_io([x, *parameters], [objective]).bind(inputs)
        for _ in range(min(derivatives, chosen.uses)):
            outputs.append(_derivative(outputs[-1], inputs[0]))
        self.fgraph = FrozenFunctionGraph.from_io(inputs, outputs)

    def _check(self, x: Any, objective: Any, jac: bool, hess: bool) -> None:
        for name, variable in (("unknown", x), ("objective", objective)):
            _check_float(self.solver, name, variable)
        due = 0 if self.is_minimization else x.type.ndim
        wrong = None
        if x.type.ndim not in self.ranks:
            wrong = f"the unknown {x} has {x.type.ndim} dimensions; {_listed(self.ranks)} are needed"
        elif objective.type.ndim != due:
            wrong = f"the objective {objective} has {objective.type.ndim} dimensions; {due} are needed"
        elif not self.is_minimization and any(map(_differ, x.type.shape, objective.type.shape)):
            wrong = f"there are {x.type.shape[0]} unknowns and {objective.type.shape[0]} equations"
        elif x not in ancestors([objective]):
            wrong = f"the objective {objective} does not depend on the unknown {x}"
        elif hess and not jac:
            wrong = "hess=True needs jac=True: no method uses it alone"
        if wrong is not None:
            raise ValueError(f"Making a {self.solver}: {wrong}")

    @property
    def description(self) -> str:
        """The arguments of Solver, as JSON."""
        record = {
            "solver": self.solver,
            "method": self.method,
            "derivatives": len(self.fgraph.outputs) - 1,
            "options": json.loads(self.options),
            "limits": self.limits,
        }
        return json.dumps(record, sort_keys=True, separators=(",", ":"))

    def make_node(self, *inputs: Any) -> Apply:
        """Return the node on `inputs`. Raises TypeError for a wrong number or type of inputs."""
        types = [nominal.type for nominal in self.inner_inputs]
        types += [tensor_type(self._unknown.dtype, (None,))] * len(self.limits)
        if len(inputs) != len(types):
            raise TypeError(f"Applying {self}: it takes {len(types)} inputs, {len(inputs)} were given")
        variables = [
            type.filter_variable(as_symbolic(given)) for type, given in zip(types, inputs, strict=True)
        ]
        return Apply(
            self, variables, [self._unknown.make_variable(), tensor_type("bool", ()).make_variable()]
        )

    @property
    def _unknown(self) -> Any:
        return self.inner_inputs[0].type

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        solver = Solver(lambda arrays: computed_outputs(self.fgraph, arrays), **json.loads(self.description))
        for cell, result in zip(output_storage, solver(inputs), strict=True):
            cell[0] = result

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Return that the solution depends on what its conditions depend on. Limits and success are not
        connected.
        """
        found = self.fgraph.computed(f"{self.solver} connections", self._connections)
        return [*([is_connected, False] for is_connected in found), *([False, False] for _ in self.limits)]

    def _connections(self, fgraph: FrozenFunctionGraph) -> list[bool]:
        inputs = [nominal.type.make_variable() for nominal in fgraph.inputs]
        return [connected for (connected,) in connections(inputs, [self._conditions(inputs)])]

    def _conditions(self, inputs: Sequence[Any]) -> Any:
        """Return the function of the unknown and the parameters that is zero at a solution."""
        objective, *_ = self.fgraph.bind(inputs)
        return _derivative(objective, inputs[0]) if self.is_minimization else objective

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        return self.pullback_wanted(inputs, outputs, cotangents, None)

    def pullback_wanted(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        cotangents: Sequence[Any],
        wanted: Sequence[bool] | None,
    ) -> list[Any]:
        """Return the gradients of the parameters; none flows to the starting point."""
        if cotangents[0] is None:
            return [None] * len(inputs)
        # Built in new variables: through the given ones, the solution itself would depend on the parameters.
        own = [nominal.type.make_variable() for nominal in self.inner_inputs]
        weights = cotangents[0].type.make_variable()
        conditions = self._conditions(own)
        adjoint = -_solve(_derivative(conditions, own[0]), weights)
        asked = [place for place in range(1, len(own)) if wanted is None or wanted[place]]
        found = pull_back([conditions], [adjoint], [own[place] for place in asked])
        present = {place: g for place, g in zip(asked, found, strict=True) if g is not None}
        actual = [outputs[0], *inputs[1 : len(own)], cotangents[0]]
        replaced = clone_replace([*present.values()], dict(zip([*own, weights], actual, strict=True)))
        gradients = dict(zip(present, replaced, strict=True))
        return [gradients.get(place) for place in range(len(inputs))]

    def __str__(self) -> str:
        return f"{type(self).__name__}{{{self.method}}}"

    __repr__ = __str__


class MinimizeOp(ScipyWrapperOp):
    """The number or vector where a 0-d objective is smallest."""

    solver = "minimize"
    is_minimization = True


class MinimizeScalarOp(ScipyWrapperOp):
    """The number where an objective is smallest. The starting point is not used."""

    solver = "minimize_scalar"
    ranks = (0,)
    is_minimization = True


class RootOp(ScipyWrapperOp):
    """The unknowns where equally many equations are zero."""

    solver = "root"
    is_minimization = False

    def __init__(self, variables: Variable, *parameters: Variable, equations: Variable, **how: Any) -> None:
        super().__init__(variables, *parameters, objective=equations, **how)


class RootScalarOp(ScipyWrapperOp):
    """The number where one equation is zero."""

    solver = "root_scalar"
    ranks = (0,)
    is_minimization = False

    def __init__(
        self,
        variables: Variable,
        *parameters: Variable,
        equation: Variable,
        method: str,
        jac: bool = False,
        **how: Any,
    ) -> None:
        super().__init__(variables, *parameters, objective=equation, method=method, jac=jac, **how)


def _check_float(solver: str, name: str, variable: Any) -> None:
    if not isinstance(variable, Variable) or not isinstance(variable.type, TensorType):
        raise TypeError(f"Making a {solver}: the {name} is {variable!r}; it must be a tensor variable")
    if variable.type.dtype not in FLOATS:
        raise TypeError(
            f"Making a {solver}: the {name} {variable} has type {variable.type}; cast it to a float"
        )


def _listed(ranks: Sequence[int]) -> str:
    return " or ".join(map(str, ranks))


def _differ(length: int | None, other: int | None) -> bool:
    """Return True if both lengths are known and differ."""
    return None not in (length, other) and length != other


def _derivative(expression: Any, x: Any) -> Any:
    """Return the gradient of a 0-d expression for `x`, or the Jacobian of a vector for a vector."""
    if expression.type.ndim == 0:
        return grad(expression, x, disconnected_inputs="ignore")
    from engine.gradient.jacobians import jacobian  # imports loops, which few models need

    return jacobian(expression, x, disconnected_inputs="ignore")


def _solve(slopes: Any, weights: Any) -> Any:
    """Return the solution y of slopes^T y = weights."""
    if slopes.type.ndim == 0:
        return weights / slopes
    from engine.tensor.linalg.equations import solve  # few models need it

    return solve(slopes.T, weights)
