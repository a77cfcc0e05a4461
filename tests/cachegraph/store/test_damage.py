"""A damaged store: never an exception, never wrong bytes, and the next store heals it."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cachegraph.cache import Artifact, Cache, Hit, Miss
from cachegraph.key import CacheKey
from cachegraph.settings import Settings
from cachegraph.store import artifacts
from cachegraph.store.failures import IndexDamaged
from cachegraph.store.local.store import LocalStore

Key = Callable[..., CacheKey]
Damage = Callable[[bytearray], None]

SIZES = {"empty": 0, "small": 100, "inline": 20_000, "limit": 64 * 1024, "blob": 150_000}
PAGE = 4096
READ_VERSION = 19
"""Offset in the header of the byte that says whether SQLite reads a log."""
READ_AND_STAY = """
import sys
import time
from pathlib import Path
from cachegraph.key import CacheKey
from cachegraph.store.local.store import LocalStore
stores = [LocalStore(Path(directory)) for directory in sys.argv[1:]]
print(*(type(store.get(CacheKey.build("kernel", {"graph": b"small"}))).__name__ for store in stores), flush=True)
time.sleep(300)
"""
WRITE_AND_VERIFY = """
import sys
from pathlib import Path
from cachegraph.cache import Artifact, Cache
from cachegraph.key import CacheKey
from cachegraph.settings import Settings
from cachegraph.store.local.store import LocalStore
from cachegraph.store.maintenance.verification import verify
directory = Path(sys.argv[1])
for text in sys.argv[2:]:
    key = CacheKey.build("kernel", {"graph": text.encode()})
    assert Cache(Settings(directory, "readwrite", "compile")).store(key, Artifact(b"again"))
    assert LocalStore(directory).get(key).payload == b"again"
print([problem.done for problem in verify(LocalStore(directory))])
assert verify(LocalStore(directory)) == []
"""


def artifact(name: str) -> Artifact:
    content = random.Random(name).randbytes(SIZES[name])
    return Artifact(content, {"graph": content[::2]}, {"rewrite": 0.5, "compile": 1.5}, name)


KEYS = {name: CacheKey.build("kernel", {"graph": name.encode()}) for name in SIZES}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Yield two copies of one store: one all in the index file, one partly in the write-ahead log."""
    origin = tmp_path_factory.mktemp("sound") / "origin"
    store = LocalStore(origin)
    for name, key in KEYS.items():
        store.put(key, artifact(name))
    logged = Path(shutil.copytree(origin, origin.parent / "logged"))
    store.close()
    assert (logged / "v1" / "index.sqlite-wal").stat().st_size > 0
    assert not (origin / "v1" / "index.sqlite-wal").exists()
    return {"checkpointed": origin, "logged": logged}


class Damaged:
    """A copy of a sound store, to damage and to use."""

    def __init__(self, sound: Path, directory: Path) -> None:
        self.directory = directory
        shutil.copytree(sound, directory)

    def damage(self, name: str, how: Damage) -> None:
        path = self.directory / "v1" / name
        content = bytearray(path.read_bytes())
        how(content)
        path.write_bytes(content)

    def overwrite(self, name: str, offset: int, byte: int) -> None:
        """Change one byte of a file that other processes have open. This process must not, or loses its locks."""
        with (self.directory / "v1" / name).open("r+b") as file:
            file.seek(offset)
            file.write(bytes((byte,)))

    def is_never_wrong_and_heals(self) -> list[str]:
        """Use the store as a process would; return the outcomes of its first look-ups."""
        cache = Cache(Settings(self.directory, "readwrite", "compile"))
        outcomes = []
        for name, key in KEYS.items():
            found = cache.lookup(key)
            assert_right(cache, name, found)
            outcomes.append(found.reason if isinstance(found, Miss) else "hit")
            if isinstance(found, Miss) or not blobs_are_there(cache, found):
                assert cache.store(key, artifact(name)), (name, found)
                again = cache.lookup(key)
                assert isinstance(again, Hit), (name, found, again)
                assert_right(cache, name, again)
                assert blobs_are_there(cache, again)
        cache.flush()
        cache._store.close()
        shutil.rmtree(self.directory)
        return outcomes


