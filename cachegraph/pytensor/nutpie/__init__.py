"""nutpie in numba mode: the two functions of C that it has numba compile in every process, from the store.

    cachegraph.pytensor.nutpie.patch()                 # `install` does this
    compiled = nutpie.compile_pymc_model(model)        # or pm.sample(), which does so
    cachegraph.pytensor.nutpie.unpatch()

Importing this does nothing; nor does `patch` import nutpie. From below, each floor importing only those
before:

    callbacks   what such a function computes, as a description for its key
    pipeline    numba's compiler of such functions, which finds them in the store
    patching    nutpie's own way replaced, and restored
"""

from __future__ import annotations

from cachegraph.pytensor.nutpie.patching import patch as patch
from cachegraph.pytensor.nutpie.patching import unpatch as unpatch
