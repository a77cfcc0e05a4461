"""Drawings of stored functions, by a process that never had their programs."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cachegraph.fingerprint.encoding import encode
from cachegraph.key import CacheKey
from cachegraph.pickling.errors import InvalidPickle, UntrustedPickle
from cachegraph.report.graphs import drawn_functions
from cachegraph.store.maintenance.directory import CacheDirectory
from cachegraph.store.maintenance.whole_entries import stored_key
from cachegraph.store.tiers import place
from engine.compiling.inner_graphs import OPTIMIZED
from engine.compiling.stored_drawing import drawing

PROGRAM = """
import numpy as np
import engine, engine.tensor as pt
from engine.graph import Apply, Op

class Doubled(Op):
    __props__ = ()
    def make_node(self, x): return Apply(self, [x], [x.type()])
    def perform(self, node, inputs, outputs): outputs[0][0] = 2 * inputs[0]

x = pt.dvector("x")
data = pt.as_tensor_variable(np.arange(700.0).reshape(100, 7))
states = engine.scan(lambda s, a: s * a + 1.0, sequences=[x], outputs_info=[pt.constant(0.0)], return_updates=False)
engine.function([x], [pt.exp(data @ x).sum(), states, pt.sin(Doubled()(x))], name="stored")
"""


@pytest.fixture
def stored(cache_directory: Path) -> CacheDirectory:
    """Store a function with data, a loop and a user's Op, by another process."""
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)
    return CacheDirectory(place(cache_directory, None, "private"))


def parts_of(cache: CacheDirectory) -> tuple[CacheKey, dict[str, str]]:
    (entry,) = cache.listed("build", None, levels="function")
    file = cache.described(entry.digest)
    return stored_key(file), {blob.name: blob.digest for blob in file.blobs}


def test_a_stored_function_is_drawn_with_its_data_inner_graphs_and_users_ops(stored: CacheDirectory) -> None:
    html = drawn_functions(stored)
    assert "stored: " in html
    assert "float64" in html
    assert "(100, 7)" in html
    assert "inner graph 1: " in html
    assert "user Op " in html
    assert "cannot be drawn" not in html


def test_drawing_changes_nothing_that_later_functions_use(stored: CacheDirectory) -> None:
    import engine
    import engine.tensor as pt

    drawn_functions(stored)
    x = pt.dvector("x")
    data = np.arange(700.0).reshape(100, 7)
    found = engine.function([x], pt.as_tensor_variable(data) @ x)(np.ones(7))
    np.testing.assert_allclose(found, data.sum(axis=1))


def test_a_damaged_blob_is_said_and_drawn_is_the_rest(stored: CacheDirectory) -> None:
    for file in (stored.path / "v1" / "blobs").rglob("*"):
        if file.is_file():
            file.write_bytes(file.read_bytes()[:-1])
    html = drawn_functions(stored)
    assert "It cannot be drawn: reading the optimized graph: it is missing, damaged" in html


def test_entries_of_others_are_not_drawn(stored: CacheDirectory) -> None:
    key, blobs = parts_of(stored)
    assert drawing(key, {}, stored.local.read_blob) is None
    assert drawing(CacheKey.build("function", {"a": encode(1)}), blobs, stored.local.read_blob) is None


class Intruder:
    """Runs a command when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return open, (str(self.path), "w")


def test_a_graph_that_would_run_code_is_refused(stored: CacheDirectory, tmp_path: Path) -> None:
    key, blobs = parts_of(stored)
    hostile = pickle.dumps(Intruder(tmp_path / "ran"))
    with pytest.raises((InvalidPickle, UntrustedPickle, ValueError)):
        drawing(key, blobs, lambda _: hostile)
    assert not (tmp_path / "ran").exists()
    assert OPTIMIZED in blobs


def test_data_that_would_fill_the_memory_are_not_made() -> None:
    from engine.compiling.stored_drawing import _zeros

    assert [zeros.shape for zeros in _zeros(iter(["float32 (2, 3)", "int64"]))] == [(2, 3), ()]
    with pytest.raises(ValueError, match="more than"):
        list(_zeros(iter(["float64 (1000000, 1000000)"])))