def assert_right(cache: Cache, name: str, found: Hit | Miss) -> None:
    if isinstance(found, Miss):
        # A flip may hit the table of parts, which then reports a part that never changed.
        reason = found.reason.partition(":")[0]
        assert reason in ("never-seen", "damaged", "unreadable", "foreign-format", "key-part-changed")
        return
    expected = artifact(name)
    assert found.payload == expected.payload
    assert found.seconds == expected.seconds
    assert list(found.blobs) == ["graph"]
    assert cache.read_blob(found.blobs["graph"]) in (None, expected.blobs["graph"])


def blobs_are_there(cache: Cache, hit: Hit) -> bool:
    return all(cache.read_blob(digest) is not None for digest in hit.blobs.values())


@pytest.fixture
def damaged(sound: dict[str, Path], tmp_path: Path) -> Callable[[str], Damaged]:
    count = iter(range(1_000_000))

    def copy(which: str) -> Damaged:
        return Damaged(sound[which], tmp_path / str(next(count)))

    return copy


def flip(bit: int) -> Damage:
    def how(content: bytearray) -> None:
        content[bit // 8] ^= 1 << bit % 8

    return how


def cut(length: int) -> Damage:
    def how(content: bytearray) -> None:
        del content[length:]

    return how


def fill(begin: int, length: int, byte: int) -> Damage:
    def how(content: bytearray) -> None:
        content[begin : begin + length] = bytes((byte,)) * len(content[begin : begin + length])

    return how


def size_of(sound: dict[str, Path], which: str, name: str) -> int:
    return (sound[which] / "v1" / name).stat().st_size


def header_bits() -> list[int]:
    """Return one bit of every other byte of both headers, and more bits of the version bytes."""
    return [8 * byte + byte % 8 for byte in range(0, 120, 2)] + list(range(18 * 8, 20 * 8, 3)) + [61 * 8]


def test_an_undamaged_copy_hits_everywhere(damaged: Callable[[str], Damaged]) -> None:
    for which in ("checkpointed", "logged"):
        assert damaged(which).is_never_wrong_and_heals() == ["hit"] * len(KEYS)


@pytest.mark.slow
def test_flips_in_the_header_of_the_index(damaged: Callable[[str], Damaged]) -> None:
    outcomes = []
    for bit in header_bits():
        store = damaged("checkpointed")
        store.damage("index.sqlite", flip(bit))
        outcomes += store.is_never_wrong_and_heals()
    assert set(outcomes) > {"hit", "damaged"}


@pytest.mark.parametrize("which", ["checkpointed", "logged"])
def test_flips_at_the_heads_of_pages(
    which: str, sound: dict[str, Path], damaged: Callable[[str], Damaged]
) -> None:
    name = "index.sqlite" if which == "checkpointed" else "index.sqlite-wal"
    first, step = (0, PAGE) if which == "checkpointed" else (32 + 24, PAGE + 24)
    for number, begin in enumerate(range(first, size_of(sound, which, name), 3 * step)):
        store = damaged(which)
        store.damage(name, flip(8 * (begin + number % 12) + number % 8))
        store.is_never_wrong_and_heals()


def test_flips_anywhere(sound: dict[str, Path], damaged: Callable[[str], Damaged]) -> None:
    """tools/stress/damage.py flips more bits, and damages all files in other ways."""
    choose = random.Random(1)
    for _ in range(12):
        which, name = choose.choice([("checkpointed", "index.sqlite"), ("logged", "index.sqlite-wal")])
        store = damaged(which)
        for _ in range(choose.choice([1, 1, 1, 8])):
            store.damage(name, flip(choose.randrange(8 * size_of(sound, which, name))))
        store.is_never_wrong_and_heals()


@pytest.mark.slow
def test_truncation_at_every_class_of_offset(
    sound: dict[str, Path], damaged: Callable[[str], Damaged]
) -> None:
    for which, name in (
        ("checkpointed", "index.sqlite"),
        ("logged", "index.sqlite-wal"),
        ("logged", "index.sqlite"),
    ):
        size = size_of(sound, which, name)
        lengths = {0, 1, 15, 16, 31, 99, 100, 101, 512, size - 1, size - PAGE, size - PAGE - 1, size // 2}
        for length in sorted(length for length in lengths if 0 <= length < size):
            store = damaged(which)
            store.damage(name, cut(length))
            store.is_never_wrong_and_heals()


@pytest.mark.slow
@pytest.mark.parametrize("byte", [0x00, 0xFF])
def test_pages_that_hold_one_byte_only(
    byte: int, sound: dict[str, Path], damaged: Callable[[str], Damaged]
) -> None:
    for begin in range(0, size_of(sound, "checkpointed", "index.sqlite"), 3 * PAGE):
        store = damaged("checkpointed")
        store.damage("index.sqlite", fill(begin, PAGE, byte))
        store.is_never_wrong_and_heals()


def test_swapped_pages(sound: dict[str, Path], damaged: Callable[[str], Damaged]) -> None:
    pages = size_of(sound, "checkpointed", "index.sqlite") // PAGE
    choose = random.Random(3)
    for _ in range(15):
        one, other = (PAGE * choose.randrange(pages) for _ in range(2))

        def swap(content: bytearray, one: int = one, other: int = other) -> None:
            first = content[one : one + PAGE]
            content[one : one + PAGE] = content[other : other + PAGE]
            content[other : other + PAGE] = first

        store = damaged("checkpointed")
        store.damage("index.sqlite", swap)
        store.is_never_wrong_and_heals()


def test_damaged_blobs(sound: dict[str, Path], damaged: Callable[[str], Damaged]) -> None:
    root = sound["checkpointed"] / "v1"
    for path in sorted(path for path in root.glob("blobs/*/*")):
        for how in (flip(7), flip(max(0, 8 * path.stat().st_size - 1)), cut(path.stat().st_size // 2)):
            if path.stat().st_size:
                store = damaged("checkpointed")
                store.damage(str(path.relative_to(root)), how)
                store.is_never_wrong_and_heals()


def test_a_missing_payload_blob_is_damage(damaged: Callable[[str], Damaged]) -> None:
    store = damaged("checkpointed")
    shutil.rmtree(store.directory / "v1" / "blobs")
    assert store.is_never_wrong_and_heals() == ["hit", "hit", "hit", "hit", "damaged"]


@pytest.mark.parametrize("content", [b"not a database" * 1000, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_file_that_is_no_database_is_quarantined(content: bytes, cache_directory: Path) -> None:
    root = cache_directory / "v1"
    root.mkdir(parents=True)
    (root / "index.sqlite").write_bytes(content)
    cache = Cache(Settings(cache_directory, "readwrite", "compile"))
    found = cache.lookup(KEYS["small"])
    assert isinstance(found, Miss)
    assert found.reason == "damaged"
    assert (root / "index.sqlite").read_bytes() == content
    assert cache.store(KEYS["small"], artifact("small"))
    assert isinstance(cache.lookup(KEYS["small"]), Hit)
    (quarantined,) = root.glob("index.sqlite.damaged-*")
    assert quarantined.read_bytes() == content
    cache._store.close()


def test_someone_elses_database_is_quarantined(cache_directory: Path) -> None:
    root = cache_directory / "v1"
    root.mkdir(parents=True)
    other = sqlite3.connect(root / "index.sqlite")
    other.executescript("CREATE TABLE entry (surprise); PRAGMA user_version = 7;")
    other.close()
    cache = Cache(Settings(cache_directory, "readwrite", "compile"))
    assert isinstance(cache.lookup(KEYS["small"]), Miss)
    assert cache.store(KEYS["small"], artifact("small"))
    assert isinstance(cache.lookup(KEYS["small"]), Hit)
    assert len(list(root.glob("index.sqlite.damaged-*"))) == 1
    cache._store.close()


@pytest.mark.parametrize("content", [b"", b"x"])
def test_a_file_too_short_for_a_header_becomes_an_index(content: bytes, cache_directory: Path) -> None:
    root = cache_directory / "v1"
    root.mkdir(parents=True)
    (root / "index.sqlite").write_bytes(content)
    cache = Cache(Settings(cache_directory, "readwrite", "compile"))
    found = cache.lookup(KEYS["small"])
    assert isinstance(found, Miss)
    assert found.reason == "never-seen"
    assert cache.store(KEYS["small"], artifact("small"))
    assert isinstance(cache.lookup(KEYS["small"]), Hit)
    assert list(root.glob("*.damaged-*")) == []
    cache._store.close()


@contextmanager
def another_process_reads(
    start_python: Callable[..., subprocess.Popen[str]], *stores: Damaged
) -> Iterator[None]:
    """Have another process hold indexes open in WAL mode: it locks the files as long as it lives."""
    other = start_python(READ_AND_STAY, *(store.directory for store in stores))
    assert other.stdout is not None
    assert other.stdout.readline().split() == ["Hit"] * len(stores)
    try:
        yield
    finally:
        other.kill()
        other.communicate()


def test_an_index_cut_to_nothing_under_a_process_that_reads_it_is_started_again_soon(
    damaged: Callable[[str], Damaged], start_python: Callable[..., subprocess.Popen[str]]
) -> None:
    store = damaged("checkpointed")
    with another_process_reads(start_python, store):
        os.truncate(store.directory / "v1" / "index.sqlite", 0)
        begin = time.monotonic()
        store.is_never_wrong_and_heals()
        assert time.monotonic() - begin < 8


@pytest.mark.parametrize("written", [["small"], []])
def test_an_index_that_forgets_its_log_under_a_process_that_reads_it_is_replaced_and_loses_nothing(
    written: list[str],
    damaged: Callable[[str], Damaged],
    start_python: Callable[..., subprocess.Popen[str]],
    run_python: Callable[..., str],
) -> None:
    """Outside WAL mode, a writer would wait until no other process has the index open."""
    store = damaged("checkpointed")
    with another_process_reads(start_python, store):
        store.overwrite("index.sqlite", READ_VERSION, 0)
        found = run_python(WRITE_AND_VERIFY, store.directory, *written)
    assert found == ("[]\n" if written else f"['quarantined; {len(KEYS)} entries of it kept']\n")
    assert quarantined(store.directory) == 1
    unwritten = KEYS.keys() - set(written)
    assert all(isinstance(LocalStore(store.directory).get(KEYS[name]), Hit) for name in unwritten)


@pytest.mark.slow
def test_no_byte_of_the_header_stops_the_writes_of_others_while_a_process_reads_the_index(
    damaged: Callable[[str], Damaged], start_python: Callable[..., subprocess.Popen[str]]
) -> None:
    stores = {offset: damaged("checkpointed") for offset in (*range(16, 25), 28, 44, 52, 60, 64, 92, 96)}
    with another_process_reads(start_python, *stores.values()):
        for offset, store in stores.items():
            store.overwrite("index.sqlite", offset, 0x7F)
            store.is_never_wrong_and_heals()


def test_a_pipe_in_the_place_of_the_index_is_not_waited_for(cache_directory: Path) -> None:
    (cache_directory / "v1").mkdir(parents=True, mode=0o700)
    os.mkfifo(cache_directory / "v1" / "index.sqlite", 0o600)
    cache = Cache(Settings(cache_directory, "readwrite", "compile"))
    assert isinstance(cache.lookup(KEYS["small"]), Miss)
    assert not cache.store(KEYS["small"], artifact("small"))


def test_damage_that_only_readers_meet_is_healed_by_the_next_store(damaged: Callable[[str], Damaged]) -> None:
    store = damaged("checkpointed")
    cache = Cache(Settings(store.directory, "readwrite", "compile"))
    assert isinstance(cache.lookup(KEYS["inline"]), Hit)
    cache._store.close()

    def overwrite(content: bytearray) -> None:
        content[100:200] = b"\xff" * 100  # the root of the schema

    store.damage("index.sqlite", overwrite)
    found = cache.lookup(KEYS["inline"])
    assert isinstance(found, Miss)
    assert found.reason == "damaged"
    assert cache.store(KEYS["inline"], artifact("inline"))
    assert isinstance(cache.lookup(KEYS["inline"]), Hit)
    cache._store.close()


def test_an_index_that_does_not_return_what_was_written_is_quarantined(cache_directory: Path) -> None:
    cache = Cache(Settings(cache_directory, "readwrite", "compile"))
    assert cache.store(KEYS["small"], artifact("small"))
    cache._store.close()
    connection = sqlite3.connect(cache_directory / "v1" / "index.sqlite")
    connection.execute(
        "CREATE TRIGGER forget AFTER INSERT ON record BEGIN UPDATE record SET content = x'00'; END"
    )
    connection.close()
    assert cache.store(KEYS["inline"], artifact("inline"))
    assert isinstance(cache.lookup(KEYS["inline"]), Hit)
    assert quarantined(cache_directory) == 1
    cache._store.close()


def test_one_damaged_row_has_the_index_checked_before_the_next_write(
    damaged: Callable[[str], Damaged],
) -> None:
    """The pages of the written row are sound; those of another row are mixed up, and would be used twice."""
    store = damaged("checkpointed")

    def mix_up(content: bytearray) -> None:
        begin = content.index(artifact("limit").payload[20_000:20_050]) // PAGE * PAGE
        content[begin : begin + 4] = (begin // PAGE + 1).to_bytes(4, "big")  # the page is its own successor

    store.damage("index.sqlite", mix_up)
    cache = Cache(Settings(store.directory, "readwrite", "compile"))
    assert cache.store(KEYS["small"], artifact("small"))
    assert quarantined(store.directory) == 0
    found = cache.lookup(KEYS["limit"])
    assert isinstance(found, Miss)
    assert found.reason == "damaged"
    assert cache.store(KEYS["small"], artifact("small"))
    assert quarantined(store.directory) == 1
    cache._store.close()


def test_a_schema_whose_damage_sqlite_cannot_put_into_words_is_quarantined(
    damaged: Callable[[str], Damaged],
) -> None:
    """The error message quotes the damaged name, so Python cannot decode it."""
    store = damaged("checkpointed")

    def garble(content: bytearray) -> None:
        content[:] = content.replace(b"tablerecordrecord", b"table\xff\xfecordrecord")
        content[:] = content.replace(b"CREATE TABLE record", b"CREATX TABLE record")

    store.damage("index.sqlite", garble)
    with pytest.raises(IndexDamaged, match="reading the"):
        LocalStore(store.directory).scan()
    assert store.is_never_wrong_and_heals()[0] == "damaged"


def test_a_header_that_forbids_writing_is_quarantined(damaged: Callable[[str], Damaged]) -> None:
    store = damaged("checkpointed")
    store.damage(
        "index.sqlite", fill(18, 1, 0x7F)
    )  # the write version: it now looks like that of a newer SQLite
    cache = Cache(Settings(store.directory, "readwrite", "compile"))
    assert cache.store(KEYS["inline"], artifact("inline"))
    assert isinstance(cache.lookup(KEYS["inline"]), Hit)
    assert quarantined(store.directory) == 1
    cache._store.close()


def test_one_flipped_bit_in_a_payload_costs_one_entry_only(damaged: Callable[[str], Damaged]) -> None:
    store = damaged("checkpointed")

    def flip_payload(content: bytearray) -> None:
        content[content.index(artifact("inline").payload[9000:9050])] ^= 1

    store.damage("index.sqlite", flip_payload)
    directory = store.directory
    cache = Cache(Settings(directory, "readwrite", "compile"))
    assert isinstance(cache.lookup(KEYS["inline"]), Miss)
    assert cache.store(KEYS["inline"], artifact("inline"))
    assert all(isinstance(cache.lookup(key), Hit) for key in KEYS.values())
    assert quarantined(directory) == 0
    cache._store.close()


def test_a_row_that_claims_more_than_an_entry_can_have_takes_no_memory(cache_directory: Path) -> None:
    cache = Cache(Settings(cache_directory, "readwrite", "compile"))
    for name in ("small", "inline"):
        assert cache.store(KEYS[name], artifact(name))
    cache._store.close()
    connection = sqlite3.connect(cache_directory / "v1" / "index.sqlite")
    connection.execute(
        "UPDATE record SET content = zeroblob(70000000) "
        "WHERE entry_id = (SELECT id FROM entry WHERE digest = ?)",
        (KEYS["small"].digest,),
    )
    connection.commit()
    connection.close()
    found = cache.lookup(KEYS["small"])
    assert isinstance(found, Miss)
    assert (found.reason, "too big" in found.detail) == ("damaged", True)
    assert cache.store(KEYS["small"], artifact("small"))
    assert isinstance(cache.lookup(KEYS["small"]), Hit)
    assert isinstance(cache.lookup(KEYS["inline"]), Hit)
    cache._store.close()


def test_a_blob_that_claims_more_than_any_memory_is_damage_and_heals(
    damaged: Callable[[str], Damaged],
) -> None:
    store = damaged("checkpointed")
    for path in (store.directory / "v1" / "blobs").glob("*/*"):
        os.truncate(path, 2**40)
    assert store.is_never_wrong_and_heals() == ["hit", "hit", "hit", "hit", "damaged"]


def test_what_no_read_would_believe_is_not_stored(
    cache_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = Cache(Settings(cache_directory, "readwrite", "compile"))
    monkeypatch.setattr(artifacts, "LARGEST_ENTRY", 10_000)
    assert not cache.store(KEYS["inline"], artifact("inline"))
    assert cache.store(KEYS["small"], artifact("small"))
    assert quarantined(cache_directory) == 0
    cache._store.close()


def test_one_flipped_bit_in_a_text_keeps_nobody_from_listing_the_rest(
    damaged: Callable[[str], Damaged],
) -> None:
    store = damaged("checkpointed")
    connection = sqlite3.connect(store.directory / "v1" / "index.sqlite")
    connection.execute("UPDATE entry SET summary = CAST(x'ff41' AS TEXT) WHERE id = 1")
    connection.commit()
    connection.close()
    assert sorted(entry.summary for entry in LocalStore(store.directory).scan())[-1] == "\ufffdA"
    assert store.is_never_wrong_and_heals() == ["hit"] * len(KEYS)


def test_damage_met_while_another_process_sets_the_index_aside_spares_the_new_one(
    cache_directory: Path,
) -> None:
    ours, theirs = LocalStore(cache_directory), LocalStore(cache_directory)
    ours.put(KEYS["small"], artifact("small"))
    index = cache_directory / "v1" / "index.sqlite"
    error = IndexDamaged("met in the old index")

    def overtaken() -> None:
        with ours.database.writing():
            index.rename(index.with_name("index.sqlite.damaged-by-them"))
            theirs.put(KEYS["empty"], artifact("empty"))
            raise error

    with pytest.raises(IndexDamaged):
        overtaken()
    assert ours.database.heals(error)
    ours.put(KEYS["small"], artifact("small"))
    assert quarantined(cache_directory) == 1
    assert isinstance(ours.get(KEYS["empty"]), Hit)
    assert isinstance(theirs.get(KEYS["small"]), Hit)
    ours.close()
    theirs.close()


def test_a_damaged_index_that_is_deleted_before_it_is_quarantined_is_started_again(
    cache_directory: Path,
) -> None:
    index = cache_directory / "v1" / "index.sqlite"
    index.parent.mkdir(parents=True)
    index.write_bytes(b"not a database" * 1000)
    cache = Cache(Settings(cache_directory, "readwrite", "compile"))
    cache._store.database.heals(IndexDamaged("met"))
    assert isinstance(cache.lookup(KEYS["small"]), Miss)
    shutil.rmtree(cache_directory)
    assert cache.store(KEYS["small"], artifact("small"))
    assert isinstance(cache.lookup(KEYS["small"]), Hit)
    cache._store.close()


def quarantined(directory: Path) -> int:
    return len(
        [path for path in (directory / "v1").glob("*.damaged-*") if not path.name.endswith(("-wal", "-shm"))]
    )


@pytest.mark.parametrize("after", ["a hit", "a store"])
def test_a_store_deleted_while_open_is_started_again(after: str, cache_directory: Path) -> None:
    cache = Cache(Settings(cache_directory, "readwrite", "compile"))
    assert cache.store(KEYS["blob"], artifact("blob"))
    if after == "a hit":
        assert isinstance(cache.lookup(KEYS["blob"]), Hit)
    shutil.rmtree(cache_directory)
    assert isinstance(cache.lookup(KEYS["blob"]), Miss)
    assert isinstance(cache.lookup(KEYS["small"]), Miss)
    assert cache.store(KEYS["blob"], artifact("blob"))
    assert isinstance(cache.lookup(KEYS["blob"]), Hit)
    another = Cache(Settings(cache_directory, "readonly", "compile"))
    assert isinstance(another.lookup(KEYS["blob"]), Hit)
    cache._store.close()
    another._store.close()


def test_an_index_replaced_while_open_is_opened_again(cache_directory: Path, sound: dict[str, Path]) -> None:
    cache = Cache(Settings(cache_directory, "readwrite", "compile"))
    other = CacheKey.build("op", {"graph": b"other"})
    assert cache.store(other, Artifact(b"other"))
    assert isinstance(cache.lookup(other), Hit)
    shutil.rmtree(cache_directory)
    shutil.copytree(sound["checkpointed"], cache_directory)
    assert isinstance(cache.lookup(KEYS["inline"]), Hit)
    assert isinstance(cache.lookup(other), Miss)
    assert cache.store(other, Artifact(b"other"))
    assert isinstance(cache.lookup(KEYS["inline"]), Hit)
    cache._store.close()
