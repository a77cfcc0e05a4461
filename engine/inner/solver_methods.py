"""The methods of SciPy's solvers: which there are, which derivatives each uses, and what each must be told.

From the documentation of scipy.optimize 1.15 to 1.17. Nothing of SciPy is imported.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Method:
    """One method: how many derivatives it can use, how many it needs, and the argument without which it does not run."""

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
"""The keyword arguments that are plain values. Those of `limits` are inputs, where a solver has them."""

_DERIVATIVES = ("no derivatives", "jac=True", "jac=True and hess=True")


def find_method(solver: str, name: str, derivatives: int, limits: Collection[str]) -> Method:
    """The method `name` (in any case) of `solver`.

    Refuses (ValueError) one that there is not, one that needs more than so many derivatives, and one that needs an
    argument which is not among `limits`.
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
    """`options`, keyword arguments of `solver`, as JSON: equal for equal ones, whatever their order.

    Refuses (ValueError) an argument that the solver has not or that is an input, (TypeError) a value that is not made of
    numbers, strings, None, lists, tuples and dicts.
    """
    given = dict(options or {})
    unknown = sorted(map(str, set(given).difference(_OPTIONS[solver])))
    if unknown:
        raise ValueError(
            f"Making a {solver}: optimizer_kwargs has {', '.join(unknown)}; it may have {', '.join(_OPTIONS[solver])}"
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
            f"Making a {solver}: {path} is {value!r} ({type(value).__name__}); it must be plain: numbers, strings, None, "
            "lists, tuples and dicts"
        )
