"""Entries taken along: checked before they are believed, behind the cache, never copied into it."""

import pickle

import pytest

from cachegraph.cache import Artifact, Hit, Miss, default_cache
from cachegraph.caching.carried import CarriedEntries, CarryingCache
from cachegraph.key import CacheKey

KEY = CacheKey.build("function", {"graph": b"graph"})
OTHER = CacheKey.build("kernel", {"kernel": b"kernel"})


@pytest.fixture
def carried():
    carried = CarriedEntries()
    carried.add(KEY, b"payload", {"graph": b"a graph"})
    return carried


def damaged(carried, old, new):
    content = pickle.dumps(carried)
    assert content.count(old) == 1
    return pickle.loads(content.replace(old, new))


def test_what_was_added_is_found_after_pickling_with_its_blobs(carried):
    loaded = pickle.loads(pickle.dumps(carried))
    found = loaded.lookup(KEY)
    assert isinstance(found, Hit)
    assert found.payload == b"payload"
    assert loaded.read_blob(found.blobs["graph"]) == b"a graph"


def test_what_was_not_added_is_a_miss_with_a_reason(carried):
    assert carried.lookup(OTHER) == Miss("never-seen", "it was not taken along")
    assert carried.read_blob("00" * 40) is None


def test_another_key_of_the_same_digest_is_a_collision(carried):
    assert carried.lookup(CacheKey("function", (), KEY.digest, b"other")).reason == "collision"


def test_damage_is_a_miss_with_a_reason(carried):
    assert damaged(carried, b"payload", b"pbyload").lookup(KEY).reason == "damaged"
    broken = damaged(carried, b"a graph", b"a giraf")
    assert broken.read_blob(broken.lookup(KEY).blobs["graph"]) is None


def test_entries_pickled_together_hold_what_they_share_once():
    content = bytes(range(256)) * 100
    first, second = CarriedEntries(), CarriedEntries()
    first.add(KEY, content)
    second.add(OTHER, content)
    assert len(pickle.dumps((first, second))) < 1.1 * len(pickle.dumps(first))


def test_the_cache_comes_before_what_is_carried(carried):
    cache = default_cache()
    entries = CarryingCache(cache, carried)
    cache.store(KEY, Artifact(b"kept", {"graph": b"blob of the cache"}))
    found = entries.lookup(KEY)
    assert found.payload == b"kept"
    assert entries.read_blob(found.blobs["graph"]) == b"blob of the cache"
    assert entries.taken == {}


def test_what_the_cache_has_not_is_taken_from_what_is_carried_and_not_kept(carried):
    cache = default_cache()
    entries = CarryingCache(cache, carried)
    found = entries.lookup(KEY)
    assert found.payload == b"payload"
    assert entries.read_blob(found.blobs["graph"]) == b"a graph"
    assert entries.taken == {KEY: "never-seen"}
    assert isinstance(cache.lookup(KEY), Miss)


def test_carried_entries_serve_where_the_cache_is_off_or_its_entries_do_not_load(carried, monkeypatch):
    monkeypatch.setenv("CACHEGRAPH_MODE", "off")
    for cache, reason in ((default_cache(), "disabled"), (None, "unreadable")):
        entries = CarryingCache(cache, carried)
        found = entries.lookup(KEY)
        assert (found.payload, entries.taken) == (b"payload", {KEY: reason})
        assert entries.read_blob(found.blobs["graph"]) == b"a graph"


def test_what_neither_has_is_a_miss(carried):
    entries = CarryingCache(default_cache(), carried)
    assert isinstance(entries.lookup(OTHER), Miss)
    assert entries.taken == {}
