"""A logistic regression trained by gradient descent: weights in shared variables, a function a step."""

import numpy as np

import engine as pytensor
import engine.tensor as pt

rng = np.random.default_rng(20)
n_examples, n_features = 400, 30
features = rng.normal(size=(n_examples, n_features))
labels = rng.integers(0, 2, size=n_examples).astype("float64")

x = pt.dmatrix("x")
y = pt.dvector("y")
w = pytensor.shared(rng.normal(size=n_features), name="w")
b = pytensor.shared(0.0, name="b")

probability = 1 / (1 + pt.exp(-pt.dot(x, w) - b))
prediction = probability > 0.5
cross_entropy = -y * pt.log(probability) - (1 - y) * pt.log(1 - probability)
cost = cross_entropy.mean() + 0.01 * (w**2).sum()
gradient_w, gradient_b = pt.grad(cost, [w, b])

train = pytensor.function(
    inputs=[x, y],
    outputs=[prediction, cross_entropy],
    updates=((w, w - 0.1 * gradient_w), (b, b - 0.1 * gradient_b)),
)
predict = pytensor.function(inputs=[x], outputs=prediction)

costs = [train(features, labels)[1].mean() for _ in range(200)]
weights = w.get_value()
offset = b.get_value()
right = (predict(features) == labels).mean()
