"""`minimize`, `minimize_scalar`, `root` and `root_scalar`: solutions of optimization problems as variables.

    x, target = pt.vector("x"), pt.scalar("target")
    solution, success = minimize(pt.sum((x - target) ** 2), x)

The unknown `x` is any variable that the objective depends on; its value is where the solver starts.
Other variables of the objective become parameters: what does not depend on the unknown is computed
once, before the solver runs, and gradients flow to it. A solver that fails sets `success` to false
and raises nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from engine.graph.replace import clone_replace
from engine.graph.traversal import graph_inputs, io_toposort
from engine.graph.variables import Constant, Variable
from engine.inner.optimize_ops import MinimizeOp, MinimizeScalarOp, RootOp, RootScalarOp
from engine.scalar.type import ScalarType
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.elemwise import cast
from engine.tensor.joining import concatenate, stack
from engine.tensor.shape import flatten, reshape, shape_i
from engine.tensor.single_numbers import TensorsOfNumbers, tensor_from_scalar
from engine.tensor.type import is_data

Options = Mapping[str, Any]


def minimize(
    objective: Any,
    x: Any,
    method: str = "BFGS",
    jac: bool = True,
    hess: bool = False,
    use_vectorized_jac: bool = False,
    optimizer_kwargs: Options | None = None,
) -> tuple[Any, Any]:
    """Return the `x` where the 0-d float `objective` is smallest, and a bool: True if the solver succeeded.

    `x` is a variable of any rank, or several; the solution is then a list. `method` is one of
    scipy.optimize.minimize. With `jac` and `hess` it gets gradient and Hessian if it uses them;
    without, it takes differences. `optimizer_kwargs` are its `tol`, `bounds` and `options`.
    `use_vectorized_jac` is accepted for PyTensor's sake and has no effect. Raises as ScipyWrapperOp does.
    """
    unknown, objective, solution_of = _packed(x, as_tensor_variable(objective))
    objective, inner, parameters = _parametrized(objective, unknown)
    op = MinimizeOp(
        unknown,
        *inner,
        objective=objective,
        method=method,
        jac=jac,
        hess=hess,
        optimizer_kwargs=optimizer_kwargs,
    )
    solution, success = op(unknown, *parameters)
    return solution_of(solution), success


def minimize_scalar(
    objective: Any,
    x: Any,
    method: str = "brent",
    bracket: Any = None,
    bounds: Any = None,
    optimizer_kwargs: Options | None = None,
) -> tuple[Any, Any]:
    """Return the 0-d `x` where the 0-d float `objective` is smallest, and True if the solver succeeded.

    `method` is one of scipy.optimize.minimize_scalar; none starts at the value of `x`. `bracket` (two
    or three numbers) and `bounds` (two) may be variables. `optimizer_kwargs` are `tol` and `options`.
    Raises as ScipyWrapperOp does.
    """
    how = {"method": method, "jac": False, "optimizer_kwargs": optimizer_kwargs}
    return _scalar(MinimizeScalarOp, "objective", objective, x, {"bracket": bracket, "bounds": bounds}, how)


def root(
    equations: Any,
    variables: Any,
    method: str = "hybr",
    jac: bool = True,
    use_vectorized_jac: bool = False,
    optimizer_kwargs: Options | None = None,
) -> tuple[Any, Any]:
    """Return the `variables` where `equations` are zero, and True if the solver succeeded.

    `variables` is a 0-d or 1-d variable, and `equations` has its shape; or it is a list of variables of
    any rank, `equations` is a vector with one element per unknown, and the solution is a list. `method`
    is one of scipy.optimize.root; with `jac` it gets the Jacobian if it uses it. `optimizer_kwargs` are
    its `tol` and `options`. `use_vectorized_jac` is accepted for PyTensor's sake and has no effect.
    Raises as ScipyWrapperOp does.
    """
    unknown, equations, solution_of = _packed(variables, as_tensor_variable(equations))
    equations, inner, parameters = _parametrized(equations, unknown)
    how = {"method": method, "jac": jac, "optimizer_kwargs": optimizer_kwargs}
    op = RootOp(unknown, *inner, equations=equations, **how)
    solution, success = op(unknown, *parameters)
    return solution_of(solution), success


def root_scalar(
    equation: Any,
    variable: Any,
    method: str = "secant",
    jac: bool = False,
    hess: bool = False,
    bracket: Any = None,
    optimizer_kwargs: Options | None = None,
) -> tuple[Any, Any]:
    """Return the 0-d `variable` where the 0-d float `equation` is zero, and True if the solver succeeded.

    `method` is one of scipy.optimize.root_scalar; with `jac` and `hess` it gets first and second
    derivatives if it uses them. `bracket`, two numbers with values of opposite sign, may be a variable.
    `optimizer_kwargs` are `maxiter`, `options`, `rtol`, `x1` and `xtol`. Raises as ScipyWrapperOp does.
    """
    how = {"method": method, "jac": jac, "hess": hess, "optimizer_kwargs": optimizer_kwargs}
    return _scalar(RootScalarOp, "equation", equation, variable, {"bracket": bracket}, how)


def _scalar(
    kind: type[MinimizeScalarOp] | type[RootScalarOp],
    role: str,
    expression: Any,
    x: Any,
    limits: Mapping[str, Any],
    how: Mapping[str, Any],
) -> tuple[Any, Any]:
    """Return what the Op of this `kind` finds of the `expression`, which it takes under its `role`."""
    expression = as_tensor_variable(expression)
    given = {name: _vector(value, x.type.dtype) for name, value in limits.items() if value is not None}
    expression, inner, parameters = _parametrized(expression, x)
    op = kind(x, *inner, **{role: expression}, **how, limits=tuple(given))
    solution, success = op(x, *parameters, *given.values())
    return solution, success


def _vector(value: Any, dtype: str) -> Any:
    """Return `value`, a vector or a list of numbers and variables, as a vector of `dtype`."""
    numbers = stack([*value]) if isinstance(value, list | tuple) else as_tensor_variable(value)
    return cast(numbers, dtype)


def _parametrized(objective: Any, x: Any) -> tuple[Any, list[Variable], list[Variable]]:
    """Return the objective on tensors alone, its parameters, and the tensors that are given for them.

    Numbers (ScalarType) are tensors in it: a parameter that is one has a new variable, and is given as a
    tensor.
    """
    parameters = _parameters(objective, x)
    numbers = [variable for variable in parameters if isinstance(variable.type, ScalarType)]
    tensors = TensorsOfNumbers(numbers, [objective])
    inner = dict(zip(numbers, tensors.inputs, strict=True))
    given = [tensor_from_scalar(variable) if variable in inner else variable for variable in parameters]
    return tensors.outputs[0], [inner.get(variable, variable) for variable in parameters], given


def _parameters(objective: Any, x: Any) -> list[Variable]:
    """Return the variables that the objective needs besides `x`: the last ones that do not depend on `x`.

    Small constants and what is computed from them stay in the objective. Data becomes a parameter,
    since its values are in no key.
    """
    dependent = {x}
    found: dict[Variable, None] = {}
    for node in io_toposort([x], [objective]):
        if any(variable in dependent for variable in node.inputs):
            dependent.update(node.outputs)
            found.update(dict.fromkeys(v for v in node.inputs if v not in dependent))
    return [variable for variable in found if not _is_constant(variable)]


def _is_constant(variable: Variable) -> bool:
    return all(isinstance(root, Constant) and not is_data(root) for root in graph_inputs([variable]))


def _packed(unknowns: Any, expression: Any) -> tuple[Any, Any, Callable[[Any], Any]]:
    """Return one unknown of at most 1 dimension, `expression` in terms of it, and an unpacking function."""
    are_several = isinstance(unknowns, list | tuple)
    if not are_several and getattr(unknowns, "ndim", 0) <= 1:
        return unknowns, expression, lambda solution: solution
    parts = list(unknowns) if are_several else [unknowns]
    packed = concatenate([flatten(part) for part in parts])
    expression = clone_replace(expression, dict(zip(parts, _pieces(packed, parts), strict=True)))
    return (
        packed,
        expression,
        lambda solution: _pieces(solution, parts) if are_several else _pieces(solution, parts)[0],
    )


def _pieces(packed: Any, parts: list[Any]) -> list[Any]:
    """Return consecutive parts of the vector `packed`, in the shapes and dtypes of `parts`."""
    pieces: list[Any] = []
    start: Any = 0
    for part in parts:
        lengths = [shape_i(part, dim) if n is None else n for dim, n in enumerate(part.type.shape)]
        stop = start + math.prod(lengths)
        pieces.append(cast(reshape(packed[start:stop], lengths), part.type.dtype))
        start = stop
    return pieces
