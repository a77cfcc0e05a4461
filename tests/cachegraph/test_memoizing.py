"""A memoized function finds the results of earlier calls, and is called where no key describes a call."""

import copy
import functools
import math
import os
import random
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from cachegraph import Artifact, Cache, CacheMissError, counters, memoize
from cachegraph.memoizing import MemoizedFunction
from cachegraph.pickling import dumps
from cachegraph.settings import Settings

FACTOR = [3.0]
READ = np.ones(3)
CALLS: list[str] = []


@dataclass
class Point:
    x: float
    y: float


@dataclass(frozen=True)
class Size:
    rows: int


class Scale:
    def __init__(self, by: float) -> None:
        self.by = by

    def of(self, x: float) -> float:
        return self.by * x


@pytest.fixture
def cache(cache_directory: Path) -> Cache:
    return Cache(Settings(cache_directory, "readwrite", "compile"), namespace="tests")


@pytest.fixture(autouse=True)
def _no_calls() -> None:
    CALLS.clear()


def counted(function):  # type: ignore[no-untyped-def]
    """Return the hits and misses of the level of a memoized function."""
    found = counters().levels.get(function.level, {"hits": 0, "misses": 0})
    return found["hits"], found["misses"]


def calls_of(function, *args, **kwargs):  # type: ignore[no-untyped-def]
    """Return the result of a call, and the hits and misses that it added."""
    before = counted(function)
    result = function(*args, **kwargs)
    after = counted(function)
    return result, (after[0] - before[0], after[1] - before[1])


def scaled(values: np.ndarray, by: float = 2.0, *rest: float, **options: object) -> dict[str, object]:  # type: ignore[type-arg]
    return {"values": values * by * FACTOR[0], "root": math.sqrt(by), "rest": (rest, tuple(options))}


def test_a_second_call_with_equal_arguments_is_a_hit_however_they_are_given(cache: Cache) -> None:
    function = memoize(cache=cache)(scaled)
    first, counted_first = calls_of(function, np.arange(3.0))
    again, counted_again = calls_of(function, by=2.0, values=np.arange(3.0))
    assert (counted_first, counted_again) == ((0, 1), (1, 0))
    np.testing.assert_array_equal(first["values"], again["values"])
    assert first["root"] == again["root"] == math.sqrt(2.0)


@pytest.mark.parametrize(
    "others",
    [
        lambda: ((np.arange(3),), {}),
        lambda: ((np.arange(3.0).reshape(3, 1),), {}),
        lambda: ((np.arange(1.0, 4.0),), {}),
        lambda: ((np.arange(3.0), 2), {}),
        lambda: ((np.arange(3.0), 2.0, 1.0), {}),
        lambda: ((np.arange(3.0),), {"b": 1, "a": 2}),
    ],
    ids=["dtype", "shape", "values", "int for float", "more", "options"],
)
def test_other_arguments_are_another_entry(cache: Cache, others) -> None:  # type: ignore[no-untyped-def]
    function = memoize(cache=cache)(scaled)
    args, kwargs = others()
    calls_of(function, np.arange(3.0))
    _, found = calls_of(function, *args, **kwargs)
    assert found == (0, 1) or (np.array_equal(args[0], np.arange(3.0)) and not kwargs and len(args) == 1)


def test_what_code_can_tell_of_an_argument_is_in_its_key(cache: Cache) -> None:
    order = memoize(cache=cache)(lambda given: list(given))
    assert [order({"a": 1, "b": 2}), order({"b": 2, "a": 1})] == [["a", "b"], ["b", "a"]]
    strides = memoize(cache=cache)(lambda values: values.strides)
    grid = np.zeros((2, 3))
    assert [strides(grid), strides(np.asfortranarray(grid))] == [(24, 8), (8, 16)]


