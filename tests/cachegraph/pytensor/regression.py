"""A hierarchical regression of PyMC with the adapter: prints log-probability and gradient, bit for bit."""

import json

import numpy as np
import pymc as pm

import cachegraph.pytensor

cachegraph.pytensor.install()
source = np.random.default_rng(1)
groups, x, y = source.integers(0, 20, 400), source.normal(size=400), source.normal(size=400)
with pm.Model() as model:
    mean, scale, error = pm.Normal("mean"), pm.HalfNormal("scale"), pm.HalfNormal("error")
    a, b = pm.Normal("a", mean, scale, shape=20), pm.Normal("b", 0, 1, shape=20)
    pm.Normal("y", a[groups] + b[groups] * x, error, observed=y)
function = model.logp_dlogp_function(ravel_inputs=True)
function.set_extra_values({})
results = [np.asarray(item).tobytes().hex() for item in function(np.zeros(43))]
outcome = cachegraph.pytensor.explain(function._pytensor_function).outcome
print(json.dumps({"results": results, "outcome": outcome}))
