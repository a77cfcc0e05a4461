"""Canonical slices select what Python's do; lengths of what an index selects are numpy's."""

from itertools import product

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.tensor.constant_values import NotScalarConstantError
from engine.tensor.index_shapes import (
    as_index_constant,
    as_index_literal,
    basic_shape,
    get_canonical_form_slice,
    indexed_result_shape,
)

N = 5
BOUNDS = (None, -7, -5, -2, 0, 1, 4, 5, 9)
STEPS = (None, -6, -2, -1, 1, 3)


def selected(form, direction):
    assert 0 <= form.start <= form.stop <= N
    assert form.step > 0
    return list(range(N)[form][::direction])


def test_canonical_slices_select_what_pythons_do():
    for parts in product(BOUNDS, BOUNDS, STEPS):
        assert selected(*get_canonical_form_slice(slice(*parts), N)) == list(range(N)[slice(*parts)])


@pytest.mark.parametrize("given", [(True, True, True), (False, True, True), (True, False, False)])
def test_canonical_slices_of_variables_do_too(given):
    names = pt.lscalars("start", "stop", "step")
    length = pt.lscalar("length")
    form, direction = get_canonical_form_slice(
        slice(*[name if is_given else None for name, is_given in zip(names, given, strict=True)]), length
    )
    outputs = [pt.as_tensor(each) for each in (form.start, form.stop, form.step, direction)]
    f = engine.function([*names, length], outputs, on_unused_input="ignore")
    for parts in product(BOUNDS[1:], BOUNDS[1:], STEPS[1:]):
        start, stop, step, way = map(int, f(*parts, N))
        python = slice(*[part if is_given else None for part, is_given in zip(parts, given, strict=True)])
        assert selected(slice(start, stop, step), way) == list(range(N)[python])


def test_integers_lose_their_sign():
    i, length = pt.lscalar("i"), pt.lscalar("length")
    assert get_canonical_form_slice(2, N) == (2, 1)
    found, direction = get_canonical_form_slice(i, length)
    assert found.eval({i: -2, length: N}) == 3
    assert direction == 1
    for wrong in (None, pt.lvector(), 1.5, True):
        with pytest.raises(ValueError, match="not a supported slice"):
            get_canonical_form_slice(wrong, N)


@pytest.mark.parametrize(
    "index",
    [(slice(1, None, -1), 2), (None, np.array([0, 1]), slice(None), np.array([[1], [0]])), (..., [1, 2])],
)
def test_lengths_of_what_an_index_selects_are_numpys(index):
    x = np.zeros((3, 4, 5))
    expected = x[index].shape
    found = indexed_result_shape(pt.constant(x).shape, index)
    assert tuple(int(length.eval(mode="NUMPY")) for length in found) == expected
    shapes = [np.shape(item) if isinstance(item, np.ndarray | list) else item for item in index]
    by_shape = indexed_result_shape((3, 4, 5), shapes, indices_are_shapes=True)
    assert tuple(int(length.eval(mode="NUMPY")) for length in by_shape) == expected


def test_an_index_is_made_constant_and_read_back():
    index = as_index_constant(slice(1, None, np.int32(2)))
    assert (index.start.data, index.stop, index.step.data) == (1, None, 2)
    assert as_index_literal(index) == slice(1, None, 2)
    assert as_index_literal(None) is None is as_index_constant(None)
    assert as_index_constant([0, 1]).type.dtype == "int64"
    with pytest.raises(NotScalarConstantError):
        as_index_literal(pt.lscalar("i"))
    with pytest.raises(TypeError, match="neither a slice, a number nor a variable"):
        as_index_literal("a")


def test_slices_select_lengths():
    assert [length.eval() for length in basic_shape((5, 4), (slice(1, 3), slice(None)))] == [2, 4]
    assert [length.eval() for length in basic_shape((5, 4), (None, slice(1, 3)))] == [1, 2]
    with pytest.raises(ValueError, match="only slices and None"):
        basic_shape((5,), (0,))
