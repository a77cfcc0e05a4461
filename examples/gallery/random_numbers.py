"""Random numbers: generators as shared variables, a walk, the area of a circle, a shuffled deck, a mixture."""

import numpy as np

import engine as pytensor
import engine.tensor as pt
from engine.tensor.random.utils import RandomStream

rng = pytensor.shared(np.random.default_rng(3), name="rng")
next_rng, steps = pt.random.normal(0, 0.1, size=(1000,), rng=rng, return_next_rng=True)
walk = pytensor.function([], pt.cumsum(steps), updates={rng: next_rng})
first_walk, second_walk = walk(), walk()
rng.set_value(np.random.default_rng(3))
first_walk_again = walk()

stream = RandomStream(seed=12)
points = stream.uniform(-1, 1, size=(10_000, 2))
pi = pytensor.function([], 4 * pt.mean((points**2).sum(axis=1) < 1))
estimates = [pi() for _ in range(3)]

n_cards = pt.lscalar("n_cards")
deck = pytensor.function([n_cards], stream.permutation(n_cards))(52)
hand = pytensor.function([], stream.choice(np.arange(52), size=(5,), replace=False))()

weights = pt.dvector("weights")
kinds = stream.categorical(weights, size=(200,))
numbers = stream.normal(pt.constant([-2.0, 0.0, 3.0])[kinds], 0.5)
mixture = pytensor.function([weights], [kinds, numbers, numbers.shape[0]])
which, drawn, n_drawn = mixture([0.2, 0.5, 0.3])

mean, cov = pt.dvector("mean"), pt.dmatrix("cov")
vectors = stream.multivariate_normal(mean, cov, size=(3,))
correlated = pytensor.function([mean, cov], vectors)([1.0, -1.0], [[2.0, 0.6], [0.6, 1.0]])
