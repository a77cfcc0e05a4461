"""A damaged store gives misses and right results, whatever part of a PyTensor function was damaged."""

from __future__ import annotations

import os
import pickle
import random
import shutil
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

import cachegraph.pytensor
from cachegraph.cache import Artifact, default_cache
from cachegraph.fingerprint.primitives import pack_uint
from cachegraph.key import CacheKey
from cachegraph.pytensor import explain
from cachegraph.pytensor.stored.stored_graph import FORMAT

VALUES = np.array([1.0, 2.0, 0.25])


def make() -> Any:
    """Return a function with an inner graph and a constant large enough for a blob."""
    from pytensor.compile.builders import OpFromGraph

    x = pt.vector("x")
    weights = pt.constant(np.arange(30_000.0).reshape(3, 10_000))
    inner = OpFromGraph([x], [pt.exp(x) * x.sum()])
    return pytensor.function([x], [inner(x) + weights[:, 7], weights.sum() * x[0]], name="damaged")


def check(function: Any) -> None:
    weights = np.arange(30_000.0).reshape(3, 10_000)
    first, second = function(VALUES)
    np.testing.assert_allclose(first, np.exp(VALUES) * VALUES.sum() + weights[:, 7])
    np.testing.assert_allclose(second, weights.sum())
    assert len(function.maker.fgraph.toposort()) > 1


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store that has the function, its inner graph and its code."""
    directory = tmp_path_factory.mktemp("damage") / "cache"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CACHEGRAPH_DIR", str(directory))
        cachegraph.pytensor.install()
        check(make())
        default_cache().flush()
        cachegraph.pytensor.uninstall()
    return directory


@pytest.fixture
def store(filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Use a copy of that store."""
    directory = tmp_path / "cache"
    shutil.copytree(filled, directory)
    monkeypatch.setenv("CACHEGRAPH_DIR", str(directory))
    cachegraph.pytensor.install()
    yield directory
    cachegraph.pytensor.uninstall()


def _files(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("*") if path.is_file() and path.stat().st_size)


def _truncate(directory: Path) -> None:
    for path in _files(directory):
        content = path.read_bytes()
        path.write_bytes(content[: len(content) // 2])


def _flip(directory: Path) -> None:
    chance = random.Random(5)
    for path in _files(directory):
        content = bytearray(path.read_bytes())
        for _ in range(max(3, len(content) // 500)):
            content[chance.randrange(100, len(content))] ^= 1 << chance.randrange(8)
        path.write_bytes(content)


def _delete_blobs(directory: Path) -> None:
    for path in _files(directory):
        if "sqlite" not in path.name:
            path.unlink()


def _delete_index(directory: Path) -> None:
    for path in _files(directory):
        if "sqlite" in path.name:
            path.unlink()


def test_it_is_a_hit_as_long_as_nothing_is_damaged(store: Path) -> None:
    function = make()
    assert explain(function).outcome == "hit"
    check(function)
    assert explain(function).found["numba"] == [1, 0]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("damage", [_truncate, _flip, _delete_blobs, _delete_index])
def test_a_store_that_was_damaged_gives_the_right_results(
    store: Path, damage: Callable[[Path], None]
) -> None:
    damage(store)
    check(make())


@pytest.mark.parametrize("share", [0.0, 0.001, 0.01, 0.3, 0.9, 0.999])
def test_an_entry_that_was_written_short_is_a_miss_or_its_graph_is_made_anew(
    store: Path, share: float, caplog: pytest.LogCaptureFixture
) -> None:
    stored = make().maker._stored
    short = stored.content[: int(len(stored.content) * share)]
    assert default_cache().store(stored.key, Artifact(short, seconds={"rewrite": 1.0}))
    function = make()
    check(function)
    assert caplog.records


def test_an_entry_of_another_format_is_a_miss(store: Path) -> None:
    stored = make().maker._stored
    default_cache().store(stored.key, Artifact(b"\x63" + stored.content[1:], seconds={"rewrite": 1.0}))
    function = make()
    assert (explain(function).outcome, explain(function).reason) == ("miss", "unreadable")
    check(function)


def _keys(level: str) -> list[CacheKey]:
    catalogue = default_cache()._store.catalogue
    digests = [entry.hex for entry in catalogue.scan() if entry.level == level]
    found = [catalogue.encoding(bytes.fromhex(digest)) for digest in digests]
    return [CacheKey.parse(zlib.decompress(encoding)) for encoding in found if encoding]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("level", ["function", "op", "numba"])
def test_entries_that_hold_nonsense_are_misses(store: Path, level: str) -> None:
    keys = _keys(level)
    assert keys
    for key in keys:
        assert default_cache().store(key, Artifact(b"nonsense" * 9, seconds={"rewrite": 1.0}))
    check(make())


class Hostile:
    """An object whose pickle runs code when it is loaded."""

    def __init__(self, canary: Path) -> None:
        self.canary = canary

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.canary}",)


def test_a_hostile_graph_runs_nothing(store: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    stored, canary = make().maker._stored, tmp_path / "canary"
    places = [pack_uint(place) for place in stored.sources]
    hostile = pickle.dumps(Hostile(canary), 5)
    parts = (
        bytes((FORMAT,)),
        pack_uint(len(places)),
        *places,
        pack_uint(0),
        pack_uint(len(hostile)),
        hostile,
    )
    default_cache().store(stored.key, Artifact(b"".join(parts), seconds={"rewrite": 1.0}))
    function = make()
    check(function)
    assert not canary.exists()
    assert "UntrustedPickle" in caplog.text
