"""Fourier transforms along an axis that a variable says."""

from __future__ import annotations

import numpy as np
import pytest

import engine.tensor as pt
from engine import function, verify_grad
from engine.tensor.fourier import Fourier, fft, ifft

pytestmark = pytest.mark.usefixtures("kernels_once")


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
def test_the_axis_of_a_transform_may_be_a_variable(mode):
    x, axis, value = pt.dtensor3("x"), pt.iscalar("axis"), np.random.default_rng(5).normal(size=(3, 4, 5))
    outputs = [fft(x, axis=axis), ifft(x, 7, axis), fft(x, 2, axis, norm="ortho")]
    f = function([x, axis], outputs, mode=mode)
    for number in range(-3, 3):
        due = [
            np.fft.fft(value, axis=number),
            np.fft.ifft(value, 7, number),
            np.fft.fft(value, 2, number, norm="ortho"),
        ]
        for found, expected in zip(f(value, number), due, strict=True):
            np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("number", [3, -4])
def test_an_axis_out_of_bounds_is_refused_when_it_is_known(number):
    x, axis = pt.dtensor3("x"), pt.iscalar("axis")
    with pytest.raises(ValueError, match="3, 4, 5"):
        function([x, axis], fft(x, axis=axis))(np.ones((3, 4, 5)), number)
    with pytest.raises(ValueError, match="axis"):
        fft(x, axis=number)


def test_a_result_has_the_length_that_is_asked_for():
    x, axis = pt.dmatrix("x"), pt.iscalar("axis")
    f = function([x, axis], fft(x, 7, axis).shape)
    assert [f(np.ones((3, 4)), number).tolist() for number in (0, -1)] == [[7, 4], [3, 7]]
    assert isinstance(fft(x, 7).owner.op, Fourier)
    assert fft(x, 7, axis).type.shape == (None, None)
    assert fft(pt.tensor(shape=(3, 1), dtype="float64"), 4, None).type.shape == (3, 4)


@pytest.mark.parametrize("number", [0, 1])
def test_a_transform_along_such_an_axis_has_a_gradient(number):
    weights = np.random.default_rng(6).normal(size=(2, 3, 4))

    def real_parts(x):
        found = fft(x, axis=pt.constant(number, dtype="int64") + pt.constant(0, dtype="int64"))
        return pt.real(found) * weights[0] + pt.imag(found) * weights[1]

    verify_grad(real_parts, [np.random.default_rng(7).normal(size=(3, 4))])
