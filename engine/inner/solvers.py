"""SciPy's solvers as functions from a starting point and parameters to a solution, and a table of
their methods.

A solver that fails says so in its result; errors of the function that it is given are raised.
scipy.optimize is imported when a solver first runs. The table follows scipy.optimize 1.15 to 1.17.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from cachegraph.logger import logger
from cachegraph.named_tuples import NamedTuple

Function = Callable[[tuple[Any, ...]], Sequence["np.ndarray[Any, Any]"]]


class Solver:
    """Call it with [starting point, *parameters, *limits]; it returns the solution and a 0-d bool for
    success.

    The solution has the shape and dtype of the starting point. `function` takes (point, *parameters)
    and returns the objective or the equations, and `derivatives` derivatives. `solver` names the
    function of scipy.optimize, `method` its method, `options` its keyword arguments, and `limits` those
    that are inputs. Arguments were checked when the Op was made.
    """

    def __init__(
        self,
        function: Function,
        solver: str,
        method: str,
        derivatives: int,
        options: Mapping[str, Any],
        limits: Sequence[str],
    ) -> None:
        self._function = function
        self._solver = solver
        self._method = method
        self._derivatives = derivatives
        self._options = options
        self._limits = limits

    def __call__(self, inputs: Sequence[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
        n_limits = len(self._limits)
        arrays = [np.asarray(array, order="C") for array in inputs]
        start, *parameters = arrays[: len(arrays) - n_limits]
        limits = dict(zip(self._limits, (a.tolist() for a in arrays[len(arrays) - n_limits :]), strict=True))
        evaluation = Evaluation(self._function, start, parameters)
        found, is_solved = self._solve(evaluation, start, {**self._options, **limits})
        solution = np.array(found, dtype=start.dtype).reshape(start.shape)
        return [solution, np.array(is_solved and evaluation.is_finite(solution))]

    def _solve(
        self, evaluation: Evaluation, start: np.ndarray[Any, Any], options: Mapping[str, Any]
    ) -> tuple[Any, bool]:
        """Return where the solver ended, and True if it says that this is a solution."""
        solve = _SOLVERS[self._solver]
        try:
            with np.errstate(all="ignore"):
                found = solve(evaluation, start, self._derivatives, {"method": self._method, **options})
        except (ValueError, ArithmeticError, RuntimeError) as error:
            evaluation.raise_if_failed()
            logger("engine").info("%s (%s) gave up: %s", self._solver, self._method, error)
            return start, False
        evaluation.raise_if_failed()
        return found


class Evaluation:
    """A function and its derivatives at the last point that a solver asked for, computed together and once.

    Points may have any dtype, and any shape of the right size.
    """

    def __init__(
        self, function: Function, start: np.ndarray[Any, Any], parameters: Sequence[np.ndarray[Any, Any]]
    ) -> None:
        self._function = function
        self._dtype = start.dtype
        self._shape = start.shape
        self._parameters = parameters
        self._point = b""
        self._results: Sequence[np.ndarray[Any, Any]] | None = None
        self._error: Exception | None = None

    def number(self, point: Any) -> float:
        """Return the function's value as a number."""
        return float(self._at(point)[0])

    def vector(self, point: Any) -> np.ndarray[Any, Any]:
        """Return the function's value as a float64 vector."""
        return _float64(self._at(point)[0]).reshape(-1)

    def slope(self, point: Any) -> float:
        """Return the first derivative of a function of a number."""
        return float(self._at(point)[1])

    def curvature(self, point: Any) -> float:
        """Return the second derivative of a function of a number."""
        return float(self._at(point)[2])

    def gradient(self, point: Any) -> np.ndarray[Any, Any]:
        """Return the gradient as a float64 vector."""
        return _float64(self._at(point)[1]).reshape(-1)

    def jacobian(self, point: Any) -> np.ndarray[Any, Any]:
        """Return the Jacobian as a float64 matrix."""
        return np.atleast_2d(_float64(self._at(point)[1]))

    def hessian(self, point: Any) -> np.ndarray[Any, Any]:
        """Return the Hessian as a float64 matrix."""
        return np.atleast_2d(_float64(self._at(point)[2]))

    def is_finite(self, point: np.ndarray[Any, Any]) -> bool:
        """Return True if `point` and the function's value there are finite."""
        return bool(np.isfinite(point).all() and np.isfinite(self._at(point)[0]).all())

    def raise_if_failed(self) -> None:
        """Raise the error that the function raised, if any: a solver may hide or replace it."""
        if self._error is not None:
            raise self._error

    def _at(self, point: Any) -> Sequence[np.ndarray[Any, Any]]:
        # A copy: solvers reuse the memory of their points.
        array = np.array(point, dtype=self._dtype, order="C").reshape(self._shape)
        content = array.tobytes()
        if self._results is None or content != self._point:
            try:
                self._results = self._function((array, *self._parameters))
            except Exception as error:
                self._error = error
                raise
            self._point = content
        return self._results


Options = Mapping[str, Any]


def _minimize(evaluation: Evaluation, start: Any, derivatives: int, options: Options) -> tuple[Any, bool]:
    from scipy import optimize

    jac = evaluation.gradient if derivatives > 0 else None
    hess = evaluation.hessian if derivatives > 1 else None
    found = optimize.minimize(evaluation.number, start.flatten(), jac=jac, hess=hess, **options)
    return found.x, bool(found.success)


