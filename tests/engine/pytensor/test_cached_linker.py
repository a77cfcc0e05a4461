"""Functions that the engine computes are found again, whole, and never a wrong one."""

from __future__ import annotations

import json
import pickle
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.io import In, Out

import cachegraph.pytensor
import engine.pytensor
from cachegraph.cache import Artifact, default_cache
from cachegraph.pytensor import explain
from cachegraph.store.filesystem import file_system
from engine.pytensor.cached_linker import _key as program_key_of
from engine.pytensor.stored_program import StoredProgram
from tests.cachegraph.pytensor.entry_points import declared
from tests.engine.pytensor.caching_process import density, mixed, observed, refuse

ROOT = Path(__file__).resolve().parents[3]
ENVIRONMENT: dict[str, str] = {}


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    points = declared(tmp_path / "points")
    monkeypatch.syspath_prepend(points)
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{points}")
    cachegraph.pytensor.install(backend="engine")
    yield
    cachegraph.pytensor.uninstall()


def start(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.engine.pytensor.caching_process", *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, text=True, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe)


def result(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, errors = process.communicate("\n", timeout=300)
    assert process.returncode == 0, errors
    assert "failed" not in errors, errors
    found: dict[str, Any] = json.loads(out)
    return found


def without_seconds(lines: list[str]) -> list[str]:
    """Return the lines of `explain` without the seconds that differ from run to run."""
    return [re.sub(r", \d+\.\d+ s$", "", line) for line in lines]


def expected_density(data: np.ndarray) -> list[float]:
    return [-0.5 * float(np.sum((data - 0.5) ** 2)) + float(np.sum(data**2)), float(np.exp(-0.25))]


@pytest.mark.skipif(
    not file_system(ROOT).keeps_change_times, reason="the file system of the source may hide edits"
)
def test_a_second_process_takes_its_modules_from_one_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    first, second, third = result(start()), result(start()), result(start("7.0"))
    assert first["kept"] == []
    assert len(second["kept"]) > 100
    assert {"engine.runtime.execution", "cachegraph.pytensor.making.maker"} <= set(second["kept"])
    assert set(third["kept"]) >= set(second["kept"])
    assert (second["density"], second["mixed"]) == (first["density"], first["mixed"])


def test_a_second_process_rewrites_and_translates_nothing_and_imports_no_numba() -> None:
    first, second = result(start()), result(start("--forbidden"))
    assert (first["outcomes"], second["outcomes"]) == (["miss"] * 3, ["hit"] * 3)
    assert (first["rewrites"], second["rewrites"]) == (3, 0)
    assert second["hits"] == 3, "its program, and the engine's functions in that, are parts of a function"
    for name in ("density", "mixed", "checked"):
        assert first[name] == second[name], name
    for before, now in zip(first["computed"], second["computed"], strict=True):
        assert [line.replace("miss", "hit") for line in without_seconds(before)] == without_seconds(now)
    assert not second["numba"]
    third = result(start())
    assert (third["error"], third["nodes"]) == (first["error"], first["nodes"])
    assert third["error"] == ["AssertionError", "must be small"]


def test_new_observations_of_the_same_shape_are_a_hit_with_right_numbers() -> None:
    result(start())
    found = result(start("7.5", "--forbidden"))
    assert found["outcomes"][0] == "hit"
    assert found["computed"][0][0].startswith("once, of data alone: the engine computes")
    np.testing.assert_allclose(found["density"], expected_density(observed(7.5)))


@pytest.mark.parametrize("arguments", [("0", "101"), ("0", "100", "float32"), ("0", "100", "int64")])
def test_another_shape_or_dtype_of_data_is_a_miss(arguments: tuple[str, ...]) -> None:
    result(start())
    found = result(start(*arguments))
    assert found["outcomes"] == ["miss", "hit", "hit"]
    data = observed(float(arguments[0]), int(arguments[1]), *arguments[2:])
    np.testing.assert_allclose(found["density"], expected_density(data), rtol=1e-5)


def test_two_processes_at_once_give_the_same() -> None:
    processes = [start("--wait") for _ in range(2)]
    first, second = (result(process) for process in processes)
    for name in ("density", "mixed", "checked", "error"):
        assert first[name] == second[name]
    assert result(start("--forbidden"))["density"] == first["density"]


@pytest.mark.parametrize("number", [3, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 5, 8))])
def test_a_process_that_is_killed_while_it_stores_leaves_nothing_wrong(number: int) -> None:
    process = start(f"--killed={number}")
    process.communicate(timeout=300)
    assert process.returncode == -signal.SIGKILL
    assert result(start())["density"] == expected_density(observed(0.0))
    assert result(start("--forbidden"))["density"] == expected_density(observed(0.0))


