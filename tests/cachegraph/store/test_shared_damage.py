"""A damaged shared directory: a flipped bit or a cut in any file is a miss, and the next put heals it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cachegraph.key import CacheKey
from cachegraph.store.entry import Artifact, Hit, Miss
from cachegraph.store.maintenance.verification import verify
from cachegraph.store.shared.store import SharedStore

KEY = CacheKey.build("kernel", {"scheme": b"test", "graph": b"g" * 40})
ARTIFACTS = {
    "payload in the entry": Artifact(bytes(range(256)), {"graph": b"gg" * 50}, {"compile": 1.5}, "a kernel"),
    "payload in a blob": Artifact(
        bytes(range(256)) * 300, {"graph": b"gg" * 50}, {"compile": 1.5}, "a kernel"
    ),
}


@pytest.fixture(params=ARTIFACTS)
def artifact(request: pytest.FixtureRequest) -> Artifact:
    return ARTIFACTS[request.param]


@pytest.fixture
def shared(tmp_path: Path, artifact: Artifact) -> SharedStore:
    store = SharedStore(tmp_path / "shared", network=False)
    store.put(KEY, artifact)
    return store


def assert_never_wrong_and_heals(store: SharedStore, artifact: Artifact) -> Hit | Miss:
    """Return the first answer."""
    found = store.get(KEY)
    if isinstance(found, Hit):
        assert (found.payload, found.seconds) == (artifact.payload, artifact.seconds)
        assert store.read_blob(found.blobs["graph"]) in (None, artifact.blobs["graph"])
    else:
        assert found.reason in ("damaged", "foreign-format", "unreadable")
    store.put(KEY, artifact)
    healed = store.get(KEY)
    assert isinstance(healed, Hit)
    assert healed.payload == artifact.payload
    assert store.read_blob(healed.blobs["graph"]) == artifact.blobs["graph"]
    return found


def test_a_flip_of_any_byte_of_an_entry_file_is_a_miss(shared: SharedStore, artifact: Artifact) -> None:
    path = shared.layout.entry(KEY.hex)
    reasons = set()
    for place in range(path.stat().st_size):
        content = bytearray(path.read_bytes())
        content[min(place, len(content) - 1)] ^= 1 << place % 8
        path.write_bytes(content)
        found = assert_never_wrong_and_heals(shared, artifact)
        assert isinstance(found, Miss), place
        reasons.add(found.reason)
    assert reasons == {"damaged", "foreign-format"}


def test_an_entry_file_cut_at_any_place_is_a_miss(shared: SharedStore, artifact: Artifact) -> None:
    path = shared.layout.entry(KEY.hex)
    for length in range(path.stat().st_size):
        content = path.read_bytes()  # its length varies a little, because it holds times
        path.write_bytes(content[: min(length, len(content) - 1)])
        assert isinstance(assert_never_wrong_and_heals(shared, artifact), Miss), length


@pytest.mark.parametrize("addition", [b"\0", b"\xff" * 4096])
def test_bytes_behind_an_entry_are_damage(addition: bytes, shared: SharedStore, artifact: Artifact) -> None:
    path = shared.layout.entry(KEY.hex)
    path.write_bytes(path.read_bytes() + addition)
    assert isinstance(assert_never_wrong_and_heals(shared, artifact), Miss)


SPARSE = 2**40
"""Bytes that a damaged file claims to have: more than any memory."""


def test_an_entry_that_claims_more_than_any_memory_is_damage(shared: SharedStore, artifact: Artifact) -> None:
    os.truncate(shared.layout.entry(KEY.hex), SPARSE)
    found = assert_never_wrong_and_heals(shared, artifact)
    assert isinstance(found, Miss)
    assert found.reason == "damaged"
    assert shared.renew(KEY) is not None


def test_a_blob_that_claims_more_than_any_memory_is_damage(shared: SharedStore, artifact: Artifact) -> None:
    files = list(shared.blobs.files())
    for file in files:
        os.truncate(file.path, SPARSE)
    assert shared.read_blob(files[0].digest) is None
    assert_never_wrong_and_heals(shared, artifact)
    assert verify(shared) == []
    for file in files:
        os.truncate(file.path, SPARSE)
    assert {(problem.what, problem.done) for problem in verify(shared)} >= {("blob", "removed")}


def test_verifying_removes_an_entry_that_claims_more_than_any_memory(shared: SharedStore) -> None:
    os.truncate(shared.layout.entry(KEY.hex), SPARSE)
    assert shared.scan() == []
    assert [(problem.what, problem.done) for problem in verify(shared)] == [("entry", "removed")]
    assert verify(shared) == []


@pytest.mark.parametrize("error", [MemoryError, RecursionError, OverflowError, ValueError, SystemError])
def test_whatever_reading_raises_is_a_miss_with_a_reason(
    shared: SharedStore, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> bytes:
        raise error("while reading")

    monkeypatch.setattr(shared, "_read", fail)
    found = shared.get(KEY)
    assert isinstance(found, Miss)
    assert found.detail == f"{error.__name__}: while reading"
    assert shared.read_blob("00" * 40) is None


def test_an_interrupt_while_reading_passes(shared: SharedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> bytes:
        raise KeyboardInterrupt

    monkeypatch.setattr(shared, "_read", interrupt)
    with pytest.raises(KeyboardInterrupt):
        shared.get(KEY)
    with pytest.raises(KeyboardInterrupt):
        shared.read_blob("00" * 40)


CUTS: list[Callable[[bytearray], object]] = [
    lambda content: content.__delitem__(slice(None)),
    lambda content: content.__delitem__(slice(1, None)),
    lambda content: content.__delitem__(slice(len(content) // 2, None)),
    lambda content: content.__delitem__(-1),
    lambda content: content.append(0),
]


def flips(size: int) -> list[Callable[[bytearray], object]]:
    def flip(place: int) -> Callable[[bytearray], object]:
        return lambda content: content.__setitem__(place, content[place] ^ 1 << place % 8)

    places = {0, 1, 15, 16, size // 2, size - 2, size - 1, *range(0, size, max(size // 20, 1))}
    return [flip(place) for place in sorted(places)]


def test_a_blob_flipped_or_cut_is_never_believed(shared: SharedStore, artifact: Artifact) -> None:
    contents = {"graph": artifact.blobs["graph"], "payload": artifact.payload}
    for file in list(shared.blobs.files()):
        holds = next(name for name, content in contents.items() if content == file.path.read_bytes())
        for damage in (*CUTS, *flips(file.size)):
            content = bytearray(file.path.read_bytes())
            damage(content)
            file.path.write_bytes(content)
            found = assert_never_wrong_and_heals(shared, artifact)
            assert isinstance(found, Miss) == (holds == "payload")


def test_a_missing_blob_of_the_payload_is_damage(shared: SharedStore, artifact: Artifact) -> None:
    for file in list(shared.blobs.files()):
        file.path.unlink()
    found = assert_never_wrong_and_heals(shared, artifact)
    assert isinstance(found, Miss) == (len(artifact.payload) > 60_000)
