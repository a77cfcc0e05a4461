"""`verify` finds any damage, quarantines and removes it, and leaves the rest alone."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cachegraph.key import CacheKey
from cachegraph.store import quarantine
from cachegraph.store.entry import Artifact, Hit
from cachegraph.store.local.store import LocalStore
from cachegraph.store.maintenance import verification
from cachegraph.store.maintenance.verification import Problem
from cachegraph.store.shared.store import SharedStore

Key = Callable[..., CacheKey]
NAMES = ("small", "large", "model")


def artifact(name: str, key: Key) -> Artifact:
    size = 100_000 if name == "large" else 500
    references = [key("small").digest, key("large").digest] if name == "model" else []
    blobs = {"graph": name.encode() * 10}
    return Artifact((name.encode() * size)[:size], blobs, {"compile": 1.0}, name, references)


@pytest.fixture
def filled(store: LocalStore, key: Key) -> LocalStore:
    for name in NAMES:
        store.put(key(name), artifact(name, key))
    return store


@pytest.fixture
def shared(tmp_path: Path, key: Key) -> SharedStore:
    opened = SharedStore(tmp_path / "shared", network=False)
    for name in NAMES:
        opened.put(key(name), artifact(name, key))
    return opened


def execute(store: LocalStore, statement: str, *parameters: object) -> None:
    connection = sqlite3.connect(store.layout.index)
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute(statement, parameters)
    connection.commit()
    connection.close()


def blob_path(store: LocalStore | SharedStore, content: bytes) -> Path:
    return next(file.path for file in store.blobs.files() if file.path.read_bytes() == content)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def kept(store: LocalStore | SharedStore) -> list[str]:
    return sorted(path.name.rsplit("-", 4)[0].split("-")[0] for path in store.layout.damaged.glob("*"))


def assert_heals(store: LocalStore | SharedStore, key: Key, missing: set[str]) -> None:
    """Check that `missing` are gone and the others hit, and that all is sound after a rebuild."""
    assert {name for name in NAMES if not isinstance(store.get(key(name)), Hit)} == missing
    for name in missing:
        store.put(key(name), artifact(name, key))
    assert all(isinstance(store.get(key(name)), Hit) for name in NAMES)
    assert verification.verify(store) == []


def test_a_sound_store_has_no_problems_and_every_file_is_looked_at(
    filled: LocalStore, shared: SharedStore
) -> None:
    steps: list[int] = []
    assert verification.verify(filled, steps.append) == []
    assert sum(steps) == 3 + 4
    steps.clear()
    assert verification.verify(shared, steps.append) == []
    assert sum(steps) == 3 + 4


def test_an_absent_directory_has_no_problems_and_is_not_made(tmp_path: Path) -> None:
    local, shared = LocalStore(tmp_path / "none"), SharedStore(tmp_path / "none")
    assert verification.verify(local) == verification.verify(shared) == []
    assert not (tmp_path / "none").exists()


def test_a_record_with_a_flipped_bit_goes(filled: LocalStore, key: Key) -> None:
    (content,) = (
        sqlite3.connect(filled.layout.index)
        .execute("SELECT content FROM record JOIN entry ON entry.id = entry_id WHERE summary = 'small'")
        .fetchone()
    )
    damaged = bytearray(content)
    damaged[60] ^= 4
    execute(filled, "UPDATE record SET content = ? WHERE content = ?", bytes(damaged), content)
    (problem,) = verification.verify(filled)
    assert problem == Problem("entry", key("small").hex, "the record does not match its checksum", "removed")
    assert next(filled.layout.damaged.iterdir()).read_bytes() == damaged
    assert_heals(filled, key, {"small"})


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("DELETE FROM record WHERE entry_id = 1", "the record is cut short"),
        ("UPDATE encoding SET content = x'00' WHERE entry_id = 1", "the encoding of its key is damaged"),
        ("DELETE FROM encoding WHERE entry_id = 1", "the encoding of its key is that of"),
        ("DELETE FROM blob_reference WHERE entry_id = 1", "the index refers to other blobs than the record"),
        (
            "UPDATE record SET content = (SELECT content FROM record WHERE entry_id = 2) WHERE entry_id = 1",
            "it is the record of ",
        ),
    ],
)
def test_rows_that_do_not_fit_together_go(statement: str, found: str, filled: LocalStore, key: Key) -> None:
    execute(filled, statement)
    (problem,) = verification.verify(filled)
    assert (problem.what, problem.name, problem.done) == ("entry", key("small").hex, "removed")
    assert problem.found.startswith(found)
    assert_heals(filled, key, {"small"})


@pytest.mark.parametrize("name", ["large", "model"])
def test_a_damaged_blob_goes_and_so_does_who_refers_to_it(name: str, filled: LocalStore, key: Key) -> None:
    made = artifact(name, key)
    flip(blob_path(filled, made.payload if name == "large" else made.blobs["graph"]))
    problems = verification.verify(filled)
    assert [(one.what, one.done) for one in problems] == [("blob", "removed"), ("entry", "removed")]
    assert problems[1].name == key(name).hex
    assert problems[1].found.endswith("is missing")
    assert kept(filled) == ["blob", "entry"]
    assert_heals(filled, key, {name})


def test_a_missing_blob_is_found(filled: LocalStore, key: Key) -> None:
    blob_path(filled, artifact("large", key).payload).unlink()
    (problem,) = verification.verify(filled)
    assert (problem.what, problem.name) == ("entry", key("large").hex)
    assert_heals(filled, key, {"large"})


@pytest.mark.parametrize("damage", ["garbage", "a page"])
def test_a_damaged_index_is_quarantined(damage: str, filled: LocalStore, key: Key) -> None:
    filled.close()
    content = bytearray(filled.layout.index.read_bytes())
    content[4096 * 3 if damage == "a page" else 0 : 4096 * 4] = b"\xff" * 4096
    filled.layout.index.write_bytes(content)
    (problem,) = verification.verify(filled)
    assert (problem.what, problem.name) == ("index", "index.sqlite")
    assert problem.done.startswith("quarantined")
    assert list(filled.layout.root.glob("index.sqlite.damaged-*"))
    kept = set(NAMES) if damage == "a page" else set()
    assert problem.done.endswith(f"{len(kept)} entries of it kept")
    assert_heals(filled, key, set(NAMES) - kept)


def test_beside_a_damaged_index_the_rest_is_checked_too(filled: LocalStore, key: Key) -> None:
    filled.close()
    content = bytearray(filled.layout.index.read_bytes())
    content[4096 * 3 : 4096 * 4] = b"\xff" * 4096
    filled.layout.index.write_bytes(content)
    blob = next(file for file in filled.blobs.files())
    blob.path.write_bytes(b"damaged")
    found = verification.verify(filled)
    assert [problem.what for problem in found[:2]] == ["index", "blob"]
    assert verification.verify(filled) == []


def test_the_books_of_eviction_are_counted_again(filled: LocalStore) -> None:
    execute(filled, "UPDATE eviction SET blob_bytes = 7")
    execute(filled, "UPDATE entry SET referrers = 5 WHERE id = 1")
    found = [(one.what, one.name, one.done) for one in verification.verify(filled)]
    assert found == [("books", "bytes of blobs", "corrected"), ("books", "references", "corrected")]
    assert verification.verify(filled) == []


def test_what_is_written_again_meanwhile_stays(
    filled: LocalStore, key: Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute(filled, "UPDATE encoding SET content = x'00' WHERE entry_id = 1")
    fault = verification._row_fault

    def and_then_heals(*arguments: object) -> str:
        found = fault(*arguments)  # type: ignore[arg-type]
        if found:
            monkeypatch.setattr(verification, "_row_fault", fault)
        return found

    def without(store: LocalStore, digest: bytes) -> Iterator[Problem]:
        store.put(key("small"), artifact("small", key))
        return remove(store, digest)

    remove = verification._remove_row
    monkeypatch.setattr(verification, "_row_fault", and_then_heals)
    monkeypatch.setattr(verification, "_remove_row", without)
    assert verification.verify(filled) == []
    assert isinstance(filled.get(key("small")), Hit)


@pytest.mark.parametrize("place", [2, 10, 30, 200, -1])
def test_a_damaged_entry_file_goes(place: int, shared: SharedStore, key: Key) -> None:
    path = shared.layout.entry(key("small").hex)
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    problems = verification.verify(shared)
    if place == 2:  # the magic: another release may have written it
        assert problems == []
        return
    assert [(one.what, one.name, one.done) for one in problems] == [("entry", key("small").hex, "removed")]
    assert kept(shared) == ["entry"]
    assert_heals(shared, key, {"small"})


def test_damaged_and_missing_blobs_of_files_are_found(shared: SharedStore, key: Key) -> None:
    flip(blob_path(shared, artifact("large", key).payload))
    blob_path(shared, artifact("model", key).blobs["graph"]).unlink()
    problems = verification.verify(shared)
    assert sorted(one.what for one in problems) == ["blob", "entry", "entry"]
    assert_heals(shared, key, {"large", "model"})


def test_an_entry_under_another_name_is_damage(shared: SharedStore, key: Key) -> None:
    path = shared.layout.entry(key("another").hex)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(shared.layout.entry(key("small").hex).read_bytes())
    path.chmod(0o600)
    (problem,) = verification.verify(shared)
    assert problem.found.startswith("it is the record of ")
    assert not path.exists()


def test_what_is_not_to_be_believed_is_told_and_stays(shared: SharedStore, key: Key) -> None:
    path = shared.layout.entry(key("small").hex)
    path.chmod(0o666)
    (problem,) = verification.verify(shared)
    assert (problem.what, problem.done) == ("entry", "left as it is")
    assert "others can write it" in problem.found
    assert path.exists()


def test_only_the_latest_of_what_was_damaged_is_kept(
    shared: SharedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quarantine, "MOST_KEPT", 3)
    for i in range(5):
        path = quarantine.quarantine_content(shared.layout.root, "entry-x", str(i).encode(), shared.guard)
        assert path is not None
        os.utime(path, (i, i))
    left = sorted(path.read_bytes() for path in shared.layout.damaged.iterdir())
    assert left == [b"2", b"3", b"4"]


def test_an_index_that_its_header_makes_read_only_is_replaced(filled: LocalStore, key: Key) -> None:
    """SQLite opens a file with an unknown write version read-only."""
    filled.close()
    content = bytearray(filled.layout.index.read_bytes())
    content[18] = 3
    filled.layout.index.write_bytes(content)
    problems = verification.verify(filled)
    assert [(problem.what, problem.found) for problem in problems] == [
        ("index", "it cannot be written, although its files can")
    ]
    assert_heals(filled, key, set())
