"""Entries taken along: checked before they are believed, behind the cache, never copied into it."""

import pickle

import pytest

from cachegraph.cache import Artifact, Hit, Miss, default_cache
from cachegraph.caching.bundle import Bundle, BundledCache
from cachegraph.key import CacheKey

KEY = CacheKey.build("function", {"graph": b"graph"})
OTHER = CacheKey.build("kernel", {"kernel": b"kernel"})


@pytest.fixture
def bundle():
    bundle = Bundle()
    bundle.add(KEY, b"payload", {"graph": b"a graph"})
    return bundle


def damaged(bundle, old, new):
    content = pickle.dumps(bundle)
    assert content.count(old) == 1
    return pickle.loads(content.replace(old, new))


def test_what_was_added_is_found_after_pickling_with_its_blobs(bundle):
    loaded = pickle.loads(pickle.dumps(bundle))
    found = loaded.lookup(KEY)
    assert isinstance(found, Hit)
    assert found.payload == b"payload"
    assert loaded.read_blob(found.blobs["graph"]) == b"a graph"


def test_what_was_not_added_is_a_miss_with_a_reason(bundle):
    assert bundle.lookup(OTHER) == Miss("never-seen", "it was not taken along")
    assert bundle.read_blob("00" * 40) is None


def test_another_key_of_the_same_digest_is_a_collision(bundle):
    assert bundle.lookup(CacheKey("function", (), KEY.digest, b"other")).reason == "collision"


def test_damage_is_a_miss_with_a_reason(bundle):
    assert damaged(bundle, b"payload", b"pbyload").lookup(KEY).reason == "damaged"
    broken = damaged(bundle, b"a graph", b"a giraf")
    assert broken.read_blob(broken.lookup(KEY).blobs["graph"]) is None


def test_bundles_pickled_together_hold_what_they_share_once():
    content = bytes(range(256)) * 100
    first, second = Bundle(), Bundle()
    first.add(KEY, content)
    second.add(OTHER, content)
    assert len(pickle.dumps((first, second))) < 1.1 * len(pickle.dumps(first))


def test_the_cache_comes_before_the_bundle(bundle):
    cache = default_cache()
    entries = BundledCache(cache, bundle)
    cache.store(KEY, Artifact(b"kept", {"graph": b"blob of the cache"}))
    found = entries.lookup(KEY)
    assert found.payload == b"kept"
    assert entries.read_blob(found.blobs["graph"]) == b"blob of the cache"
    assert entries.taken == {}


def test_what_the_cache_has_not_comes_from_the_bundle_and_is_not_kept(bundle):
    cache = default_cache()
    entries = BundledCache(cache, bundle)
    found = entries.lookup(KEY)
    assert found.payload == b"payload"
    assert entries.read_blob(found.blobs["graph"]) == b"a graph"
    assert entries.taken == {KEY: "never-seen"}
    assert isinstance(cache.lookup(KEY), Miss)


def test_the_bundle_serves_where_the_cache_is_off_or_its_entries_do_not_load(bundle, monkeypatch):
    monkeypatch.setenv("CACHEGRAPH_MODE", "off")
    for cache, reason in ((default_cache(), "disabled"), (None, "unreadable")):
        entries = BundledCache(cache, bundle)
        found = entries.lookup(KEY)
        assert (found.payload, entries.taken) == (b"payload", {KEY: reason})
        assert entries.read_blob(found.blobs["graph"]) == b"a graph"


def test_what_neither_has_is_a_miss(bundle):
    entries = BundledCache(default_cache(), bundle)
    assert isinstance(entries.lookup(OTHER), Miss)
    assert entries.taken == {}
