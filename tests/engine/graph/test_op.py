"""Ops, types and nodes: equality by properties, and refusals."""

import pickle

import pytest

import engine.tensor as pt
from engine.errors import NullGradientError
from engine.graph import Apply, Op, Type
from engine.graph.connections import io_connection_pattern
from engine.graph.frozen_nodes import FrozenConstant
from tests.engine.graph.small_ops import PLAIN, Combine, Floats, combine, constant, follow, split


def test_ops_and_types_are_equal_by_class_and_properties():
    assert Combine("a") == Combine("a")
    assert hash(Combine("a")) == hash(Combine("a"))
    assert Combine("a") != Combine("b")
    assert Floats("a") != Floats("b")
    assert Combine("a") != Floats("a")


@pytest.mark.parametrize(
    ("first", "second"), [(1, 1.0), (1, True), (0.0, -0.0), ((0,), (False,)), ((1.0, (2,)), (1.0, (2.0,)))]
)
def test_properties_are_compared_bit_for_bit(first, second):
    assert Combine("a", first) != Combine("a", second)


def test_a_nan_property_equals_itself():
    assert Combine("a", float("nan")) == Combine("a", float("nan"))


def test_ops_without_declared_properties_equal_only_themselves():
    class Undeclared(Op):
        pass

    assert Undeclared() != Undeclared()
    op = Undeclared()
    assert op == op
    with pytest.raises(TypeError, match="declares no __props__"):
        op.props()


@pytest.mark.parametrize("name", ["step", "_step"])
def test_users_ops_are_not_equal_if_they_differ_in_what_their_props_do_not_name(name):
    class Stepped(Op):
        __props__ = ("start",)

        def __init__(self, start, step):
            self.start = start
            setattr(self, name, step)

    double, numbers = (lambda x: 2 * x), [1, 2]
    assert Stepped(1, double) == Stepped(1, double)
    assert Stepped(1, 2.0) == Stepped(1, 2.0)
    assert Stepped(1, numbers) == Stepped(1, numbers)
    assert hash(Stepped(1, 2.0)) == hash(Stepped(1, 2.0))
    for first, second in [(double, lambda x: 3 * x), (2, 2.0), (0.0, -0.0), ([1], [1])]:
        assert Stepped(1, first) != Stepped(1, second)
    assert Stepped(1, 2.0) != Stepped(2, 2.0)


def test_what_is_memoised_is_not_pickled():
    op = Combine("a")
    hash(op)
    assert set(op.__getstate__()) == {"label", "weight"}
    assert pickle.loads(pickle.dumps(op)) == op


def test_text_names_the_properties():
    assert str(Combine("a", 2)) == "Combine{label=a, weight=2}"
    assert str(split) == "Split"


def test_applying_gives_an_output_or_a_list():
    x = PLAIN("x")
    assert combine(x).owner.inputs == [x]
    first, second = split(x)
    assert (first.index, second.index) == (0, 1)
    assert combine(x, return_list=True)[0].owner.op == combine
    assert combine(x, name="y").name == "y"


def test_a_node_of_several_outputs_names_no_default():
    with pytest.raises(ValueError, match="choose one"):
        _ = split.make_node(PLAIN()).out
    node = combine.make_node(PLAIN())
    assert node.out is node.outputs[0]
    assert (node.nin, node.nout) == (1, 1)


def test_inputs_must_be_variables_and_outputs_fresh():
    x = PLAIN("x")
    with pytest.raises(TypeError, match=r"input 3\.0 is not a Variable"):
        Apply(combine, [3.0], [PLAIN()])
    with pytest.raises(ValueError, match="already computed"):
        Apply(combine, [x], [combine(x)])


def test_a_node_cloned_on_inputs_of_the_same_types_keeps_its_output_types():
    x, y = PLAIN("x"), PLAIN("y")
    node = combine.make_node(x)
    node.outputs[0].name = "out"
    found = node.clone_with_new_inputs([y])
    assert found.inputs == [y]
    assert found.outputs[0].name == "out"
    assert node.clone().inputs == [x]