def test_arguments_that_share_memory_are_another_entry(cache: Cache) -> None:
    @memoize(cache=cache)
    def sums_while_changed(x: np.ndarray, y: np.ndarray) -> float:  # type: ignore[type-arg]
        x += 1
        total = y.sum()
        x -= 1
        return float(total)

    a = np.ones(4)
    pairs = [(a, a), (a, a.copy()), (a[:2], a[1:3]), (a[:2], a[2:]), (a, a)]
    found = [calls_of(sums_while_changed, *pair) for pair in pairs]
    miss, hit = (0, 1), (1, 0)
    assert found == [(8.0, miss), (4.0, miss), (3.0, miss), (2.0, miss), (8.0, hit)]


def test_one_list_given_twice_is_not_two_equal_lists(cache: Cache) -> None:
    @memoize(cache=cache)
    def copies(x: list[int], y: list[int]) -> int:
        first, second = copy.deepcopy((x, y))
        first[0] = 7
        return second[0]

    mine = [1]
    assert [copies(mine, mine), copies([1], [1])] == [7, 1]


def test_an_argument_that_is_a_global_of_the_code_is_not_an_equal_one(cache: Cache) -> None:
    @memoize(cache=cache)
    def sums_while_changed(x: np.ndarray) -> float:  # type: ignore[type-arg]
        x += 1
        total = READ.sum()
        x -= 1
        return float(total)

    assert [sums_while_changed(READ), sums_while_changed(READ.copy())] == [6.0, 3.0]


def test_how_numpy_prints_and_treats_errors_is_in_the_key(cache: Cache) -> None:
    text = memoize(cache=cache)(lambda values: str(values))
    inverse = memoize(cache=cache)(lambda values: 1.0 / values)
    third, zero = np.array([1 / 3]), np.zeros(1)
    with np.errstate(divide="ignore"):
        assert (text(third), inverse(zero)[0]) == ("[0.33333333]", np.inf)
    with np.printoptions(precision=2), np.errstate(divide="raise"):
        assert text(third) == "[0.33]"
        with pytest.raises(FloatingPointError):
            inverse(zero)


def test_a_frozen_dataclass_is_an_argument(cache: Cache) -> None:
    of = memoize(cache=cache)(lambda size: size.rows)
    miss, hit = (0, 1), (1, 0)
    assert [calls_of(of, Size(rows)) for rows in (1, 2, 1)] == [(1, miss), (2, miss), (1, hit)]


def test_a_global_that_the_code_reads_is_in_the_key(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    function = memoize(cache=cache)(scaled)
    calls_of(function, np.ones(1))
    monkeypatch.setitem(globals(), "FACTOR", [4.0])
    changed, found = calls_of(function, np.ones(1))
    assert found == (0, 1)
    assert changed["values"] == [8.0]


def test_a_call_that_changes_its_arguments_is_made_each_time(cache: Cache) -> None:
    @memoize(cache=cache)
    def add(items: list[int]) -> int:
        items.append(1)
        return len(items)

    mine: list[int] = []
    before = counters().bypasses.get("changed", 0)
    assert [add(mine), add(mine)] == [1, 2]
    assert mine == [1, 1]
    assert counters().bypasses["changed"] == before + 2


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + time.time(),
        lambda x: x + random.random(),
        lambda x: f"{x}{os.environ.get('HOME')}",
        lambda x: CALLS.append("called") or CALLS[-1],  # type: ignore[func-returns-value]
    ],
    ids=["clock", "random state", "environment", "a list that it changes"],
)
def test_a_function_that_reads_more_than_its_arguments_is_called_each_time(cache: Cache, function) -> None:  # type: ignore[no-untyped-def]
    memoized = memoize(cache=cache)(function)
    before = sum(counters().bypasses.values())
    _, first = calls_of(memoized, 1.0)
    _, again = calls_of(memoized, 1.0)
    assert (first[0], again[0]) == (0, 0)
    assert sum(counters().bypasses.values()) == before + 2


