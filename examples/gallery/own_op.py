"""An Op of one's own: its type rule, its computation, the shape and the gradient of its result."""

import numpy as np

import engine as pytensor
import engine.tensor as pt
from engine.graph.basic import Apply
from engine.graph.op import Op


class AxPlusB(Op):
    """a * x + b, with numbers a and b of the Op."""

    __props__ = ("a", "b")

    def __init__(self, a, b):
        self.a = a
        self.b = b

    def make_node(self, x):
        x = pt.as_tensor_variable(x)
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage):
        (x,) = inputs
        output_storage[0][0] = self.a * x + self.b

    def infer_shape(self, fgraph, node, input_shapes):
        return input_shapes

    def pullback(self, inputs, outputs, output_gradients):
        return [self.a * output_gradients[0]]


class SumAndDifference(Op):
    """The sum and the difference of two vectors: an Op with two results."""

    __props__ = ()

    def make_node(self, x, y):
        x, y = pt.as_tensor_variable(x), pt.as_tensor_variable(y)
        return Apply(self, [x, y], [x.type(), y.type()])

    def perform(self, node, inputs, output_storage):
        x, y = inputs
        output_storage[0][0] = x + y
        output_storage[1][0] = x - y

    def pullback(self, inputs, outputs, output_gradients):
        of_sum, of_difference = output_gradients
        return [of_sum + of_difference, of_sum - of_difference]


x = pt.dmatrix("x")
y = AxPlusB(4, 1)(x)
transform = pytensor.function([x], y)
transformed = transform(np.arange(6.0).reshape(3, 2))
slopes = pytensor.function([x], pt.grad(pt.sum(y**2), x))(np.arange(6.0).reshape(3, 2))
shape = pytensor.function([x], y.shape)(np.zeros((3, 2)))

u, v = pt.dvectors("u", "v")
total, difference = SumAndDifference()(u, v)
both = pytensor.function([u, v], [total, difference])([1.0, 2.0], [5.0, 7.0])
of_product = pytensor.function([u, v], pt.grad(pt.sum(total * difference), [u, v]))
gradients = of_product([1.0, 2.0], [5.0, 7.0])
equal_ops = AxPlusB(4, 1) == AxPlusB(4, 1)
