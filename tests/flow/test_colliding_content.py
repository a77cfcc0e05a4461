"""Contents of one XXH3-128 are two contents: whoever makes such a pair gets no result of the one for
the other.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine
import engine.tensor as pt
from cachegraph.cache import Artifact, Cache, Hit
from cachegraph.caching.carried import CarriedEntries
from cachegraph.key import CacheKey
from cachegraph.settings import Settings
from cachegraph.store.local.store import LocalStore
from cachegraph.store.maintenance.verification import verify
from cachegraph.store.shared.store import SharedStore
from engine.inner.from_graph import OpFromGraph
from tests.cachegraph.store.memory import MemoryStore
from tests.flow.colliding import colliding_arrays
from tests.flow.model_process import ROOT

PROGRAM = """
import json, sys
from tests.flow.test_colliding_content import function
f = function(int(sys.argv[1]))
print(json.dumps([f.cache_info.outcome, float(f(0.0))]))
"""


def function(which: int) -> Any:
    """A function whose Op holds one of two arrays that have one XXH3-128."""
    x = pt.scalar("x")
    inner = OpFromGraph([x], [x + pt.sum(pt.sqr(pt.constant(colliding_arrays()[which])))])
    return engine.function([x], inner(x))


def process(which: int, **environment: str) -> tuple[str, float]:
    """Outcome and result of a function that a process of its own makes."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(which)],
        env=os.environ | environment | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    outcome, result = json.loads(done.stdout)
    return outcome, result


def expected(which: int) -> Any:
    return pytest.approx(float(np.square(colliding_arrays()[which]).sum()), rel=1e-12)


@pytest.mark.parametrize("shared", [False, True], ids=["local", "shared"])
def test_a_model_with_a_crafted_constant_never_gets_the_others_numbers(
    shared: bool, cache_directory: Path, tmp_path: Path
) -> None:
    environment = {"CACHEGRAPH_SHARED_DIR": str(tmp_path / "shared")} if shared else {}
    assert process(0, **environment) == ("miss", expected(0))
    assert process(1, **environment) == ("miss", expected(1))
    assert process(0, **environment) == ("hit", expected(0))
    assert process(1, **environment) == ("hit", expected(1))
    if shared:
        environment |= {"CACHEGRAPH_DIR": str(tmp_path / "another node")}
        assert process(1, **environment) == ("hit", expected(1))
        assert process(0, **environment) == ("hit", expected(0))
    assert verify(LocalStore(cache_directory)) == []


def test_a_blob_that_was_exchanged_for_one_of_the_same_xxh3_is_found_by_verify(cache_directory: Path) -> None:
    one, other = (array.tobytes() for array in colliding_arrays())
    store = LocalStore(cache_directory)
    store.put(KEY, Artifact(b"payload", {"array": one}))
    hit = store.get(KEY)
    assert isinstance(hit, Hit)
    store.layout.blob(hit.blobs["array"]).write_bytes(other)
    assert store.read_blob(hit.blobs["array"]) is None
    assert "blob" in {problem.what for problem in verify(store)}


def test_a_pickle_takes_each_of_two_functions_own_numbers_along(monkeypatch: pytest.MonkeyPatch) -> None:
    pickled = pickle.dumps([function(0), function(1)])
    monkeypatch.setenv("CACHEGRAPH_MODE", "off")
    assert [float(f(0.0)) for f in pickle.loads(pickled)] == [expected(0), expected(1)]


KEY = CacheKey.build("kernel", {"kernel": b"k"})


@pytest.mark.parametrize("kind", ["local", "shared", "memory", "carried", "held"])
def test_every_store_keeps_both_contents(kind: str, tmp_path: Path) -> None:
    contents = {f"array {which}": array.tobytes() for which, array in enumerate(colliding_arrays())}
    if kind == "carried":
        carried = CarriedEntries()
        carried.add(KEY, b"payload", contents)
        hit, read = carried.lookup(KEY), carried.read_blob
    elif kind == "held":
        cache = Cache(Settings(tmp_path, "off", "compile"))
        memory = MemoryStore()
        memory.put(KEY, Artifact(b"payload", contents))
        with cache.holding(contents):
            hit = memory.get(KEY)
            assert isinstance(hit, Hit)
            assert {name: cache.read_blob(blob) for name, blob in hit.blobs.items()} == contents
        return
    else:
        store = {"local": LocalStore, "shared": SharedStore, "memory": lambda _: MemoryStore()}[kind](
            tmp_path
        )
        store.put(KEY, Artifact(b"payload", contents))
        hit, read = store.get(KEY), store.read_blob
    assert isinstance(hit, Hit)
    assert {name: read(blob) for name, blob in hit.blobs.items()} == contents