def test_results_may_hold_large_arrays_and_classes_of_the_functions_package(cache: Cache) -> None:
    @memoize(cache=cache)
    def points(count: int) -> tuple[Point, np.ndarray]:  # type: ignore[type-arg]
        return Point(1.0, float(count)), np.arange(count * 1.0)

    first, again = points(50_000), points(50_000)
    assert first[0] == again[0] == Point(1.0, 50_000.0)
    assert first[0] is not again[0]
    np.testing.assert_array_equal(first[1], again[1])
    again[1][0] = 7.0
    assert points(50_000)[1][0] == 0.0


def test_a_result_that_cannot_be_pickled_is_returned_and_not_stored(cache: Cache) -> None:
    @memoize(cache=cache)
    def adder(x: float):  # type: ignore[no-untyped-def]
        return lambda y: x + y

    before = counters().bypasses.get("unpicklable", 0)
    assert [adder(1.0)(2.0), adder(1.0)(3.0)] == [3.0, 4.0]
    assert counters().bypasses["unpicklable"] == before + 2


def test_methods_are_memoized_by_the_object_and_its_code(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    @memoize(cache=cache)
    def applied(scale: Scale, x: float) -> float:
        return scale.of(x)

    monkeypatch.setattr(Scale, "memoized", applied, raising=False)
    assert [Scale(2.0).memoized(1.0), Scale(3.0).memoized(1.0)] == [2.0, 3.0]  # type: ignore[attr-defined]
    assert calls_of(applied, Scale(3.0), 1.0) == (3.0, (1, 0))


def test_a_text_that_names_an_object_of_the_process_is_not_stored(cache: Cache) -> None:
    texts = memoize(cache=cache)(lambda *given: [str(given), f"{given[0]}"])
    first, second = Scale(1.0), Scale(1.0)
    assert texts(first) == [str((first,)), str(first)]
    assert texts(second) == [str((second,)), str(second)]
    assert calls_of(texts, "<at 0x12>")[1] == (0, 1)
    assert calls_of(texts, "<at 0x12>")[1] == (1, 0)


def test_partials_and_objects_that_are_called_have_the_names_of_their_classes(cache: Cache) -> None:
    class Adding:
        def __init__(self, by: int) -> None:
            self.by = by

        def __call__(self, x: int) -> int:
            return x + self.by

    adding = Adding(2)
    functions = [memoize(cache=cache)(each) for each in (functools.partial(divmod, 7), adding)]
    assert [each.name.rpartition(".")[2] for each in functions] == ["divmod", "Adding"]
    assert [calls_of(each, 4) for each in functions] == [((1, 3), (0, 1)), (6, (0, 0))]
    adding.by = 5
    assert [calls_of(each, 4) for each in functions] == [((1, 3), (1, 0)), (9, (0, 0))]


def test_exceptions_are_the_functions_own_and_never_stored(cache: Cache) -> None:
    @memoize(cache=cache)
    def failing(x: int) -> int:
        return 1 // x

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            failing(0)
    with pytest.raises(TypeError, match="missing a required argument: 'x'"):
        failing()  # type: ignore[call-arg]


def test_a_memoized_function_may_call_itself_and_others(cache: Cache) -> None:
    double = memoize(cache=cache)(lambda x: 2 * x)

    @memoize(cache=cache)
    def fib(n: int) -> int:
        return n if n < 2 else fib(n - 1) + double(fib(n - 2)) // 2

    assert fib(8) == 21
    assert counted(fib)[0] > 5


def test_changing_a_memoized_function_that_another_calls_changes_the_others_key(cache: Cache) -> None:
    def caller_of(inner: MemoizedFunction[[float], float]) -> MemoizedFunction[[float], float]:
        return memoize(cache=cache)(lambda x: inner(x))

    assert [caller_of(memoize(cache=cache)(lambda x: x + 1.0))(0.0)] == [1.0]
    assert [caller_of(memoize(cache=cache)(lambda x: x + 2.0))(0.0)] == [2.0]


def test_a_job_that_must_not_compile_must_not_call_either(cache: Cache) -> None:
    readonly = Cache(cache.settings._replace(on_miss="error"), namespace="tests")
    clock = memoize(cache=readonly)(lambda: time.time())
    for function, args in ((memoize(cache=readonly)(scaled), (np.zeros(9),)), (clock, ())):
        with pytest.raises(CacheMissError, match="CACHEGRAPH_ON_MISS=error"):
            function(*args)


def test_a_namespace_is_a_word(cache: Cache) -> None:
    for wrong in ("a/b", "ä", "x" * 41):
        with pytest.raises(ValueError, match="naming a namespace"):
            memoize(namespace=wrong)(scaled)
    assert memoize(scaled).level == "tests/call"


@pytest.mark.parametrize(
    ("module", "level"),
    [("modèle.un", "mod_le/call"), ("my script", "my_script/call"), ("m" * 50, f"{'m' * 40}/call")],
)
def test_a_module_of_any_name_may_memoize(module: str, level: str) -> None:
    namespace = {"__name__": module}
    exec("def double(x): return 2 * x", namespace)
    assert memoize(namespace["double"]).level == level  # type: ignore[arg-type]


def test_mode_verify_replaces_a_result_that_another_call_does_not_give(cache: Cache) -> None:
    function = memoize(cache=cache)(scaled)
    key = function.key(np.ones(2))
    function(np.ones(2))
    assert cache.store(key, Artifact(dumps({"values": np.zeros(2)})))
    verifying = memoize(cache=Cache(cache.settings._replace(mode="verify"), namespace="tests"))(scaled)
    np.testing.assert_array_equal(verifying(np.ones(2))["values"], [6.0, 6.0])
    np.testing.assert_array_equal(function(np.ones(2))["values"], [6.0, 6.0])


@pytest.mark.parametrize(
    "content",
    [
        b"",
        dumps({"values": 1})[:-1],
        dumps(Settings(Path("/"), "off", "compile")),
        b"cos\nsystem\n(S'false'\ntR.",
    ],
    ids=["empty", "cut short", "another package's class", "a call"],
)
def test_what_is_no_result_of_the_function_is_computed_again(cache: Cache, content: bytes) -> None:
    function = memoize(cache=cache)(lambda x: x + 1.0)
    assert cache.store(function.key(1.0), Artifact(content))
    assert calls_of(function, 1.0) == (2.0, (0, 1))
    assert calls_of(function, 1.0) == (2.0, (1, 0))


PROGRAM = """
import sys
import numpy as np
import cachegraph

@cachegraph.memoize
def slow(x, *, by=2.0):
    return {"x": x * by, "n": x.size}

print(slow(np.arange(40_000.0))["x"].sum())
found = cachegraph.counters().levels["program/call"]
print(found["hits"], found["misses"])
"""


def test_another_process_finds_the_result_until_the_code_changes(tmp_path: Path) -> None:
    def run(text: str) -> list[str]:
        (tmp_path / "program.py").write_text(text)
        done = subprocess.run(
            [sys.executable, "-c", "import program"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{Path(__file__).parents[2]}"},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.split("\n")[:2]

    total = str(np.arange(40_000.0).sum() * 2)
    assert [run(PROGRAM), run(PROGRAM)] == [[total, "0 1"], [total, "1 0"]]
    assert run(PROGRAM.replace("x * by", "x + by + 0.0"))[1] == "0 1"


POOL = """
import multiprocessing, sys
from cachegraph import counters, memoize

@memoize
def double(x):
    return 2 * x

def found(x):
    return double(x), counters().levels[double.level]["hits"]

if __name__ == "__main__":
    double(4)
    with multiprocessing.get_context(sys.argv[1]).Pool(1) as pool:
        print(*pool.map(found, [4]))
"""


@pytest.mark.parametrize("start", ["spawn", "forkserver"])
def test_workers_of_a_script_find_what_its_main_process_stored(start: str, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(POOL)
    done = subprocess.run(
        [sys.executable, "script.py", start],
        cwd=tmp_path,
        env=os.environ
        | {"PYTHONPATH": str(Path(__file__).parents[2]), "CACHEGRAPH_DIR": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("(8, 1)\n", "")
