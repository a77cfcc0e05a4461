"""C entries: what C gets, from many threads at once, with memory of their own and without Python."""

from __future__ import annotations

import copy
import ctypes
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.compiling.c_entry import (
    DENSITY,
    EXPAND,
    CEntry,
    EntryInterface,
    EntryRefused,
    SharedInput,
    c_entry,
)
from engine.runtime import c_entry as module
from engine.runtime.c_entry import (
    DENSITY_FAILED,
    DENSITY_NOT_FINITE,
    EXPANSION_FAILED,
    GRADIENT_NOT_FINITE,
    REFUSED,
    SLOTS,
)

pytestmark = pytest.mark.usefixtures("kernels_once")


class Answer(NamedTuple):
    status: int
    value: float
    vector: np.ndarray


class Caller:
    """Calls an entry as C does, with shared arrays in the user data."""

    def __init__(self, entry: CEntry, size: int, shared: tuple[np.ndarray, ...] = ()) -> None:
        words = [entry.context, entry.context, *(word for array in shared for word in described(array))]
        self.user = np.array(words, dtype=np.int64)
        self.keep = (entry, shared)
        self.size = size
        self.density = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_uint64, *[ctypes.c_void_p] * 4)(
            entry.address
        )
        self.expand = ctypes.CFUNCTYPE(
            ctypes.c_int64, ctypes.c_uint64, ctypes.c_uint64, *[ctypes.c_void_p] * 3
        )(entry.address)

    def __call__(self, point: np.ndarray) -> Answer:
        value, gradient = np.full((), -1.0), np.full(self.size, -1.0)
        arrays = (point, gradient, value, self.user)
        status = self.density(len(point), *(array.ctypes.data for array in arrays))
        return Answer(status, float(value), gradient)

    def values(self, point: np.ndarray) -> Answer:
        values = np.full(self.size, -1.0)
        arrays = (point, values, self.user)
        return Answer(self.expand(len(point), self.size, *(a.ctypes.data for a in arrays)), 0.0, values)


def described(array: np.ndarray) -> list[int]:
    """Two lengths for each array, so that places are easy to tell."""
    return [array.ctypes.data, *array.shape, *[0] * (2 - array.ndim)]


def place(number: int) -> SharedInput:
    begin = 16 + 24 * number
    return SharedInput(begin, begin + 8)


def density(inputs: list[Any], value: Any, dim: int, held: Any = None) -> CEntry:
    outputs = [value, engine.grad(value, inputs[0]), *([] if held is None else [held])]
    function = engine.function(inputs, outputs)
    sources = [None, *(place(number) for number in range(len(inputs) - 1))]
    return c_entry(function, EntryInterface(DENSITY, dim, 0, sources, [0, 1], None if held is None else 2))


def expansion(inputs: list[Any], values: Any, dim: int, expanded: int) -> CEntry:
    function = engine.function(inputs, [values])
    sources = [None, *(place(number) for number in range(len(inputs) - 1))]
    return c_entry(function, EntryInterface(EXPAND, dim, expanded, sources, [0], None))


@pytest.fixture
def x():
    return pt.vector("x", shape=(3,))


def test_c_gets_what_the_function_returns(x):
    data = pt.matrix("data")
    value = (pt.exp(x) * pt.dot(data, x)).sum()
    array = np.arange(9.0).reshape(3, 3)
    call = Caller(density([x, data], value, 3), 3, (array,))
    f = engine.function([x, data], [value, engine.grad(value, x)])
    for seed in range(5):
        point = np.random.default_rng(seed).normal(size=3)
        expected, gradient = f(point, array)
        found = call(point)
        assert (found.status, found.value) == (0, expected)
        np.testing.assert_array_equal(found.vector, gradient)


def test_an_expansion_has_all_its_values(x):
    call = Caller(expansion([x], pt.concatenate([x, pt.exp(x), x[:1]]), 3, 7), 7)
    point = np.array([0.0, 1.0, -1.0])
    found = call.values(point)
    assert found.status == 0
    np.testing.assert_allclose(found.vector, [*point, *np.exp(point), 0.0], rtol=1e-15)


