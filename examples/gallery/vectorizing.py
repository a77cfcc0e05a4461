"""A graph of one example made one of many."""

import numpy as np

import engine as pytensor
import engine.tensor as pt
from engine.graph.replace import vectorize_graph

x = pt.dvector("x")
W = pt.dmatrix("W")
layer = pt.tanh(pt.dot(W, x))
norm = pt.sqrt((layer**2).sum())

batch = pt.dmatrix("batch")
many_layers, many_norms = vectorize_graph([layer, norm], {x: batch})
rng = np.random.default_rng(6)
values = rng.normal(size=(5, 3)), rng.normal(size=(4, 3))
layers, norms = pytensor.function([batch, W], [many_layers, many_norms])(*values)

matrices = pt.dtensor3("matrices")
A = pt.dmatrix("A")
log_determinant = 2 * pt.log(pt.diagonal(pt.linalg.cholesky(A))).sum()
of_many = vectorize_graph(log_determinant, {A: matrices})
positive = np.stack([np.eye(3) * (k + 1) + 0.1 for k in range(4)])
log_determinants = pytensor.function([matrices], of_many)(positive)

multiply = pt.vectorize(lambda a, b: pt.dot(a, b), signature="(i,j),(j)->(i)")
right = pt.dmatrix("right")
products = pytensor.function([matrices, right], multiply(matrices, right))(positive, np.ones((4, 3)))
