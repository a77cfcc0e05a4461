"""What makes a function the same as one before, and what makes it another: seen from outside, with
results.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.compiling.mode import Mode, get_mode
from tests.flow.model_process import MODELS, ROOT, expected, in_fresh_process

PROGRAM = Path(__file__).with_name("identity_process.py")
Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("identity") / "cache")


def process(directory: str, variant: int, how: str = "here", cwd: Path = ROOT, seed: str = "0") -> Rows:
    """What a process reports that makes the generated graphs."""
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(variant), how],
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed, "CACHEGRAPH_DIR": directory},
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def first(directory: str) -> Rows:
    return process(directory, 0)


def test_generated_graphs_are_misses_at_first_and_all_different(first: Rows) -> None:
    assert {row["outcome"] for row in first} == {"miss"}
    assert len({row["key"] for row in first}) == len(first)


@pytest.mark.parametrize(
    ("variant", "how", "seed"),
    [(1, "here", "1"), (2, "here", "random"), (3, "spawn", "random"), (4, "fork", "12345")],
)
def test_other_names_order_sharing_hash_seed_start_method_and_directory_are_hits(
    directory: str, first: Rows, tmp_path: Path, variant: int, how: str, seed: str
) -> None:
    if how == "fork" and not hasattr(os, "fork"):
        pytest.skip("this platform has no fork")
    again = process(directory, variant, how, tmp_path, seed)
    assert again == [row | {"outcome": "hit"} for row in first]


def test_the_location_of_the_cache_is_not_in_the_key(first: Rows, tmp_path: Path) -> None:
    assert [row["key"] for row in process(str(tmp_path / "elsewhere"), 0)] == [row["key"] for row in first]


# Data


@pytest.mark.parametrize("seed", [1, 2])
def test_other_data_of_the_same_shape_is_a_hit_with_its_own_results(tmp_path: Path, seed: int) -> None:
    cache = {"CACHEGRAPH_DIR": str(tmp_path / "cache")}
    cold = in_fresh_process("regression", **cache)
    warm = in_fresh_process("regression", "--data", str(seed), **cache)
    assert (cold["outcome"], warm["outcome"], warm["key"]) == ("miss", "hit", cold["key"])
    for found, due in zip(warm["results"], expected("regression", seed), strict=True):
        np.testing.assert_allclose(found, due, rtol=1e-12)
    assert warm["results"] != cold["results"]


def of_data(*arrays: np.ndarray) -> Any:
    """A function in which each of three arrays has another part."""
    a, b, c = (pt.constant(array) for array in arrays)
    x = pt.scalar("x")
    return engine.function(
        [x], [pt.sum(a * x) - 2 * pt.sum(b), pt.sum(c) * 3 + pt.sum(pt.sqr(a)), b + c * x, c]
    )


def check_data(f: Any, *arrays: np.ndarray) -> None:
    a, b, c = arrays
    due = [a.sum() * 0.5 - 2 * b.sum(), c.sum() * 3 + (a**2).sum(), b + c * 0.5, c]
    for found, expected_result in zip(f(0.5), due, strict=True):
        np.testing.assert_allclose(found, expected_result)


def test_data_is_bound_to_its_own_places_whatever_is_swapped_or_equal() -> None:
    p, q, r = (np.random.default_rng(k).normal(size=40) for k in range(3))
    outcomes = []
    for arrays in [
        (p, q, r),
        (q, p, r),
        (r, q, p),
        (p, p, r),
        (q, q, p),
        (p, r, r),
        (p, p, p),
        (r, r, r),
        (q, r, p),
    ]:
        f = of_data(*arrays)
        check_data(f, *arrays)
        outcomes.append(f.cache_info.outcome)
    assert outcomes == ["miss", "hit", "hit", "miss", "hit", "miss", "miss", "hit", "hit"]


def test_data_that_holds_zeros_ones_or_nothing_finite_is_not_taken_for_what_it_was() -> None:
    for number, fill in enumerate((0.0, 1.0, -0.0, np.inf, np.nan, 2.5)):
        x = pt.vector("x")
        f = engine.function([x], [x * pt.constant(np.full(40, fill)), x + pt.constant(np.full(40, fill))])
        value = np.linspace(-1, 1, 40)
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(f(value), [value * fill, value + fill])
        assert f.cache_info.outcome == ("hit" if number else "miss")


def test_data_used_as_an_index_is_checked_on_a_hit() -> None:
    x = pt.vector("x")
    assert engine.function([x], x[pt.constant(np.zeros(40, "i8"))])([7.0, 8.0])[3] == 7.0
    hit = engine.function([x], x[pt.constant(np.arange(40) % 3)])
    assert hit.cache_info.outcome == "hit"
    np.testing.assert_array_equal(hit([1.0, 2.0, 3.0])[:4], [1.0, 2.0, 3.0, 1.0])
    with pytest.raises(IndexError, match="index 2"):
        hit([1.0, 2.0])


def test_data_that_the_user_changes_afterwards_is_as_it_was() -> None:
    observed = np.arange(40.0)
    x = pt.scalar("x")
    f = engine.function([x], pt.constant(observed) * x)
    observed[:] = -1
    np.testing.assert_array_equal(f(2.0), np.arange(40.0) * 2)
    np.testing.assert_array_equal(engine.function([x], pt.constant(observed) * x)(2.0), np.full(40, -2.0))


# Changes


def base(dtype: str = "float64", constant: float = 2.5, axis: int = 0, swapped: bool = False) -> Any:
    m, x = pt.tensor("m", dtype, (None, None)), pt.vector("x")
    left, right = (x, pt.sum(m, axis=axis)) if swapped else (pt.sum(m, axis=axis), x)
    return [m, x], left - right * constant


CHANGES: dict[str, Callable[[], Any]] = {
    "a constant": lambda: base(constant=2.75),
    "a dtype": lambda: base(dtype="float32"),
    "an edge": lambda: base(swapped=True),
    "a property of an Op": lambda: base(axis=1),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_a_miss_with_its_own_result(change: str) -> None:
    assert engine.function(*base()).cache_info.outcome == "miss"
    assert engine.function(*base()).cache_info.outcome == "hit"
    inputs, output = CHANGES[change]()
    f = engine.function(inputs, output)
    assert (f.cache_info.outcome, f.cache_info.reason) == ("miss", "never-seen")
    values = [np.arange(9.0).reshape(3, 3).astype(inputs[0].type.dtype), np.array([1.0, -1.0, 0.5])]
    np.testing.assert_allclose(f(*values), engine.function(inputs, output, mode="NUMPY")(*values))


@pytest.mark.parametrize(
    "mode",
    ["FAST_COMPILE", get_mode(None).excluding("fusion"), get_mode(None).excluding("local_add_zero")],
    ids=["another mode", "without a pass", "without a rewrite"],
)
def test_other_rewrites_are_a_miss(mode: str | Mode) -> None:
    engine.function(*base())
    assert engine.function(*base(), mode=mode).cache_info.outcome == "miss"
    assert engine.function(*base(), mode=mode).cache_info.outcome == "hit"


def test_updates_and_which_variable_they_change_are_identity() -> None:
    def outcome(make: Callable[[Any, Any], dict[Any, Any]]) -> str:
        a, b = engine.shared(1.0, "a"), engine.shared(2.0, "b")
        f = engine.function([], a + 2 * b, updates=make(a, b))
        assert f() == 5.0
        before = [a.get_value(), b.get_value()]
        due = {"a": 1.0, "b": 2.0} | {v.name: 3.0 for v in make(a, b)}
        assert before == [due["a"], due["b"]]
        return str(f.cache_info.outcome)

    updates: list[Callable[[Any, Any], dict[Any, Any]]] = [
        lambda a, b: {},
        lambda a, b: {a: a + b},
        lambda a, b: {b: a + b},
        lambda a, b: {a: a + b, b: a + b},
    ]
    assert [outcome(update) for update in updates] == ["miss"] * 4
    assert [outcome(update) for update in updates] == ["hit"] * 4


def test_the_name_of_a_function_and_of_its_inputs_is_its_own_after_a_hit() -> None:
    for name in ("first", "second"):
        v = pt.vector(f"argument_of_{name}")
        f = engine.function([v], v * 7.5, name=name)
        with pytest.raises(TypeError, match=f"Calling {name}: argument 0 .'argument_of_{name}'"):
            f(None)
    assert f.cache_info.outcome == "hit"


def test_every_known_model_has_a_key_of_its_own() -> None:
    keys = set()
    for make in MODELS.values():
        inputs, outputs, updates, _ = make()
        keys.add(engine.function(inputs, outputs, updates=updates).cache_info.key)
    assert len(keys) == len(MODELS)