def test_a_point_of_another_length_is_refused(x):
    assert Caller(density([x], x.sum(), 3), 3)(np.zeros(4)).status == REFUSED
    assert Caller(expansion([x], pt.exp(x), 3, 3), 3).values(np.zeros(2)).status == REFUSED
    assert Caller(expansion([x], pt.exp(x), 3, 3), 4).values(np.zeros(3)).status == REFUSED


def test_a_program_of_other_lengths_than_c_has_room_for_fails(x):
    data = pt.vector("data")
    call = Caller(expansion([x, data], pt.concatenate([x, data]), 3, 5), 5, (np.zeros(4),))
    assert call.values(np.zeros(3)).status == EXPANSION_FAILED


@pytest.mark.parametrize(
    ("point", "status"),
    [
        ((0.0, 0.0, 0.0), 0),
        ((1e200, 1.0, 0.0), DENSITY_NOT_FINITE),
        ((np.nan, 0.0, 0.0), GRADIENT_NOT_FINITE),
    ],
)
def test_results_that_are_not_finite_have_codes_of_their_own(x, point, status):
    assert Caller(density([x], -(x**2).sum(), 3), 3)(np.array(point)).status == status


def test_what_is_required_decides_the_code(x):
    call = Caller(density([x], -(x**2).sum(), 3, pt.ge(x[0], 0.0)), 3)
    assert call(np.array([1.0, -1.0, 2.0])).status == 0
    assert call(np.array([-1.0, -1.0, 2.0])).status == DENSITY_FAILED


def test_an_index_out_of_range_is_a_code_and_the_next_call_works(x):
    index = pt.lvector("index")
    entry = density([x, index], pt.exp(x[index]).sum(), 3)
    good, bad = (Caller(entry, 3, (np.array(rows, dtype=np.int64),)) for rows in ([0, 2], [0, 3]))
    assert [good(np.zeros(3)).status, bad(np.zeros(3)).status, good(np.zeros(3)).status] == [
        0,
        DENSITY_FAILED,
        0,
    ]


def test_shared_arrays_may_change_their_lengths(x):
    data = pt.matrix("data")
    entry = density([x, data], pt.tanh(pt.dot(pt.exp(data), x)).sum(), 3)
    f = engine.function([x, data], pt.tanh(pt.dot(pt.exp(data), x)).sum())
    for rows in (4, 5000, 0, 1, 20000, 7):
        array = np.linspace(-1, 1, 3 * rows).reshape(rows, 3)
        found = Caller(entry, 3, (array,))(np.ones(3))
        assert (found.status, found.value) == (0, f(np.ones(3), array))


def _looping(x: Any) -> Any:
    """A value that takes a loop of the program, scratch memory and a product."""
    states, _ = engine.scan(
        lambda s: pt.sin(s) + pt.tanh(pt.outer(s, s)).sum() / 10, outputs_info=x, n_steps=50
    )
    return states[-1].sum() + pt.exp(-x).sum()


def test_threads_at_once_get_the_bits_that_one_gets(x):
    call = Caller(density([x], _looping(x), 3), 3)
    points = np.random.default_rng(1).normal(size=(SLOTS + 16, 3))
    alone = [call(point) for point in points]
    start = threading.Barrier(len(points))

    def repeated(point: np.ndarray) -> list[Answer]:
        start.wait()
        return [call(point) for _ in range(200)]

    with ThreadPoolExecutor(len(points)) as threads:
        for one, found in zip(alone, threads.map(repeated, points), strict=True):
            assert {(a.status, a.value, a.vector.tobytes()) for a in found} == {
                (0, one.value, one.vector.tobytes())
            }