def _program_entry() -> tuple[Any, bytes]:
    """The key and the payload of the stored program of `mixed`."""
    mixed()
    function = mixed()
    assert isinstance(function.vm.jit_fn, StoredProgram)
    key = program_key_of(function.maker._stored)
    assert key is not None
    return key, default_cache().lookup(key).payload


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "short": lambda content: content[: len(content) // 2],
    "flipped": lambda content: content[:20] + bytes([content[20] ^ 4]) + content[21:],
    "longer": lambda content: content + b"more",
    "another": lambda content: pickle.dumps((1, 2, 3, 4, 5)),
    "code": lambda content: b"cos\nsystem\n(S'true'\ntR.",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_program_is_a_miss_and_the_function_is_linked_again(damage: str) -> None:
    key, payload = _program_entry()
    assert default_cache().store(key, Artifact(DAMAGES[damage](payload), seconds={"link": 1.0}))
    function = mixed()
    found = function(np.array([0.25, 0.5]))
    np.testing.assert_allclose(found[5], 2)
    np.testing.assert_allclose(found[3], [0.25, 0.5])
    assert explain(function).outcome == "hit"


def test_a_program_whose_parts_are_gone_is_linked_again() -> None:
    data = observed(1.0)
    function = density(data)
    (step,) = function.vm.jit_fn.steps
    reference = step.function.reference()
    assert default_cache()._store.delete([reference.digest]) == 1
    again = density(data)
    np.testing.assert_allclose(again(0.5), expected_density(data))


def _made(make: Callable[[], Any]) -> Any:
    """The function of `make`, after the cache has it."""
    make()
    return make()


def _hunt(first: Callable[[], Any], second: Callable[[], Any], *arguments: Any) -> None:
    """`second` differs from `first` in something that must show: its results are those without a cache."""
    assert explain(_made(first)).outcome == "hit"
    function = second()
    assert explain(function).outcome == "miss"
    found = function(*arguments)
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        due = second()(*arguments)
    for one, other in zip(found, due, strict=True):
        np.testing.assert_allclose(one, other)


VALUE = np.array([[4.0, 1.0], [1.0, 3.0]])


def test_a_tag_is_in_the_key() -> None:
    def solved(is_tagged: bool) -> Any:
        a, b = pt.dmatrix("a"), pt.dvector("b")
        a.tag.psd = is_tagged
        a.tag.symmetric = is_tagged
        return pytensor.function([a, b], [pt.linalg.solve(a, b)])

    _hunt(lambda: solved(False), lambda: solved(True), VALUE, VALUE[0])


def test_a_flag_is_in_the_key() -> None:
    def scaled() -> Any:
        x = pt.dvector("x")
        return pytensor.function([x], [x / 3])

    _made(scaled)
    with pytensor.config.change_flags(floatX="float32"):
        assert explain(scaled()).outcome == "miss"


REGISTERING = """
import numpy as np, pytensor, pytensor.tensor as pt
import cachegraph.pytensor
from pytensor.compile.mode import optdb
from pytensor.graph.rewriting.basic import in2out, node_rewriter

@node_rewriter([pt.exp])
def as_two(fgraph, node):
    return [pt.constant(2.0) * pt.ones_like(node.inputs[0])]

def made():
    x = pt.dvector("x")
    f = pytensor.function([x], [pt.exp(x)])
    print(cachegraph.pytensor.explain(f).outcome, f(np.zeros(2))[0].tolist())

cachegraph.pytensor.install(backend="engine")
made()
optdb.register("as_two", in2out(as_two), "fast_run", position=1)
made()
"""


def test_a_rewrite_that_is_registered_is_in_the_key() -> None:
    command = [sys.executable, "-c", REGISTERING]
    first, second = (
        subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout for _ in range(2)
    )
    assert first.splitlines() == ["miss [1.0, 1.0]", "miss [2.0, 2.0]"]
    assert second.splitlines()[0] == "hit [1.0, 1.0]"
    assert second.splitlines()[1].endswith("[2.0, 2.0]")


def test_one_generator_or_two_are_two_functions() -> None:
    def draws(is_shared: bool) -> Any:
        rngs = [pytensor.shared(np.random.default_rng(3))]
        rngs.append(rngs[0] if is_shared else pytensor.shared(np.random.default_rng(3)))
        first, second = (pt.random.normal(0.0, 1.0, size=(2,), rng=r, return_next_rng=True) for r in rngs)
        updates = dict.fromkeys(rngs)
        updates[rngs[0]] = first[0]
        updates[rngs[1]] = second[0]
        return pytensor.function([], [first[1], second[1] * 2], updates=updates)

    _hunt(lambda: draws(False), lambda: draws(True))


def test_the_order_of_updates_borrowing_and_overwriting_are_in_the_key() -> None:
    def updated(is_swapped: bool) -> Any:
        x, y = pytensor.shared(np.array(1.0), "x"), pytensor.shared(np.array(2.0), "y")
        news = [x + 1, y * 5]
        if is_swapped:
            news.reverse()
        return pytensor.function([], [x + y], updates=dict(zip([x, y], news, strict=True))), x, y

    _made(lambda: updated(False))
    function, *values = updated(True)
    assert explain(function).outcome == "miss"
    assert [float(function()[0]), *(float(v.get_value()) for v in values)] == [3.0, 10.0, 2.0]

    def given(**options: Any) -> Any:
        x = pt.dvector("x")
        return pytensor.function([In(x, **options)], [Out(x[::-1], borrow=options.get("borrow", False))])

    _made(given)
    for options in ({"borrow": True}, {"mutable": True}):
        function, value = given(**options), np.arange(3.0)
        assert explain(function).outcome == "miss"
        assert function(value)[0].tolist() == [2.0, 1.0, 0.0]


def test_test_values_and_names_are_not_in_the_key() -> None:
    def named(name: str, value: float) -> Any:
        x = pt.dvector(name)
        x.tag.test_value = np.full(2, value)
        return pytensor.function([x], [pt.exp(x) * 2])

    _made(lambda: named("x", 1.0))
    function = named("other", 2.0)
    assert explain(function).outcome == "hit"
    assert function(other=np.zeros(1))[0].tolist() == [2.0]


def test_a_stage_of_pytensors_belongs_to_one_function() -> None:
    first, second = _made(mixed), mixed()
    value = np.array([0.25, 0.5])
    one = [np.copy(item) for item in first(value)]
    other = second(value)
    assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    assert first(value)[2] == 1.75
    copied, again = first.copy(), pickle.loads(pickle.dumps(second))
    assert copied(value)[2] == 2.5
    assert again(value)[2] == 1.75
    assert "the engine computes" in engine.pytensor.explain(again)


def test_a_copy_is_loaded_and_not_translated(monkeypatch: pytest.MonkeyPatch) -> None:
    function, value = _made(mixed), np.array([0.25, 0.5])
    other = pytensor.shared(np.array(20.0), "other")
    total = next(variable for variable in function.get_shared() if variable.name == "total")
    monkeypatch.setattr("engine.pytensor.prologue.cut", refuse)
    copied, swapped = function.copy(), function.copy(swap={total: other})
    for copy in (copied, swapped):
        assert explain(copy).reason == "a copy of a function"
        assert isinstance(copy.vm.jit_fn, StoredProgram)
        assert copy.vm.jit_fn is not function.vm.jit_fn
    assert [float(f(value)[2]) for f in (function, copied, swapped)] == [1.0, 1.75, 20.0]
    assert [float(other.get_value()), float(total.get_value())] == [20.75, 2.5]


def test_a_copy_that_updates_nothing_is_linked_by_itself() -> None:
    function, value = _made(mixed), np.array([0.25, 0.5])
    copied = function.copy(delete_updates=True)
    assert explain(copied).outcome == "bypass"
    assert [float(f(value)[2]) for f in (copied, copied, function, copied)] == [1.0, 1.0, 1.0, 1.75]


def test_a_copy_of_what_the_store_has_lost_is_linked_again() -> None:
    data = observed(0.0)
    function = _made(lambda: density(data))
    key = program_key_of(function.maker._stored)
    assert key is not None
    assert default_cache()._store.delete([key.digest]) == 1
    copied = function.copy()
    assert not isinstance(copied.vm.jit_fn, StoredProgram)
    np.testing.assert_allclose(copied(0.5), expected_density(data))


def test_the_graph_is_read_when_somebody_looks() -> None:
    function = _made(lambda: density(observed(0.0)))
    assert function.maker._fgraph is None
    assert len(function.maker.fgraph.apply_nodes) > 3
    assert function.vm.storage_map
    with pytest.raises(TypeError, match="Too many parameter"):
        function(1.0, np.zeros(100))


def test_a_mode_given_by_name_is_found_too() -> None:
    def made() -> Any:
        x = pt.dvector("x")
        return pytensor.function([x], [pt.exp(x) * 3], mode="ENGINE")

    cachegraph.pytensor.install(backend="numba")
    assert explain(_made(made)).outcome == "hit"
    assert isinstance(made().vm.jit_fn, StoredProgram)


def test_verifying_links_again_and_compares(monkeypatch: pytest.MonkeyPatch) -> None:
    data = observed(0.0)
    density(data)
    monkeypatch.setenv("CACHEGRAPH_MODE", "verify")
    function = density(data)
    assert explain(function).outcome == "hit"
    assert not isinstance(function.vm.jit_fn, StoredProgram)
    np.testing.assert_allclose(function(0.5), expected_density(data))
