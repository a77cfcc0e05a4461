"""Kernels are found in the cache or compiled, and linked."""

from __future__ import annotations

import numpy as np
import pytest

import engine
import engine.tensor as pt
from cachegraph.cache import Artifact, Hit, default_cache
from cachegraph.errors import CacheMissError
from cachegraph.key import CacheKey
from engine.compiling.key import kernel_key
from engine.compiling.load import CompilationTally, find_kernels, symbol_of
from engine.compiling.programs import build_kernels
from engine.lowering.kernels.elementwise import copy
from engine.runtime.load import Loader


@pytest.fixture
def kernel():
    return copy("float64", (False,), False)


@pytest.fixture
def key(kernel) -> CacheKey:
    return kernel_key(kernel.encoding())


def test_the_symbol_of_a_kernel_is_what_confirms_its_key(key):
    assert symbol_of(key) == f"k_{key.confirmation.hex()}"


def test_a_kernel_is_compiled_once_and_found_by_every_other_loader(kernel, key):
    for hits, misses in ((0, 1), (1, 0)):
        loader, tally = Loader(), CompilationTally()
        build_kernels(default_cache(), loader, {key: kernel}, tally)
        assert (tally.found, tally.compiled) == ({"kernel": [hits, misses]}, misses)
        assert loader.linked(symbol_of(key)) is tally.linked[0]
    assert tally.seconds_saved > 0


def test_linking_alone_compiles_nothing(kernel, key):
    tally = CompilationTally()
    with pytest.raises(LookupError, match=rf"{key.hex}.*never-seen"):
        find_kernels(default_cache(), Loader(), [key], tally)
    assert (tally.found, tally.compiled) == ({"kernel": [0, 1]}, 0)
    build_kernels(default_cache(), Loader(), {key: kernel}, CompilationTally())
    first, second = find_kernels(default_cache(), Loader(), [key, key], tally := CompilationTally())
    assert first is second
    assert tally.found == {"kernel": [1, 0]}


def test_a_stored_kernel_that_cannot_be_linked_is_compiled_and_replaced(kernel, key):
    assert default_cache().store(key, Artifact(b"garbage"))
    tally = CompilationTally()
    build_kernels(default_cache(), Loader(), {key: kernel}, tally)
    assert (tally.found, tally.compiled) == ({"kernel": [0, 1]}, 1)
    found = default_cache().lookup(key)
    assert isinstance(found, Hit)
    assert found.payload != b"garbage"
    find_kernels(default_cache(), Loader(), [key], CompilationTally())


def test_nothing_is_compiled_where_that_is_an_error(kernel, key, monkeypatch):
    monkeypatch.setenv("CACHEGRAPH_ON_MISS", "error")
    with pytest.raises(CacheMissError) as caught:
        build_kernels(default_cache(), Loader(), {key: kernel}, CompilationTally())
    assert (caught.value.level, caught.value.key) == ("kernel", key.hex)


def test_many_kernels_at_once_are_each_right():
    x = pt.vector("x")
    outputs = [pt.sin(x) * (k + 1.5) - k for k in range(14)]
    f = engine.function([x], outputs, mode="FAST_COMPILE")
    value = np.linspace(0, 1, 7)
    for k, found in enumerate(f(value)):
        np.testing.assert_allclose(found, np.sin(value) * (k + 1.5) - k)
