"""Native functions of every kind: a module, the expression by which it has the function, and a call of it."""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple

OF_BINDINGS = ("scaled", "overloaded", "inner.scaled", "Scale.still", "unit.apply")
EXPRESSIONS = {
    "with_pybind11_2": (*OF_BINDINGS, "Scale.apply"),
    "with_pybind11_3": (*OF_BINDINGS, "Scale.apply"),
    "with_nanobind": (*OF_BINDINGS, "Scale.apply"),
    "with_swig": ("scaled", "overloaded", "Scale.still", "_with_swig.scaled"),
    "with_cython": (
        *("scaled", "typed", "fused", "fused['double']", "Scale.still", "unit.apply", "Scale.apply"),
    ),
    "with_f2py": ("scaled",),
    "with_fortran": ("scaled", "inner.scaled"),
    "with_c_api": ("scaled", "inner.scaled", "Scale.still", "unit.apply", "Scale.apply"),
    "reexported": ("renamed", "moved"),
}
"""By module, what is evaluated among its attributes."""


class Case(NamedTuple):
    """One native function."""

    module: str
    expression: str

    @property
    def is_of_instances(self) -> bool:
        """Whether it takes an instance first."""
        return self.expression == "Scale.apply"

    def function(self) -> Any:
        """The function, its module imported if need be."""
        module = importlib.import_module(self.module)
        return eval(self.expression, vars(module))

    def call(self, function: Any, x: float) -> float:
        """What `function`, which is the case's, gives for `x`."""
        first = (importlib.import_module(self.module).unit,) if self.is_of_instances else ()
        return float(function(*first, x))

    def __str__(self) -> str:
        return f"{self.module}: {self.expression}"


CASES = [Case(module, expression) for module, names in EXPRESSIONS.items() for expression in names]
