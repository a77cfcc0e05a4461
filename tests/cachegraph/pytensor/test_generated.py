"""Two thousand random graphs: equal keys mean equal results, and each one-site change another key."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytensor
import pytest

from tests.cachegraph.pytensor.describing import key_of
from tests.cachegraph.pytensor.keys_process import recipe_key
from tests.cachegraph.pytensor.recipes import Recipe, build, made, mutated, values

FULL = os.environ.get("CACHEGRAPH_STRESS") == "full"
COUNT = 2000 if FULL else 200
ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def keys() -> list[str]:
    return [recipe_key(seed) for seed in range(COUNT)]


def results(recipe: Recipe) -> bytes:
    """Return the bits of two calls and of the shared variables afterwards, by PyTensor's Python linker."""
    built = build(recipe)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        f = pytensor.function(
            built.inputs, built.outputs, updates=built.updates, mode="FAST_COMPILE", on_unused_input="ignore"
        )
        found = [item for _ in range(2) for item in f(*values())]
    kept = [built.shared[0].get_value(), *state(built.shared[1].get_value().bit_generator.state)]
    return b"".join(np.asarray(item).tobytes() for item in (*found, *kept))


def state(found: dict[str, Any]) -> list[Any]:
    return [found["state"]["state"] % 2**63, found["has_uint32"], found["uinteger"]]


@pytest.mark.stress
def test_no_two_graphs_of_different_results_share_a_key(keys: list[str]) -> None:
    groups = defaultdict(list)
    for seed, key in enumerate(keys):
        groups[key].append(seed)
    assert len(groups) > 0.99 * COUNT
    for seeds in groups.values():
        if len(seeds) > 1:
            assert len({results(made(seed)) for seed in seeds}) == 1


@pytest.mark.stress
def test_a_graph_built_again_under_other_names_has_its_key_and_its_results(keys: list[str]) -> None:
    for seed in range(0, COUNT, 1 if FULL else 8):
        assert recipe_key(seed, "renamed") == keys[seed], seed
    for seed in range(0, COUNT, 10 if FULL else 40):
        assert results(made(seed)) == results(made(seed)), seed


@pytest.mark.stress
def test_every_change_at_one_site_makes_another_key(keys: list[str]) -> None:
    unchanged = []
    for seed in range(0, COUNT, 10 if FULL else 40):
        for site, recipe in mutated(made(seed), seed):
            built = build(recipe)
            if key_of(built.inputs, built.outputs, updates=built.updates) == keys[seed]:
                unchanged.append((seed, site))
    assert unchanged == []


@pytest.mark.stress
def test_processes_under_other_hash_seeds_have_the_same_keys() -> None:
    # Not those of this process, in which other tests have loaded what registers rewrites.
    processes = [keys_of(str(COUNT if FULL else 60), *how) for how in (("1",), ("4242", "renamed"))]
    first, second = (process.communicate()[0].split() for process in processes)
    assert [process.returncode for process in processes] == [0, 0]
    assert len(set(first)) > 0.99 * len(first)
    assert first == second


def keys_of(count: str, hash_seed: str, *prefix: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.cachegraph.pytensor.keys_process", "0", count, *prefix],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        stdout=subprocess.PIPE,
        text=True,
    )
