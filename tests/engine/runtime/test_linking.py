"""Kernels are found in the cache or compiled, and linked."""

from __future__ import annotations

import numpy as np
import pytest

import engine
import engine.tensor as pt
from cachegraph.cache import Artifact, Hit, default_cache
from cachegraph.errors import CacheMissError
from cachegraph.key import CacheKey
from engine.compiling.kernel_key import kernel_key
from engine.lowering.kernels.elementwise import copy
from engine.runtime import linking
from engine.runtime.linking import KernelTally, symbol_of
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
        loader, tally = Loader(), KernelTally()
        linking.build(default_cache(), loader, {key: kernel}, tally)
        assert (tally.hits, tally.misses, tally.compiled) == (hits, misses, misses)
        assert loader.linked(symbol_of(key)) is tally.linked[0]
    assert tally.seconds_saved > 0


def test_linking_alone_compiles_nothing(kernel, key):
    tally = KernelTally()
    with pytest.raises(LookupError, match=rf"{key.hex}.*never-seen"):
        linking.link(default_cache(), Loader(), [key], tally)
    assert (tally.hits, tally.misses, tally.compiled) == (0, 1, 0)
    linking.build(default_cache(), Loader(), {key: kernel}, KernelTally())
    first, second = linking.link(default_cache(), Loader(), [key, key], tally := KernelTally())
    assert first is second
    assert tally.hits == 1


def test_a_stored_kernel_that_cannot_be_linked_is_compiled_and_replaced(kernel, key):
    assert default_cache().store(key, Artifact(b"garbage"))
    tally = KernelTally()
    linking.build(default_cache(), Loader(), {key: kernel}, tally)
    assert (tally.hits, tally.misses, tally.compiled) == (0, 1, 1)
    found = default_cache().lookup(key)
    assert isinstance(found, Hit)
    assert found.payload != b"garbage"
    linking.link(default_cache(), Loader(), [key], KernelTally())


def test_nothing_is_compiled_where_that_is_an_error(kernel, key, monkeypatch):
    monkeypatch.setenv("CACHEGRAPH_ON_MISS", "error")
    with pytest.raises(CacheMissError) as caught:
        linking.build(default_cache(), Loader(), {key: kernel}, KernelTally())
    assert (caught.value.level, caught.value.key) == ("kernel", key.hex)


def test_many_kernels_at_once_are_each_right():
    x = pt.vector("x")
    outputs = [pt.sin(x) * (k + 1.5) - k for k in range(14)]
    f = engine.function([x], outputs, mode="FAST_COMPILE")
    value = np.linspace(0, 1, 7)
    for k, found in enumerate(f(value)):
        np.testing.assert_allclose(found, np.sin(value) * (k + 1.5) - k)
