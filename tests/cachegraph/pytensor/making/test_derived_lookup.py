"""Derived graphs are found by other processes, derived once, and never wrong, whatever happens to an entry."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pymc.logprob.transforms import PowerTransform
from pymc.pytensorf import rewrite_pregrad

import cachegraph
from cachegraph.pytensor.describe import derived
from cachegraph.pytensor.making import derived_lookup
from cachegraph.pytensor.stored import derived_graph
from cachegraph.pytensor.stored.externals import Context
from tests.cachegraph.pytensor.making.deriving import (
    HAS_ENGINE,
    Made,
    installed_anew,
    looked_up,
    small,
    without_cache,
)
from tests.cachegraph.pytensor.making.deriving_process import bits_of

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with installed_anew(tmp_path / "points", monkeypatch):
        yield


def process(*arguments: str) -> subprocess.Popen[str]:
    script = Path(__file__).parent / "deriving_process.py"
    command = [sys.executable, "-W", "ignore", str(script), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTENSOR_FLAGS": "cxx="}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def printed(process: subprocess.Popen[str]) -> Any:
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    return json.loads(out)


of_engine = pytest.mark.skipif(not HAS_ENGINE, reason="the engine needs PyTensor 3.3.7")


@of_engine
def test_a_second_process_finds_all_of_them_and_the_function_that_is_made_of_them() -> None:
    first, second = (printed(process("eight_schools")) for _ in range(2))
    assert first["counts"]["op"] == [0, 3]
    assert second["counts"]["op"] == [3, 0]
    assert second["counts"]["function"][1] == 0
    assert second["bits"] == first["bits"]


@pytest.mark.slow
@of_engine
def test_of_processes_that_start_at_once_one_derives_each_graph() -> None:
    found = [printed(each) for each in [process("eight_schools") for _ in range(3)]]
    assert sum(each["counts"]["op"][1] for each in found) == 3
    assert all(each["bits"] == found[0]["bits"] for each in found)


PLACES = (
    pytest.param("pymc.logprob.basic:conditional_logp", marks=pytest.mark.slow),
    pytest.param("cachegraph.pytensor.stored.derived_graph:unpack_derived", marks=pytest.mark.slow),
    "cachegraph.store.local.eviction:Eviction.make_room",
)
"""While it derives, when it has packed, and within the transaction that stores."""


@pytest.mark.slow
@of_engine
@pytest.mark.parametrize("place", PLACES)
def test_a_process_that_is_killed_leaves_right_numbers_to_the_next(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = process("eight_schools", place)
    killed.communicate(timeout=120)
    assert killed.returncode == -signal.SIGKILL
    begin = time.monotonic()
    found = printed(process("eight_schools"))
    assert time.monotonic() - begin < 25, "it waited for the dead"
    assert sum(found["counts"]["op"]) == 3
    monkeypatch.setenv("CACHEGRAPH_MODE", "off")
    assert found["bits"] == printed(process("eight_schools"))["bits"]


@pytest.mark.parametrize(
    "other",
    [
        lambda: small(observed=(0.5, 1.5)),
        lambda: small(observed=(0.5, 1.0, 1.0)),
        lambda: small(sigma=2.0),
        lambda: small(upper=3.0),
    ],
    ids=["data", "shape", "prior", "transform"],
)
def test_another_model_is_a_miss_and_has_its_own_numbers(other: Made) -> None:
    bits_of(small())
    found, hits, misses = looked_up(lambda: bits_of(other()))
    assert (hits, misses) == (0, 3)
    assert found == without_cache(lambda: bits_of(other()))


def test_data_that_is_overwritten_between_two_calls_counts_as_it_is_then() -> None:
    seen = np.array([0.5, 1.0])
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu"), observed=pt.constant(seen))
    bits_of(model)
    seen[0] = 7.0
    found, hits, _ = looked_up(lambda: bits_of(model))
    assert hits == 0
    assert found == without_cache(lambda: bits_of(model))


def test_data_that_changes_while_a_graph_is_derived_is_not_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = np.array([0.5, 1.0])
    x = pt.dvector("x")
    own = derived_graph.pack_derived

    def pack_and_overwrite(*arguments: Any) -> bytes:
        seen[0] += 1
        return own(*arguments)

    monkeypatch.setattr(derived_graph, "pack_derived", pack_and_overwrite)
    rewrite_pregrad(pt.sum(x + pt.constant(seen)))
    seen[0] -= 1
    _, hits, misses = looked_up(lambda: rewrite_pregrad(pt.sum(x + pt.constant(seen))))
    assert (hits, misses) == (0, 0)


def test_what_pytensor_warns_of_is_derived_and_warned_of_each_time(caplog: pytest.LogCaptureFixture) -> None:
    """PyTensor skips a rewrite that fails, with an error in its log."""
    with pm.Model() as model:
        pm.Normal("x", transform=PowerTransform(2))
    for _ in range(2):
        caplog.clear()
        _, hits, misses = looked_up(lambda: model.logp(sum=False))
        assert (hits, misses) == (0, 0)
        assert "Rewrite failure" in caplog.text


def test_the_signs_of_zeros_are_kept() -> None:
    x = pt.dscalar("x")
    found = [pt.arctan2(zero, x) for zero in (0.0, -0.0)]
    hand = derived_graph.InHand((x,), (x,), Context())
    read = derived_graph.unpack_derived(derived_graph.pack_derived(found, hand), hand)
    zeros = [[v.owner.inputs[0].data for v in graph] for graph in (found, read)]
    assert np.signbit(zeros).tolist() == [[False, True], [False, True]]


def test_many_numbers_that_were_computed_from_data_are_not_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derived_graph, "MOST_BYTES", 3000)
    x, data = pt.dscalar("x"), pt.constant(np.arange(1000.0))
    for _ in range(2):
        _, hits, misses = looked_up(lambda: rewrite_pregrad(pt.sum(x * pt.gammaln(data + 1))))
        assert (hits, misses) == (0, 0)


def test_of_graphs_that_differ_in_their_data_alone_a_process_stores_some(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(derived_lookup, "MOST_ALIKE", 2)
    models = [small(observed=(0.5, float(number))) for number in range(4)]
    for expected in (0, 2):
        hits = [looked_up(lambda model=model: model.logp(sum=False))[1] for model in models]
        assert sum(hits) == expected
    assert bits_of(models[3]) == without_cache(lambda: bits_of(models[3]))


def test_graphs_with_much_data_are_derived_each_time() -> None:
    x, data = pt.dscalar("x"), pt.constant(np.zeros(derived.MOST_DATA // 8 + 1))
    _, hits, misses = looked_up(lambda: rewrite_pregrad(pt.sum(pt.exp(x * data))))
    assert (hits, misses) == (0, 0)


def test_a_damaged_entry_is_a_miss(monkeypatch: pytest.MonkeyPatch) -> None:
    model = small()
    due = bits_of(model)
    for damage in (
        lambda content: content[: len(content) // 2],
        lambda content: b"",
        lambda content: b"\x07" + content[1:],
        lambda content: content[:-3] + b"abc",
        lambda content: content[:40] + bytes(40) + content[80:],
    ):
        load = derived_graph.unpack_derived
        monkeypatch.setattr(
            derived_graph,
            "unpack_derived",
            lambda content, hand, damage=damage, load=load: load(damage(content), hand),
        )
        found, hits, _ = looked_up(lambda: bits_of(model))
        assert (found, hits) == (due, 0)
        monkeypatch.setattr(derived_graph, "unpack_derived", load)


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _flip(path: Path) -> None:
    chance, content = random.Random(5), bytearray(path.read_bytes())
    for _ in range(max(3, len(content) // 100)):  # no entry stays whole
        content[chance.randrange(min(100, len(content)), len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(content)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("damage", [_truncate, _flip, Path.unlink])
def test_a_store_whose_files_are_damaged_gives_the_right_numbers(
    damage: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CACHEGRAPH_DIR", str(tmp_path / "first"))
    model = small()
    due = bits_of(model)
    assert looked_up(lambda: bits_of(model)) == (due, 3, 0)
    cachegraph.default_cache().flush()
    shutil.copytree(tmp_path / "first", tmp_path / "second")
    files = [path for path in (tmp_path / "second").rglob("*") if path.is_file() and path.stat().st_size]
    assert files
    for path in files:
        damage(path)
    monkeypatch.setenv("CACHEGRAPH_DIR", str(tmp_path / "second"))
    assert looked_up(lambda: bits_of(model))[:2] == (due, 0)


def test_a_cache_that_cannot_be_used_derives_as_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*arguments: Any) -> Any:
        raise RuntimeError("no description")

    model = small()
    due = bits_of(model)
    for module, name in ((derived, "describe_derived"), (derived_lookup, "default_cache")):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, failing)
            assert bits_of(model) == due
    monkeypatch.setenv("CACHEGRAPH_MODE", "off")
    assert bits_of(model) == due
