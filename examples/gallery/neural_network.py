"""A network with one hidden layer that learns a spiral: softmax, cross entropy, momentum."""

import numpy as np

import engine as pytensor
import engine.tensor as pt

rng = np.random.default_rng(7)
angle = rng.uniform(0, 6, size=90)
kind = np.repeat([0, 1, 2], 30)
points = np.column_stack([angle * np.cos(angle + 2 * kind), angle * np.sin(angle + 2 * kind)])

x = pt.dmatrix("x")
labels = pt.lvector("labels")
parameters = [
    pytensor.shared(0.5 * rng.normal(size=(2, 16)), name="W1"),
    pytensor.shared(np.zeros(16), name="b1"),
    pytensor.shared(0.5 * rng.normal(size=(16, 3)), name="W2"),
    pytensor.shared(np.zeros(3), name="b2"),
]
W1, b1, W2, b2 = parameters
hidden = pt.maximum(pt.dot(x, W1) + b1, 0)
log_probabilities = pt.special.log_softmax(pt.dot(hidden, W2) + b2, axis=1)
loss = -log_probabilities[pt.arange(labels.shape[0]), labels].mean()

updates = []
for parameter, gradient in zip(parameters, pytensor.grad(loss, parameters), strict=True):
    velocity = pytensor.shared(np.zeros_like(parameter.get_value()))
    faster = 0.9 * velocity - 0.02 * gradient
    updates += [(velocity, faster), (parameter, parameter + faster)]
train = pytensor.function([x, labels], loss, updates=updates)
predict = pytensor.function([x], pt.argmax(log_probabilities, axis=1))

losses = [train(points, kind) for _ in range(30)]
first_weights = W1.get_value()
predicted = predict(points)