def test_a_call_that_runs_for_long_comes_to_its_end(x):
    steps = pt.lscalar("steps")
    totals, _ = engine.scan(lambda s: s * 0.5 + 1.0, outputs_info=x[0], n_steps=steps)
    entry = expansion([x, steps], pt.stack([totals[-1]]), 3, 1)
    found = Caller(entry, 1, (np.array(40_000_000),)).values(np.zeros(3))
    assert (found.status, found.vector[0]) == (0, 2.0)


def test_a_call_that_threads_could_share_stays_in_its_own(monkeypatch):
    monkeypatch.setenv("CACHEGRAPH_NUM_THREADS", "2")
    point = pt.vector("point", shape=(2**21,))
    found = Caller(expansion([point], pt.exp(point), 2**21, 2**21), 2**21).values(np.zeros(2**21))
    assert found.status == 0
    assert (found.vector == 1.0).all()


class Memory:
    """The C library's allocator, counted; with `is_empty` there is none."""

    def __init__(self) -> None:
        library = ctypes.CDLL(None)
        allocate, free = (
            ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t),
            ctypes.CFUNCTYPE(None, ctypes.c_void_p),
        )
        self._own = allocate(("malloc", library)), free(("free", library))
        self._shown = allocate(self._allocate), free(self._free)
        self.addresses: set[int] = set()
        self.is_empty = False

    def function(self, name: str) -> int:
        shown = self._shown[name == "free"]
        return int(ctypes.cast(shown, ctypes.c_void_p).value or 0)

    def _allocate(self, size: int) -> int | None:
        if self.is_empty:
            return None
        address = self._own[0](size)
        self.addresses.add(address)
        return address

    def _free(self, address: int | None) -> None:
        if address is not None:
            self.addresses.remove(address)
            self._own[1](address)


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Memory:
    memory = Memory()
    monkeypatch.setattr(module, "c_function", memory.function)
    return memory


def test_an_entry_frees_its_memory_when_it_goes(x, memory):
    call: Caller | None = Caller(density([x], _looping(x), 3), 3)
    call(np.ones(3))
    kept = set(memory.addresses)
    call(np.ones(3))
    assert kept
    assert memory.addresses == kept
    call = None
    assert not memory.addresses


def test_a_call_without_memory_fails_and_the_next_works(x, memory):
    call = Caller(density([x], _looping(x), 3), 3)
    memory.is_empty = True
    assert call(np.ones(3)).status == DENSITY_FAILED
    memory.is_empty = False
    assert call(np.ones(3)).status == 0


def test_python_is_refused_with_the_op(x):
    wrong = engine.function([x], [x.sum(), pt.sort(x.astype("float32")).astype("float32")])
    with pytest.raises(EntryRefused, match="float32"):
        c_entry(wrong, EntryInterface(DENSITY, 3, 0, [None], [0, 1], None))
    count = engine.shared(np.zeros(()))
    updating = engine.function([x], [x.sum(), x], updates={count: count + 1})
    with pytest.raises(EntryRefused, match="updates"):
        c_entry(updating, EntryInterface(DENSITY, 3, 0, [None, place(0)], [0, 1], None))
    with pytest.raises(EntryRefused, match="not compiled"):
        c_entry(engine.function([x], [x], mode="NUMPY"), EntryInterface(EXPAND, 3, 3, [None], [0], None))


def test_an_entry_is_not_copied(x):
    entry = density([x], x.sum(), 3)
    for copied in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="this process alone"):
            copied(entry)


def test_no_frame_of_python_runs(x):
    import sys

    call = Caller(density([x], _looping(x), 3), 3)
    point, gradient, value = np.ones(3), np.zeros(3), np.zeros(())
    arguments = [array.ctypes.data for array in (point, gradient, value, call.user)]
    names: list[str] = []
    sys.setprofile(lambda frame, event, _: names.append(frame.f_code.co_name) if event == "call" else None)
    try:
        status = call.density(3, *arguments)
    finally:
        sys.setprofile(None)
    assert (status, names) == (0, [])
