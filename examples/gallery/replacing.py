"""Graphs changed from outside: parts replaced, graphs cloned, compared and rewritten."""

import engine as pytensor
import engine.tensor as pt
from engine.graph import clone_replace, graph_inputs, graph_replace, rewrite_graph
from engine.graph.basic import equal_computations

x, y, mu, sigma = pt.dscalars("x", "y", "mu", "sigma")
z = (x - mu) / sigma
density = -0.5 * z**2 - pt.log(sigma)

at_y = graph_replace(density, {x: y})
standard = graph_replace(
    density, {mu: pt.constant(0.0, dtype="float64"), sigma: pt.constant(1.0, dtype="float64")}
)
of_product = graph_replace(density, {z: x * y})
value_at_y = pytensor.function([y, mu, sigma], at_y)(0.3, 0.1, 2.0)
standard_value = pytensor.function([x], standard)(0.3)
value_of_product = pytensor.function([x, y, sigma], of_product)(2.0, 3.0, 2.0)

names = sorted(v.name for v in graph_inputs([density]) if v.name is not None)
computes_the_same = equal_computations([clone_replace(density)], [density])
differs = equal_computations([at_y], [density])

vector = pt.dvector("vector")
unstable = pt.log(1 + pt.exp(vector))
stable = rewrite_graph(unstable, include=("canonicalize", "stabilize"))
values = pytensor.function([vector], stable)([-800.0, 0.0, 800.0])
