"""The arrays that programs hold for values that are none, as tensors."""

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.random.type import random_generator_type
from engine.tensor.held_arrays import HeldArray, HeldValue, held_array, held_value

pytestmark = pytest.mark.usefixtures("kernels_once")


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
def test_a_value_comes_back_from_its_array(mode):
    rng = pt.random.rng("rng")
    vector = held_array(rng)
    f = engine.function([rng], [vector, held_value(vector + 0, random_generator_type)], mode=mode)
    mine = np.random.default_rng(1)
    array, copy = f(mine)
    assert np.array_equal(array, random_generator_type.to_array(mine))
    assert copy is not mine
    assert copy.bit_generator.state == mine.bit_generator.state


def test_the_array_of_a_value_made_of_an_array_is_that_array():
    array = pt.vector(dtype="uint64")
    assert held_array(held_value(array, random_generator_type)) is array


def test_none_is_held_as_an_empty_array():
    none = pt.none_type_t("none")
    assert engine.function([none], held_array(none))(None).shape == (0,)
    assert pt.NoneConst.value is None
    assert pt.NoneConst.data is None
    assert engine.function([], [pt.NoneConst, held_array(pt.NoneConst)])()[1].shape == (0,)
    with pytest.raises(TypeError, match="where None is due"):
        pt.none_type_t.filter(0)


def test_tensors_are_arrays_themselves():
    with pytest.raises(TypeError, match="no variable whose values are no arrays"):
        HeldArray().make_node(pt.vector())
    for other in (pt.vector(), pt.matrix(dtype="uint64")):
        with pytest.raises(TypeError, match="it holds none"):
            HeldValue(random_generator_type).make_node(other)