def test_a_node_cloned_on_other_types_is_made_anew_unless_it_may_not_be():
    general, special = Floats("any")("x"), Floats("special")("y")
    node = follow.make_node(general)
    assert node.clone_with_new_inputs([special]).outputs[0].type == Floats("special")
    node = follow.make_node(special)
    with pytest.raises(NotImplementedError, match="Floats must implement convert_variable"):
        node.clone_with_new_inputs([general])
    assert node.clone_with_new_inputs([general], strict=False).outputs[0].type == Floats("any")
    with pytest.raises(ValueError, match="1 inputs are needed, 2 were given"):
        node.clone_with_new_inputs([special, special])


def test_an_op_that_declares_no_gradient_says_so():
    with pytest.raises(NullGradientError, match="no pullback"):
        combine.pullback([], [], [])
    assert combine.connection_pattern(combine.make_node(PLAIN(), PLAIN())) == [[True], [True]]


def test_variables_are_themselves_and_have_tags():
    x = PLAIN("x")
    x.tag.note = "kept"
    assert x != PLAIN("x")
    copy = pickle.loads(pickle.dumps(x))
    assert (copy.name, copy.type, copy.tag.note) == ("x", PLAIN, "kept")
    assert (x.clone().name, x.clone("y").name, x.clone().owner) == ("x", "y", None)
    node = combine.make_node(x, PLAIN())
    assert (node.outputs[0].owner_op, x.owner_op, x.owner_op_and_inputs) == (combine, None, (None,))
    assert node.outputs[0].owner_op_and_inputs == (combine, *node.inputs)
    assert [str(v) for v in (x, PLAIN(), split(x)[1], constant(2.0))] == [
        "x",
        "<Floats(kind='plain')>",
        "Split.1",
        "2.0",
    ]


def test_a_constant_is_its_own_clone_unless_that_is_named():
    c = constant(2.0)
    assert c.clone() is c
    assert c.clone("c").data == c.value == 2.0
    assert [str(c), str(c.clone("c"))] == ["2.0", "c{2.0}"]


def test_types_take_values_and_variables():
    assert PLAIN.is_valid_value(1.0)
    assert not PLAIN.is_valid_value("1")
    assert PLAIN.make_constant(1.0).data == 1.0
    with pytest.raises(TypeError, match="no float"):
        PLAIN.make_constant(1)
    assert PLAIN("x").name == "x"


def test_a_name_is_given_to_each_output():
    first, second = split(PLAIN("x"), name="part")
    assert (first.name, second.name) == ("part_0", "part_1")
    assert combine(PLAIN("x"), name="sum").name == "sum"


def test_constants_of_a_type_without_keys_are_equal_bit_for_bit():
    class Anything(Type):
        __props__ = ()

        def filter(self, value, strict=False, allow_downcast=None):
            return value

    kind, unhashable = Anything(), []
    assert FrozenConstant(kind, (1, "a")) is FrozenConstant(kind, (1, "a"))
    assert FrozenConstant(kind, 1) is not FrozenConstant(kind, 1.0)
    assert FrozenConstant(kind, unhashable) is FrozenConstant(kind, unhashable)
    assert FrozenConstant(kind, unhashable) is not FrozenConstant(kind, [])


def test_connections_say_which_outputs_depend_on_which_inputs():
    x, n = pt.dvector("x"), pt.lscalar("n")
    first, second = pt.split(x, [n, 3 - n], n_splits=2)
    assert io_connection_pattern([x, n], [first.sum(), second, n]) == [
        [True, True, False],
        [False, False, True],
    ]


def test_a_node_has_a_default_output():
    x = pt.dvector("x")
    node = pt.exp(x).owner
    assert node.default_output() is node.outputs[0]
    with pytest.raises(ValueError, match="no default output"):
        pt.split(x, [1, 2], n_splits=2)[0].owner.default_output()
