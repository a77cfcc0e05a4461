"""Printers that users assign: by Op, by class, by condition; for each output of an Op."""

from typing import Any

import pytest

import engine.tensor as pt
from engine.graph import Apply, Op
from engine.printing import pp
from engine.tensor.formula_printers import (
    FunctionPrinter,
    IgnorePrinter,
    OperatorPrinter,
    PatternPrinter,
    PPrinter,
    default_printer,
)

x, y = pt.dscalar("x"), pt.dscalar("y")


class Both(Op):
    """Two results of two scalars, with a `scale`."""

    __props__ = ("scale",)

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale

    def make_node(self, *inputs: Any) -> Apply:
        return Apply(self, inputs, [x.type(), x.type()])


def test_a_pattern_for_each_output_places_the_inputs() -> None:
    printer = pp.clone_assign(Both, PatternPrinter("<%(0)s|%(1)s>", ("[%(1)s]", -1000)))
    first, second = Both()(x + y, y)
    assert printer(first - second) == "(<(x + y)|y> - [y])"
    assert pp(second) == "Both{scale=1.0}((x + y), y).1"


def test_an_op_comes_before_its_class_and_the_last_condition_first() -> None:
    printer = PPrinter()
    out = Both(2.0)(x, y)[0]
    assert printer(out) == ""
    printer.assign(lambda state, variable: True, default_printer)
    printer.assign(lambda state, variable: variable is x, PPrinter())
    assert printer(out) == "Both{scale=2.0}(, y)"
    printer.assign(Both, FunctionPrinter(["f", "g"], ["scale"]))
    assert printer(out) == "f(, y, scale=2.0)"
    printer.assign(Both(2.0), IgnorePrinter())
    assert printer(out) == ""
    assert printer(Both(3.0)(y, y)[1]) == "g(y, y, scale=3.0)"


def test_an_operator_is_between_its_arguments_or_before_one() -> None:
    printer = pp.clone_assign(Both, OperatorPrinter("@", -1, "left"))
    assert printer(Both()(x, y)[0] + Both()(x)[1]) == "((x @ y) + (@x))"


def test_a_printer_of_nodes_refuses_roots() -> None:
    printer = PPrinter()
    printer.assign(lambda state, variable: True, IgnorePrinter())
    with pytest.raises(TypeError, match="Printing x with IgnorePrinter: no Op computes it"):
        printer(x)


def test_deep_formulas_need_no_recursion() -> None:
    printer = pp.clone_assign(Both, IgnorePrinter())
    deep = x
    for _ in range(5000):
        deep = Both()(deep)[0]
    assert printer(deep) == "x"
