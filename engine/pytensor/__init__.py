"""The engine as a backend of PyTensor: functions that PyTensor makes, computed by the engine's programs.

    import engine.pytensor

    engine.pytensor.register()
    f = pytensor.function(inputs, outputs, mode="ENGINE")

Importing this does nothing; `register` imports PyTensor and adds the linker "engine" and the mode "ENGINE".
From below, each floor importing only those before it:

    requirement     what must hold for results to count
    room            the memory for what is computed once
    nodes           nodes that PyTensor's own code computes
    representation  PyTensor's types and values as the engine's
    scope           the engine's variables that stand for PyTensor's, in one graph
    rules           one rule an Op: PyTensor's node -> the engine's variables
    stages          a graph as functions of the engine, and nodes that PyTensor computes
    prologue        what needs data alone, and is computed once
    steps           a stage of the engine's as a function
    program         the steps of a graph, on the storage of a function
    linker          PyTensor's linker of that name
    explanation     who computes the nodes of a function
    registration    linker and mode in PyTensor's registries
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.pytensor.explanation import explain as explain
    from engine.pytensor.registration import register as register

_MODULE_OF = {
    "explain": "engine.pytensor.explanation",
    "register": "engine.pytensor.registration",
}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'engine.pytensor' has no attribute {name!r}")
    value = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF})
