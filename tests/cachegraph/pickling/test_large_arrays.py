"""Large arrays are blobs beside a pickle: one of each, however many pickles have it, and none is believed unchecked."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cachegraph import pickling
from cachegraph.cache import Artifact, Cache, Found, Hit, Miss
from cachegraph.errors import MissingBlob
from cachegraph.fingerprint.primitives import content_name
from cachegraph.key import CacheKey
from cachegraph.pickling.large_arrays import LARGE, blob_name
from cachegraph.settings import Settings
from cachegraph.store.local.eviction import GRACE_SECONDS
from cachegraph.store.local.store import LocalStore
from cachegraph.store.maintenance.pruning import carry_out, plan

ARRAY = np.random.default_rng(1).normal(size=(250, 500))
ARRAYS = {
    "in C order": ARRAY,
    "in Fortran order": np.asfortranarray(ARRAY),
    "strided": ARRAY[::2],
    "backwards": ARRAY[:, ::-1],
    "broadcast": np.broadcast_to(np.arange(500.0), (250, 500)),
    "of texts": np.full(100_000, "abc"),
    "big-endian": ARRAY.astype(">f8"),
    "of records": np.zeros(10_000, [("a", "f8"), ("b", "i4")]),
}


def dumped(value: object) -> tuple[bytes, dict[str, bytes], Callable[[str], bytes | None]]:
    """The pickle, its blobs, and what reads these."""
    blobs: dict[str, bytes] = {}
    content = pickling.dumps(value, blobs=blobs)
    return content, blobs, lambda name: blobs.get(blob_name(name))


@pytest.mark.parametrize("what", ARRAYS)
def test_an_array_comes_back_from_its_blob(what: str) -> None:
    array = ARRAYS[what]
    content, blobs, read = dumped({"a": [array]})
    assert len(content) < 400
    assert len(blobs) == 1
    found = pickling.loads(content, (), read_blob=read)["a"][0]
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(found, array)


def test_equal_arrays_are_one_blob_and_shared_arrays_stay_shared() -> None:
    content, blobs, read = dumped([ARRAY, ARRAY.copy(), ARRAY])
    assert list(blobs) == [blob_name(content_name(ARRAY.tobytes()))]
    first, second, third = pickling.loads(content, (), read_blob=read)
    assert first is third is not second
    second[0, 0] = 7.0
    assert first[0, 0] == ARRAY[0, 0]


def test_what_may_be_written_to_still_may_and_what_may_not_still_may_not() -> None:
    frozen = ARRAY.copy()
    frozen.flags.writeable = False
    content, _, read = dumped([ARRAY, frozen])
    first, second = pickling.loads(content, (), read_blob=read)
    assert [first.flags.writeable, second.flags.writeable] == [True, False]


IN_THE_PICKLE = {
    "small": np.zeros(LARGE // 8),
    "of objects": np.array([None] * 10_000),
    "of times, which have no buffer": np.arange(20_000).astype("M8[s]"),
}


@pytest.mark.parametrize("what", IN_THE_PICKLE)
def test_what_is_small_or_no_plain_memory_is_in_the_pickle(what: str) -> None:
    content, blobs, _ = dumped(IN_THE_PICKLE[what])
    assert blobs == {}
    np.testing.assert_array_equal(pickling.loads(content, ()), IN_THE_PICKLE[what])


def test_without_a_place_for_blobs_all_is_in_the_pickle() -> None:
    np.testing.assert_array_equal(pickling.loads(pickling.dumps(ARRAY), ()), ARRAY)


def test_a_blob_that_is_not_to_be_had_is_an_error() -> None:
    content, blobs, _ = dumped(ARRAY)
    (name,) = blobs
    for read in (None, lambda _: None):
        with pytest.raises(MissingBlob) as caught:
            pickling.loads(content, (), read_blob=read)
        assert blob_name(caught.value.digest) == name
    with pytest.raises(pickling.InvalidPickle):
        pickling.loads(content, (), read_blob=lambda _: b"of another length")
    for form in (b"K\x01", b"N", b"\x8c\x04text)"):
        with pytest.raises(pickling.InvalidPickle):
            pickling.loads(b"\x80\x04\x8c\x04blob" + form + b"N\x87Q.", (), read_blob=lambda _: b"")


# In a store


@pytest.fixture
def cache(cache_directory: Path) -> Cache:
    return Cache(Settings(cache_directory, "readwrite", "compile"))


def key_of(text: str) -> CacheKey:
    return CacheKey.build("function", {"graph": text.encode()})


def keep(cache: Cache, text: str) -> None:
    blobs: dict[str, bytes] = {}
    payload = pickling.dumps([text, ARRAY], blobs=blobs)
    assert cache.store(key_of(text), Artifact(payload, blobs, {"build": 1.0}))


def found(cache: Cache, text: str) -> Any:
    return cache.find(key_of(text), lambda payload: pickling.loads(payload, (), read_blob=cache.read_blob))


def blob_file(directory: Path) -> Path:
    (path,) = [path for path in (directory / "v1" / "blobs").rglob("*") if path.is_file()]
    return path


def test_two_entries_have_an_array_once(cache: Cache, cache_directory: Path) -> None:
    keep(cache, "one")
    keep(cache, "two")
    assert blob_file(cache_directory).stat().st_size == ARRAY.nbytes
    for text in ("one", "two"):
        name, array = found(cache, text).value
        assert name == text
        np.testing.assert_array_equal(array, ARRAY)


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    "damage",
    [
        Path.unlink,
        _flip,
        lambda path: path.write_bytes(path.read_bytes()[:-1]),
        lambda path: path.write_bytes(b""),
    ],
    ids=["deleted", "flipped", "truncated", "empty"],
)
def test_a_damaged_array_is_a_miss_with_a_reason_and_healed_by_building(
    cache: Cache, cache_directory: Path, damage: Callable[[Path], object]
) -> None:
    keep(cache, "one")
    keep(cache, "two")
    damage(blob_file(cache_directory))
    missed = found(cache, "one")
    assert isinstance(missed, Miss)
    assert missed.reason == "damaged"
    assert "MissingBlob" in missed.detail
    keep(cache, "one")
    for text in ("one", "two"):
        assert isinstance(found(cache, text), Found)


def test_an_array_stays_as_long_as_one_entry_has_it(cache: Cache, cache_directory: Path) -> None:
    keep(cache, "one")
    keep(cache, "two")
    store = LocalStore(cache_directory)
    later = time.time() + 10 * GRACE_SECONDS
    store.delete([key_of("one").digest])
    carry_out(store, plan(store, later))
    np.testing.assert_array_equal(found(cache, "two").value[1], ARRAY)
    store.delete([key_of("two").digest])
    carry_out(store, plan(store, later))
    assert not [path for path in (cache_directory / "v1" / "blobs").rglob("*") if path.is_file()]


def test_evicting_one_entry_leaves_the_array_to_the_other(cache_directory: Path) -> None:
    cache = Cache(Settings(cache_directory, "readwrite", "compile", max_size=3 * ARRAY.nbytes))
    keep(cache, "kept")
    for number in range(4):
        cache.find(key_of("kept"), bytes)
        cache.store(
            key_of(f"other {number}"), Artifact(np.full(ARRAY.size, number).tobytes(), {}, {"build": 1e-9})
        )
    keep(cache, "another")
    assert isinstance(cache.lookup(key_of("other 0")), Miss)
    np.testing.assert_array_equal(found(cache, "another").value[1], ARRAY)
    np.testing.assert_array_equal(found(cache, "kept").value[1], ARRAY)


def test_what_was_just_built_is_loaded_though_nothing_keeps_it(cache_directory: Path) -> None:
    def build() -> Artifact:
        blobs: dict[str, bytes] = {}
        return Artifact(pickling.dumps(ARRAY, blobs=blobs), blobs)

    for mode in ("off", "readonly", "readwrite"):
        cache = Cache(Settings(cache_directory, mode, "compile"))  # type: ignore[arg-type]
        built = cache.get_or_build(
            key_of("built"),
            build,
            lambda payload, cache=cache: pickling.loads(payload, (), read_blob=cache.read_blob),
        )
        np.testing.assert_array_equal(built.value, ARRAY)
    assert isinstance(cache.lookup(key_of("built")), Hit)
