"""Processes that put hostile bytes into a store, whole and with their checksums, and that make functions from it.

python hostile_entries.py write DIRECTORY FILE COUNT      a cache for each of COUNT hostile pickles, and each of TARGETS
python hostile_entries.py read DIRECTORY                  name -> what a new process made of each, as JSON
"""

from __future__ import annotations

import io
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import cachegraph
import engine
import engine.tensor as pt
from cachegraph.cache import Artifact
from cachegraph.caching.writing import EntryWriter
from cachegraph.key import CacheKey
from engine import OpFromGraph
from tests.cachegraph.pickling.hostile_pickles import bombs, commands, memory_of_others

TARGETS = ("payloads", "blobs")
VALUE = np.linspace(-1.0, 1.0, 7)
DUE = float(2 * np.exp(VALUE * 1.5).sum() + 1.5)


def payloads(file: str, count: int) -> Iterator[tuple[str, bytes]]:
    """Some of each kind of hostile pickle."""
    kinds = [list(commands(file)), list(bombs()), list(memory_of_others())]
    chosen = {}
    for kind in kinds:
        step = max(1, len(kind) // count)
        chosen.update(dict(kind[::step][:count]))
    yield from chosen.items()


def make() -> Any:
    """A function with an inner graph, whose optimized form is an entry of its own."""
    x, y = pt.vector("x"), pt.scalar("y")
    inner = OpFromGraph([x, y], [pt.exp(x * y) * 2, y + 1])
    swollen, more = inner(x, y)
    return engine.function([x, y], pt.sum(swollen) + more - 1)


def write(directory: Path, file: str, count: int) -> None:
    """Fill a cache for each hostile pickle and target, one process each."""
    for number, (name, content) in enumerate(payloads(file, count)):
        for target in TARGETS:
            place = directory / f"{number}-{target}"
            place.mkdir(parents=True)
            (place / "name").write_text(f"{name} as {target}")
            _in_child(place, lambda content=content, target=target: _attack(content, target))


def _attack(content: bytes, target: str) -> str:
    keep_all = EntryWriter.keep_all

    def keep_hostile(self: EntryWriter, built: Mapping[CacheKey, tuple[Artifact, float]]) -> Any:
        return keep_all(self, {key: (hostile(artifact), load) for key, (artifact, load) in built.items()})

    def hostile(artifact: Artifact) -> Artifact:
        if target == "payloads":
            return artifact._replace(payload=content)
        return artifact._replace(blobs=dict.fromkeys(artifact.blobs, content))

    EntryWriter.keep_all = keep_hostile  # type: ignore[method-assign]
    make()
    return "written"


def _made() -> dict[str, Any]:
    f = make()
    printed = io.StringIO()
    engine.dprint(f, file=printed)
    return {
        "outcome": f.cache_info.outcome,
        "result": float(f(VALUE, 1.5)),
        "misses": dict(cachegraph.counters().misses),
        "graph": printed.getvalue(),
    }


def read(directory: Path) -> dict[str, Any]:
    """What a process makes of each cache, and then another one."""
    found = {}
    for place in sorted(directory.iterdir()):
        name = (place / "name").read_text()
        found[name] = [_in_child(place, _made), _in_child(place, _made)]
    return found


def _in_child(place: Path, work: Callable[[], Any]) -> Any:
    """What `work` gives in a forked child whose cache is at `place`."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.environ["CACHEGRAPH_DIR"] = str(place / "cache")
        try:
            answer = json.dumps(work())
        except BaseException:
            answer = json.dumps({"outcome": traceback.format_exc()})
        os.write(writing, answer.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    return json.loads(answer) if status == 0 else {"outcome": f"ended with {status}"}


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
    else:
        json.dump(read(Path(sys.argv[2])), sys.stdout)