def _minimize_scalar(
    evaluation: Evaluation, start: Any, derivatives: int, options: Options
) -> tuple[Any, bool]:
    from scipy import optimize

    found = optimize.minimize_scalar(evaluation.number, **options)
    return found.x, bool(found.success)


def _root(evaluation: Evaluation, start: Any, derivatives: int, options: Options) -> tuple[Any, bool]:
    from scipy import optimize

    jac = evaluation.jacobian if derivatives > 0 else None
    found = optimize.root(evaluation.vector, start.flatten(), jac=jac, **options)
    return found.x, bool(found.success)


def _root_scalar(evaluation: Evaluation, start: Any, derivatives: int, options: Options) -> tuple[Any, bool]:
    from scipy import optimize

    fprime = evaluation.slope if derivatives > 0 else None
    fprime2 = evaluation.curvature if derivatives > 1 else None
    found = optimize.root_scalar(
        evaluation.number, x0=float(start), fprime=fprime, fprime2=fprime2, **options
    )
    return found.root, bool(found.converged)


_SOLVERS = {
    "minimize": _minimize,
    "minimize_scalar": _minimize_scalar,
    "root": _root,
    "root_scalar": _root_scalar,
}


def _float64(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return array.astype(np.float64, copy=False)


class Method(NamedTuple):
    """A method: the number of derivatives it uses and needs, and the limit without which it does not run."""

    name: str
    uses: int = 0
    needs: int = 0
    limit: str | None = None


def _table(*methods: Method) -> dict[str, Method]:
    return {method.name.lower(): method for method in methods}


_METHODS = {
    "minimize": _table(
        *(Method(name) for name in ("Nelder-Mead", "Powell", "COBYLA", "COBYQA")),
        *(Method(name, uses=1) for name in ("CG", "BFGS", "L-BFGS-B", "TNC", "SLSQP")),
        Method("Newton-CG", uses=2, needs=1),
        *(Method(name, uses=2, needs=2) for name in ("dogleg", "trust-ncg", "trust-krylov", "trust-exact")),
        Method("trust-constr", uses=2),
    ),
    "minimize_scalar": _table(Method("brent"), Method("golden"), Method("bounded", limit="bounds")),
    "root": _table(
        Method("hybr", uses=1),
        Method("lm", uses=1),
        *(Method(name) for name in ("broyden1", "broyden2", "anderson", "linearmixing", "diagbroyden")),
        *(Method(name) for name in ("excitingmixing", "krylov", "df-sane")),
    ),
    "root_scalar": _table(
        *(Method(name, limit="bracket") for name in ("bisect", "brentq", "brenth", "ridder", "toms748")),
        Method("secant"),
        Method("newton", uses=1),
        Method("halley", uses=2, needs=2),
    ),
}
_OPTIONS = {
    "minimize": ("bounds", "options", "tol"),
    "minimize_scalar": ("options", "tol"),
    "root": ("options", "tol"),
    "root_scalar": ("maxiter", "options", "rtol", "x1", "xtol"),
}
"""The keyword arguments of each solver that are plain values; limits are inputs instead."""

_DERIVATIVES = ("no derivatives", "jac=True", "jac=True and hess=True")


def find_method(solver: str, name: str, derivatives: int, limits: Collection[str]) -> Method:
    """Return the method `name` of `solver`, in any case.

    Raises ValueError for an unknown method, and for one that needs more derivatives or a limit that is
    not given.
    """
    methods = _METHODS[solver]
    found = methods.get(name.lower()) if isinstance(name, str) else None
    if found is None:
        known = ", ".join(method.name for method in methods.values())
        raise ValueError(f"Making a {solver}: method is {name!r}; it must be one of {known}")
    if derivatives < found.needs:
        raise ValueError(f"Making a {solver}: method {found.name} needs {_DERIVATIVES[found.needs]}")
    if found.limit is not None and found.limit not in limits:
        raise ValueError(f"Making a {solver}: method {found.name} needs {found.limit}")
    return found


def canonical_options(solver: str, options: Mapping[str, Any] | None) -> str:
    """Return the keyword arguments `options` of `solver` as JSON, equal for equal options in any order.

    Raises ValueError for arguments that are unknown or inputs, and TypeError for values other than
    numbers, strings, None, lists, tuples and dicts.
    """
    given = dict(options or {})
    unknown = sorted(map(str, set(given).difference(_OPTIONS[solver])))
    if unknown:
        raise ValueError(
            f"Making a {solver}: optimizer_kwargs has {', '.join(unknown)}; it may have "
            f"{', '.join(_OPTIONS[solver])}"
        )
    _check_plain(given, "optimizer_kwargs", solver)
    return json.dumps(given, sort_keys=True, separators=(",", ":"))


def _check_plain(value: Any, path: str, solver: str) -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            if type(key) is not str:
                raise TypeError(f"Making a {solver}: {path} has the key {key!r}; keys must be strings")
            _check_plain(item, f"{path}[{key!r}]", solver)
    elif isinstance(value, list | tuple):
        for position, item in enumerate(value):
            _check_plain(item, f"{path}[{position}]", solver)
    elif value is not None and not isinstance(value, bool | int | float | str):
        raise TypeError(
            f"Making a {solver}: {path} is {value!r} ({type(value).__name__}); it must be plain: numbers, "
            "strings, None, lists, tuples and dicts"
        )
