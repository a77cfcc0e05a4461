"""A process that makes functions of known models and of generated graphs, and prints key, outcome and
results of each.

    python tests/flow/identity_process.py VARIANT [here | spawn | fork]

The graphs are the same in every process. With VARIANT 0 they are built as they were generated; with
another one their variables have other names, and their nodes are made in another order and some of
them several times.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import sys
from functools import cache
from random import Random
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings

import engine
from engine.compiling.key import encode_graph
from engine.graph import FrozenFunctionGraph
from tests.engine.generated_graphs import Graph, graphs, rebuilt

COUNT = 12


@cache
def generated() -> list[Graph]:
    """The same few graphs in every process, no two of them equal.

    A process generates them once: Hypothesis also draws the numbers that it finds in the source of modules,
    and later more of these are loaded.
    """
    found: dict[bytes, Graph] = {}

    @settings(
        max_examples=3 * COUNT,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(graphs(8))
    def collect(graph: Graph) -> None:
        inputs, _ = graph.needed(graph.sinks)
        found.setdefault(encode_graph(FrozenFunctionGraph.from_io(inputs, graph.sinks)), graph)

    collect()
    return sorted(found.values(), key=lambda graph: -len(graph.made))[:COUNT]


def reports(variant: int) -> list[dict[str, Any]]:
    """What each function is found under, how, and a digest of what it gives."""
    random = Random(variant)
    rows = []
    for graph in generated():
        inputs, values = graph.needed(graph.sinks)
        outputs = graph.sinks
        if variant:
            inputs, outputs = rebuilt(inputs, outputs, random)
        f = engine.function(inputs, outputs, name=f"variant {variant}")
        content = b"".join(result.tobytes() for result in f(*values))
        rows.append(
            {
                "key": f.cache_info.key,
                "outcome": f.cache_info.outcome,
                "results": hashlib.sha256(content).hexdigest(),
            }
        )
    return rows


def _send(connection: Any, variant: int) -> None:
    connection.send(reports(variant))


def _in_child(variant: int, method: str) -> list[dict[str, Any]]:
    context = multiprocessing.get_context(method)
    receiving, sending = context.Pipe()
    # Whatever the parent has built, interned and hashed before is not to matter in a forked child.
    _ = [np.exp(1.0), generated()]
    child = context.Process(target=_send, args=(sending, variant))
    child.start()
    found = receiving.recv()
    child.join()
    return found


if __name__ == "__main__":
    number, how = int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "here"
    json.dump(reports(number) if how == "here" else _in_child(number, how), sys.stdout)
