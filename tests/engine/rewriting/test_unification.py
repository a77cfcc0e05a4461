"""Patterns of Ops and variables: their matches, and graphs built from them."""

import pytest

import engine.tensor as pt
from engine import scalar
from engine.rewriting.unification import (
    Asterisk,
    ConstrainedVar,
    OpPattern,
    PatternVar,
    convert_strs_to_vars,
    match_pattern,
    reify_pattern,
)
from engine.tensor.reduction import Reduction, Sum

x, y = pt.dvector("x"), pt.dvector("y")


def found(pattern, variable):
    """Return what the names of a pattern stand for in the node of `variable`, by name."""
    matched = match_pattern(convert_strs_to_vars(pattern), variable.owner)
    return None if matched is None else {name.token: value for name, value in matched.items()}


def test_a_name_is_one_object_with_one_constraint():
    names = {}
    pattern = convert_strs_to_vars((pt.add, {"pattern": "x", "constraint": callable}, "x"), names)
    assert pattern.inputs[0] is pattern.inputs[1] is names["x"]
    assert names["x"].constraint is callable
    with pytest.raises(ValueError, match="two constraints"):
        convert_strs_to_vars({"pattern": "x", "constraint": bool}, names)
    with pytest.raises(TypeError, match="both an Asterisk and one variable"):
        convert_strs_to_vars(Asterisk("x"), names)
    with pytest.raises(TypeError, match="must be the last"):
        convert_strs_to_vars((pt.add, Asterisk("x"), "y"))


def test_an_asterisk_stands_for_all_further_inputs_and_is_spread_out_again():
    stacked = pt.stack([x, y, x + y]).owner.op
    pattern = convert_strs_to_vars((stacked, "axis", "first", Asterisk("rest")))
    node = stacked.make_node(*pt.stack([x, y, x + y]).owner.inputs)
    matched = match_pattern(pattern, node)
    assert list(matched.values())[2:] == [tuple(node.inputs[2:])]
    again = reify_pattern(pattern, matched)
    assert again.owner.inputs == list(node.inputs)
    assert found((pt.exp, "x", Asterisk("rest")), pt.exp(x)) == {"x": x, "rest": ()}
    assert found((pt.exp, "x", "y", Asterisk("rest")), pt.exp(x)) is None


def test_an_asterisk_stands_for_the_terms_of_a_sum_or_product_of_several():
    pattern = (pt.add, "first", Asterisk("rest"))
    assert found(pattern, pt.add(x, y, x)) == {"first": x, "rest": (y, x)}
    assert found(pattern, x + (y + (x + y))) == {"first": x, "rest": (y, x, y)}
    total, product, z = x + y, x * y, pt.fvector("z")
    assert found((pt.mul, "first", Asterisk("rest")), total * x * y) == {"first": total, "rest": (x, y)}
    assert found(pattern, product + x) == {"first": product, "rest": (x,)}
    narrow = z + z  # it rounds to float32
    assert found(pattern, narrow + x) == {"first": narrow, "rest": (x,)}
    assert found((pt.sub, "first", Asterisk("rest")), (x - y) - x)["rest"] == (x,)


def test_a_sum_that_something_else_reads_is_one_term():
    part = x + y
    pattern = convert_strs_to_vars((pt.add, "first", Asterisk("rest")))
    matched = match_pattern(pattern, (part + x).owner, may_go=lambda variable: variable is not part)
    assert list(matched.values()) == [part, (x,)]


def test_a_commutative_op_deep_in_a_pattern_is_tried_in_every_order():
    assert found((pt.sub, (pt.add, "x", "y"), "y"), (x + y) - x) == {"x": y, "y": x}


def test_parameters_of_ops_are_found_and_given_back():
    column = x.sum(axis=0)
    assert found((OpPattern(Sum, axis="axes"), "x"), column) == {"axes": (0,), "x": x}
    names = {}
    pattern = convert_strs_to_vars((OpPattern(Sum, axis="axes"), "x"), names)
    assert reify_pattern(pattern, match_pattern(pattern, column.owner)).owner.op == column.owner.op
    assert OpPattern(Sum, axis=(0,)).match_op(column.owner.op)
    assert not OpPattern(Sum, axis=(1,)).match_op(column.owner.op)
    with pytest.raises(ValueError, match="several classes"):
        reify_pattern(OpPattern((Sum, int)), {})


def test_a_name_that_nothing_is_bound_to_is_refused():
    with pytest.raises(ValueError, match="nothing is bound to 'x'"):
        reify_pattern(PatternVar("x"), {})


def test_a_constrained_variable_is_a_pattern_variable():
    small = ConstrainedVar(lambda value: value < 1, "tok")
    assert isinstance(small, PatternVar)
    assert small.constraint(0)


def test_a_reduction_over_all_axes_has_none_for_them_and_a_scalar_op():
    x = pt.matrix("x")
    pattern = convert_strs_to_vars((OpPattern(Reduction, scalar_op="op", axis=None), "x"))
    found = match_pattern(pattern, pt.sum(x).owner)
    assert {name.token: value for name, value in found.items()} == {"op": scalar.add, "x": x}
    assert match_pattern(pattern, pt.sum(x, axis=0).owner) is None
    assert match_pattern(convert_strs_to_vars((OpPattern(Sum, axis=(0, 1)), "x")), pt.sum(x).owner)
    kinds = [pt.sum, pt.prod, pt.max, pt.min, pt.all, pt.any]
    expected = [scalar.add, scalar.mul, scalar.maximum, scalar.minimum, scalar.and_, scalar.or_]
    assert [kind(x).owner.op.scalar_op for kind in kinds] == expected
