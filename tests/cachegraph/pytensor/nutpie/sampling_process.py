"""Sample by pm.sample, with chains at once and new data, and print as JSON what numba compiled, and draws.

The adapter is installed by CACHEGRAPH_PYTENSOR alone.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np

compiled: list[str] = []
models: list[Any] = []


def watch() -> None:
    """Note what numba compiles from now on, and which models nutpie samples."""
    import nutpie
    from numba.core.compiler import CompilerBase

    for name in ("compile_extra", "compile_ir"):
        own = getattr(CompilerBase, name)

        def watched(self: Any, *args: Any, own: Any = own) -> Any:
            compiled.append(str(args[0]))
            return own(self, *args)

        setattr(CompilerBase, name, watched)
    sample = nutpie.sample

    def sampled(model: Any, *args: Any, **options: Any) -> Any:
        models.append(model)
        return sample(model, *args, **options)

    nutpie.sample = sampled


def main() -> None:
    import nutpie
    import pymc as pm

    watch()
    rng = np.random.default_rng(1)
    with pm.Model():
        covariate = pm.Data("covariate", rng.normal(size=20))
        slope = pm.Normal("slope", shape=2)
        pm.Deterministic("twice", 2 * slope)
        pm.Normal("y", slope[0] + slope[1] * covariate, observed=rng.normal(size=20))
        trace = pm.sample(draws=40, tune=40, chains=3, cores=2, random_seed=1, progressbar=False)
    (model,) = models
    other = model.with_data(covariate=np.full(20, 3.0))
    options = {"draws": 40, "tune": 40, "chains": 2, "cores": 2, "seed": 2, "progress_bar": False}
    changed = nutpie.sample(other, **options)
    drawn = trace.posterior
    np.testing.assert_allclose(drawn["twice"].values, 2 * drawn["slope"].values)
    print(
        json.dumps(
            {
                "compiled": compiled,
                "sampler": drawn.attrs["inference_library"],
                "draws": drawn["slope"].values.tobytes().hex(),
                "draws of new data": changed.posterior["slope"].values.tobytes().hex(),
            }
        )
    )


if __name__ == "__main__":
    sys.exit(main())
