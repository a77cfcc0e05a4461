"""nutpie on the engine: the two functions that it calls from its threads are programs of the engine.

    engine.pytensor.nutpie.patch()
    compiled = nutpie.compile_pymc_model(model)        # or pm.sample(), which does so
    engine.pytensor.nutpie.unpatch()

Importing this does nothing; nor does `patch` import nutpie. From below, each floor importing only those
before:

    entries     a function that PyTensor made on the engine, as a function of C
    models      a model as nutpie's compiled model
    starting    initial points and shapes, which PyMC and nutpie compute once
    patching    nutpie's own way replaced, and restored
"""

from __future__ import annotations

from engine.pytensor.nutpie.patching import patch as patch
from engine.pytensor.nutpie.patching import unpatch as unpatch
