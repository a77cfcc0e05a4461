"""The mode verify: comparing a function that was found in the cache with the same function built again.

Optimized graphs are compared by identity, because equal frozen graphs are identical; programs by their
results on random arguments. Kernels are compared by their bytes where they are built (programs.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cachegraph.caching.results import is_close
from engine.graph.fgraph import FrozenFunctionGraph
from engine.graph.types import Type
from engine.runtime.callbacks import MAY_VARY
from engine.runtime.execution import Execution
from engine.tensor.type import TensorType

LENGTHS = (3, 1)
"""The lengths tried for every axis whose length the type leaves open: one for all axes, so that shapes
match."""


def difference(
    graphs: tuple[FrozenFunctionGraph | None, FrozenFunctionGraph | None],
    programs: tuple[Execution, Execution],
    inputs: Sequence[Type],
) -> str:
    """Return how the first of each pair, which was stored, differs from the second, which was built; ""
    if they agree.

    A missing stored graph is no difference. `inputs` are the types of the arguments: programs with
    inputs that are no arrays are not run, because these have no random values. Programs whose results
    change from run to run, which user Ops may do, are not compared by results.
    """
    stored, built = graphs
    if stored is not None and stored != built:
        return "its optimized graph is another"
    if not all(isinstance(type, TensorType) for type in inputs):
        return ""
    random = np.random.default_rng()
    for length in LENGTHS:
        arguments = [_random_array(type, length, random) for type in inputs]
        found, due = (_outcome(program, arguments) for program in programs)
        if not _same(found, due) and _repeats(programs[1], arguments, due):
            return f"on random arguments it gives {_shown(found)} instead of {_shown(due)}"
    return ""


def _repeats(program: Execution, arguments: Sequence[np.ndarray[Any, Any]], due: Any) -> bool:
    """Return True if `program` computes `due` again, as every program does that runs neither user code nor
    a draw from the system."""
    return not _may_vary(program) or _same(_outcome(program, arguments), due)


def _may_vary(program: Execution) -> bool:
    called = [function.execution for function in program.functions]
    return any(use.kind in MAY_VARY for use in program.program.callbacks) or any(map(_may_vary, called))


def _random_array(type: Any, length: int, random: np.random.Generator) -> np.ndarray[Any, Any]:
    shape = [length if size is None else size for size in type.shape]
    dtype = np.dtype(type.dtype)
    if dtype.kind in "biu":
        return random.integers(0, 2, shape).astype(dtype)
    return random.uniform(0.5, 1.5, shape).astype(dtype)


def _outcome(program: Execution, arguments: Sequence[np.ndarray[Any, Any]]) -> list[Any] | Exception:
    """Return the results, or the error that these arguments raise; the arguments are copied for each
    program."""
    try:
        return [np.array(result) for result in program.run(tuple(array.copy() for array in arguments))]
    except Exception as error:  # random arguments may not fit: then both must say so
        return error


def _same(found: list[Any] | Exception, due: list[Any] | Exception) -> bool:
    if isinstance(found, Exception) or isinstance(due, Exception):
        return type(found) is type(due)
    return len(found) == len(due) and all(map(is_close, found, due))


def _shown(outcome: list[Any] | Exception) -> str:
    return repr(outcome)[:200]
