"""Sample a model by pm.sample, and print as JSON what numba compiled, how the functions were found, and draws."""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np

import cachegraph.pytensor

compiled: list[str] = []
outcomes: list[str] = []


def watch() -> None:
    """Note what numba compiles from now on."""
    from numba.core.compiler import CompilerBase

    for name in ("compile_extra", "compile_ir"):
        own = getattr(CompilerBase, name)

        def watched(self: Any, *args: Any, own: Any = own) -> Any:
            compiled.append(str(args[0]))
            return own(self, *args)

        setattr(CompilerBase, name, watched)


def main() -> None:
    watch()
    cachegraph.pytensor.install(backend="engine")
    import nutpie
    import pymc as pm

    sample = nutpie.sample

    def sampled(compiled: Any, *args: Any, **options: Any) -> Any:
        for function in (compiled.logp_func, compiled.expand_func):
            outcomes.extend(step.function.cache_info.outcome for step in function.vm.jit_fn.steps)
        return sample(compiled, *args, **options)

    nutpie.sample = sampled
    effects, errors = np.array([28.0, 8, -3, 7, -1, 1, 18, 12]), np.array([15.0, 10, 16, 11, 9, 11, 10, 18])
    with pm.Model():
        mean, spread = pm.Normal("mean", 0, 5), pm.HalfCauchy("spread", 5)
        school = pm.Normal("school", shape=8)
        pm.Normal("y", pm.Deterministic("effect", mean + spread * school), errors, observed=effects)
        trace = pm.sample(draws=50, tune=50, chains=2, cores=2, random_seed=1, progressbar=False)
    print(
        json.dumps(
            {
                "compiled": compiled,
                "sampler": trace.posterior.attrs["inference_library"],
                "first": trace.posterior["school"].values[:, 0].tolist(),
                "outcomes": outcomes,
            }
        )
    )


if __name__ == "__main__":
    sys.exit(main())
