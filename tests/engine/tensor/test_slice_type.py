"""Slices as values of a graph."""

from __future__ import annotations

import numpy as np
import pytest

import engine.tensor as pt
from engine import function
from engine.basic import as_symbolic
from engine.graph import Apply, Op
from engine.tensor.type_other import MakeSlice, NoneConst, NoneSliceConst, SliceConstant, slicetype

pytestmark = pytest.mark.usefixtures("kernels_once")


class Cut(Op):
    """The part of a vector that a slice says."""

    __props__ = ()

    def make_node(self, x, part):
        return Apply(self, [x, as_symbolic(part)], [pt.vector(dtype=x.type.dtype)])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0][inputs[1]]


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
def test_a_users_op_takes_a_slice(mode):
    x, i, value = pt.dvector("x"), pt.iscalar("i"), np.arange(6.0)
    parts = [slice(1, 4), slice(i, None, 2), NoneSliceConst]
    f = function([x, i], [Cut()(x, part) for part in parts], mode=mode)
    for found, part in zip(f(value, 2), [slice(1, 4), slice(2, None, 2), slice(None)], strict=True):
        np.testing.assert_array_equal(found, value[part])


def test_a_slice_is_a_result_and_an_argument():
    i, part = pt.lscalar("i"), slicetype("part")
    assert function([i], as_symbolic(slice(i, -1)))(3) == slice(3, -1)
    assert function([part], part)(slice(1, None)) == slice(1, None)
    with pytest.raises(TypeError, match="slice"):
        function([part], part)(3)


def test_what_is_none_or_a_slice_is_a_constant_of_its_type():
    assert as_symbolic(None) is NoneConst
    found = as_symbolic(slice(np.array(1), 2), name="part")
    assert isinstance(found, SliceConstant)
    assert (found.type, found.data, found.name) == (slicetype, slice(1, 2), "part")
    assert str(as_symbolic(slice(1))) == "SliceConstant{None, 1, None}"
    assert found.equals(as_symbolic(slice(1, 2)))
    assert as_symbolic([1, 2]).type.shape == (2,)
    assert as_symbolic(found) is found


def test_a_bound_is_a_whole_number():
    with pytest.raises(TypeError, match="whole number"):
        MakeSlice()(pt.dscalar("x"))
    with pytest.raises(TypeError, match="where a slice is due"):
        slicetype.make_constant(1)


def test_a_slice_is_made_of_its_bounds_by_pytensors_name():
    x, stop = pt.dvector("x"), pt.lscalar("stop")
    f = function([x, stop], Cut()(x, pt.make_slice(1, stop, 2)))
    np.testing.assert_array_equal(f(np.arange(6.0), 4), [1.0, 3.0])
    assert pt.make_slice(slice(None)).type == pt.slicetype
