"""One graph computed by the engine and by PyTensor's own `perform` methods, without rewrites, and compared."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytensor
from pytensor.compile.mode import Mode
from pytensor.graph.rewriting.db import RewriteDatabaseQuery

import engine.pytensor
from engine.pytensor.linker import EngineLinker
from engine.pytensor.nodes import NodeStage

NO_REWRITES = RewriteDatabaseQuery(include=[])


def by_engine(inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
    """The function as the engine computes it, rule by rule."""
    engine.pytensor.register()
    mode = Mode(EngineLinker(), NO_REWRITES)
    return pytensor.function(inputs, outputs, mode=mode, on_unused_input="ignore", accept_inplace=True)


def by_pytensor(inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
    """The same function, each Op by its own `perform`."""
    mode = Mode("py", NO_REWRITES)
    return pytensor.function(inputs, outputs, mode=mode, on_unused_input="ignore", accept_inplace=True)


def left_to_pytensor(function: Any) -> list[str]:
    """The Ops of a function that PyTensor computes."""
    stages = function.vm.jit_fn.stages
    return [str(node.op) for stage in stages if isinstance(stage, NodeStage) for node in stage.nodes]


def computed_again(function: Any) -> list[str]:
    """The errors of the engine's after which PyTensor computed the results."""
    return [error for step in function.vm.jit_fn.steps for error in getattr(step, "repeats", ())]


def outcome(function: Any, values: Sequence[Any]) -> Any:
    """The results, or the class of the exception."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return function(*values)
        except Exception as error:
            return type(error)


def check_same(found: Any, expected: Any, names: Sequence[str], rtol: float = 1e-12) -> None:
    """Dtypes and shapes equal, floats to `rtol` (float32: 1e-5), everything else exactly."""
    assert isinstance(found, list) == isinstance(expected, list), (found, expected)
    if not isinstance(found, list):
        assert found is expected
        return
    for name, one, other in zip(names, found, expected, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape), name
        exact = one.dtype.kind != "f"
        tolerance = 0.0 if exact else max(rtol, 1e-5 if one.dtype == "float32" else 0.0)
        small = 0.0 if exact else 1e-300 if one.dtype == "float64" else 1e-38
        np.testing.assert_allclose(one, other, tolerance, small, err_msg=name)


@pytensor.config.change_flags(cxx="")
def agree(
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    values: Sequence[Any],
    whole: bool = True,
    rtol: float = 1e-12,
) -> None:
    """Assert that the engine gives what PyTensor gives, an exception's class included.

    PyTensor may not have given the results itself. With `whole`, nothing may be left to it. The C compiler,
    which takes 15 seconds for a graph within an Op, is not used.
    """
    function = by_engine(inputs, outputs)
    if whole:
        assert left_to_pytensor(function) == []
    found = outcome(function, values)
    assert computed_again(function) == []
    check_same(found, outcome(by_pytensor(inputs, outputs), values), [str(o.owner) for o in outputs], rtol)
