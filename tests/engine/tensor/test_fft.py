"""Transforms whose coefficients are pairs of real numbers."""

import numpy as np

import engine
import engine.tensor as pt
from engine.tensor.fft import RFFTOp


def test_lengths_of_coefficients_need_no_transform():
    x = pt.dmatrix("x")
    f = engine.function([x], pt.fft.rfft(pt.exp(x)).shape)
    assert f(np.ones((3, 7))).tolist() == [3, 4, 2]
    assert f(np.ones((2, 1))).tolist() == [2, 1, 2]
    assert not [node for node in f.maker.fgraph.toposort() if isinstance(node.op, RFFTOp)]
