import numpy as np
import pytest

import engine.tensor as pt

X = np.arange(3.0) - 0.5


@pytest.mark.parametrize(
    ("left", "right"), [((1,), (1,)), ((None, 1), (1,)), ((1,), (1, None)), ((None, 1), (1, None))]
)
def test_a_product_over_one_element_is_elementwise(rewritten, dtype, left, right):
    x, y = pt.tensor("x", dtype=dtype, shape=left), pt.tensor("y", dtype="float64", shape=right)
    values = [X.reshape(-1, 1)] if len(left) == 2 else [X[:1]]
    values.append(X.reshape(1, -1) if len(right) == 2 else X[1:2])
    graph = rewritten([x, y], pt.dot(x, y)).check_values(values[0].astype(dtype), values[1])
    assert "Dot" not in graph.ops
    assert "mul" in graph.ops


def test_a_product_over_an_unknown_length_stays(rewritten):
    x, y = pt.tensor("x", dtype="float64", shape=(None, 1)), pt.dmatrix("y")
    assert rewritten([x, y], pt.dot(x, y)).check_values(X[:, None], X[None]).ops == ["Dot"]
