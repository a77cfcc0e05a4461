"""Random graphs of PyTensor's by the engine, each node beside its own `perform`, at extreme values, too.

    python tools/stress/pytensor_graphs.py [--seconds S] [--rounds N] [--seed TEXT] [--first K]

Variables are of all dtypes of numbers, of ranks 0 to 3 and of lengths from 0; among values are zeros of both
signs, infinities, NaN, the largest numbers and denormals. A round computes all variables of one graph, not
rewritten: each must be what the node's own `perform` makes of the engine's inputs to it. One in two is also
rewritten and computed for its last variable only, which must be the same unless PyTensor's is not, either;
one in four updates a shared variable twice. 2,000 rounds are the long form.
"""

from __future__ import annotations

import os
import random
import sys
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rounds import ROOT, run

sys.path.insert(0, str(ROOT))
os.environ["CACHEGRAPH_MODE"] = "off"
os.environ.setdefault("PYTENSOR_FLAGS", "cxx=")

try:
    import pytensor
except ImportError:
    pytensor = None

if pytensor is not None:
    from pytensor.compile.mode import Mode
    from pytensor.graph.basic import Constant
    from pytensor.graph.rewriting.db import RewriteDatabaseQuery

    import engine.pytensor
    from engine.pytensor.linker import EngineLinker
    from tests.engine.pytensor.generated_graphs import GeneratedGraph, performed

    AS_WRITTEN = RewriteDatabaseQuery(include=[])
    REWRITTEN = RewriteDatabaseQuery(
        include=["fast_run"], exclude=["cxx_only", "BlasOpt", "fusion", "inplace"]
    )

ROUNDING = {"float64": 2e-12, "float32": 2e-5}


def attack(numbers: random.Random, directory: Path) -> str | None:
    """Return the fault of one random graph."""
    warnings.simplefilter("ignore")
    try:
        with np.errstate(all="ignore"):
            graph = GeneratedGraph(numbers, extreme=numbers.random() < 0.5)
            graph.grow(numbers.randrange(1, 9))
            return _fault(graph, numbers)
    except Exception:
        return traceback.format_exc()


def _fault(graph: GeneratedGraph, numbers: random.Random) -> str | None:
    inputs, made = graph.inputs, graph.made
    values = [graph.values[variable] for variable in inputs]
    found = _function(inputs, made, Mode(EngineLinker(), AS_WRITTEN))(*values)
    known = dict(zip([*inputs, *made], [*values, *found], strict=True))
    for variable in made:
        node = variable.owner
        expected = performed(node, [known[v] if v in known else _elsewhere(graph, v) for v in node.inputs])
        place = node.outputs.index(variable)
        difference = _difference(known[variable], expected[place])
        if difference:
            return f"{pytensor.dprint(variable, file='str')}\nof {_shown(graph)}\n{difference}"
    if numbers.random() < 0.5:
        return _rewritten(graph, known)
    return _updated(graph) if numbers.random() < 0.5 else None


def _rewritten(graph: GeneratedGraph, known: dict[Any, Any]) -> str | None:
    """Return the fault of the last variable alone, rewritten: it is another, and PyTensor's is not.

    PyTensor's rewrites may make a graph that raises an error.
    """
    last, values = graph.made[-1], [graph.values[variable] for variable in graph.inputs]
    engine.pytensor.register()
    found = _outcome(_function(graph.inputs, [last], "ENGINE"), values)
    difference = repr(found) if isinstance(found, Exception) else _difference(found, known[last], 1e3)
    if not difference:
        return None
    theirs = _outcome(_function(graph.inputs, [last], Mode("py", REWRITTEN)), values)
    if isinstance(found, Exception):
        is_theirs = type(theirs) is type(found)
    else:
        is_theirs = isinstance(theirs, Exception) or bool(_difference(theirs, known[last]))
    if is_theirs:
        return None
    return f"rewritten: {pytensor.dprint(last, file='str')}\nof {_shown(graph)}\n{difference}"


def _outcome(function: Any, values: Sequence[Any]) -> Any:
    """Return the result of a function of one, or the error that it raises."""
    try:
        return function(*values)[0]
    except Exception as error:
        return error


def _updated(graph: GeneratedGraph) -> str | None:
    """Return the fault of a shared variable that takes the value of the last variable, in two calls."""
    last = graph.made[-1]
    variables = [v for v in graph.inputs if v.type == last.type]
    if not variables:
        return None
    place = variables[0]
    results = []
    for mode in (Mode(EngineLinker(), AS_WRITTEN), Mode("py", AS_WRITTEN)):
        held = pytensor.shared(graph.values[place].copy(), shape=place.type.shape)
        rest = [v for v in graph.inputs if v is not place]
        f = _function(rest, [last], mode, updates={held: last}, givens={place: held})
        values = [graph.values[v] for v in rest]
        found = [held.get_value()]
        for _ in range(2):
            try:
                found += [*f(*values), held.get_value()]
            except (ValueError, IndexError, AssertionError, ZeroDivisionError):
                found.append(np.zeros(()))
        results.append(found)
    for one, other in zip(*results, strict=False):
        difference = _difference(one, other, 1e3)
        if difference and graph.is_exact:
            return f"updated: {pytensor.dprint(last, file='str')}\nof {_shown(graph)}\n{difference}"
    return None


def _function(inputs: Sequence[Any], outputs: Sequence[Any], mode: Any, **more: Any) -> Any:
    return pytensor.function(inputs, outputs, mode=mode, on_unused_input="ignore", **more)


def _elsewhere(graph: GeneratedGraph, variable: Any) -> Any:
    """Return the value of a constant, or of what the engine was not asked for."""
    return variable.data if isinstance(variable, Constant) else graph.values[variable]


def _difference(found: Any, expected: Any, factor: float = 1.0) -> str | None:
    if (found.dtype, found.shape) != (expected.dtype, expected.shape):
        return f"{found.dtype} {found.shape} is not {expected.dtype} {expected.shape}"
    tolerance = factor * ROUNDING.get(str(found.dtype), 0.0)
    near = (found == expected) | ((found != found) & (expected != expected))
    if tolerance:
        # The smallest numbers have few digits; how large the terms of a sum were is not known.
        tiny = 1e-300 if found.dtype == "float64" else 1e-37
        near |= np.abs(found - expected) <= tolerance * np.abs(expected) + tiny
    return None if np.all(near) else f"found {found[~near][:5]}, expected {expected[~near][:5]}"


def _shown(graph: GeneratedGraph) -> str:
    return ", ".join(f"{v.name}: {v.type} {graph.values[v].tolist()}" for v in graph.inputs)


if __name__ == "__main__":
    sys.exit(
        0 if pytensor is None and not print("0 rounds: PyTensor is not installed") else run(__doc__, attack)
    )
