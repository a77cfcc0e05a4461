"""Revocation in shared directories: what is taken back is refused, and leaves the caches that copied it."""

from __future__ import annotations

import itertools
import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cachegraph.cache import Cache
from cachegraph.cli.app import app
from cachegraph.fingerprint.primitives import content_name
from cachegraph.key import CacheKey
from cachegraph.settings import Settings
from cachegraph.store.entry import Artifact, Hit, Miss
from cachegraph.store.local.store import LocalStore
from cachegraph.store.paths import revocation_place
from cachegraph.store.revocation import reading
from cachegraph.store.revocation.kept import kept_directory
from cachegraph.store.revocation.list_file import Revoked, write_list
from cachegraph.store.shared import entry_file
from cachegraph.store.shared.store import SharedStore
from cachegraph.store.signing import public_key_text
from cachegraph.store.trust import Trust
from cachegraph.version import __version__
from tests.cachegraph.store.signers import User

Key = Callable[..., CacheKey]


class Site:
    """A publisher and a reader, who trusts him, with a shared directory between them."""

    def __init__(self, directory: Path, patch: pytest.MonkeyPatch) -> None:
        self.directory = directory
        self.shared = directory / "shared"
        self.publisher, self.reader, self.other = (
            User(directory / name, patch) for name in ("publisher", "reader", "other")
        )
        keys = ",".join(public_key_text(user.key) for user in (self.publisher, self.other))
        self.trust = f"signed:{keys}"

    def store(self) -> SharedStore:
        return SharedStore(self.shared, trust=Trust.of(self.trust))

    def put(self, key: CacheKey, payload: bytes = b"payload", by: User | None = None) -> None:
        (by or self.publisher).do(lambda: self.store().put(key, Artifact(payload)))

    def get(self, key: CacheKey) -> str:
        """Return what a new process of the reader finds: an empty text for a hit, or the reason of the miss."""
        found = self.reader.do(lambda: self.store().get(key))
        return "" if isinstance(found, Hit) else f"{found.reason}: {found.detail}"

    def cache(self, node: str = "node") -> Cache:
        """Return the cache of the reader on a node; look it up as the reader."""
        return self.reader.do(
            lambda: Cache(
                Settings(self.directory / node, "readwrite", "compile", self.shared, trust=self.trust)
            )
        )

    def copied(self, key: CacheKey, node: str = "node") -> bool:
        """Return True if the local store of a node has the key."""
        return isinstance(LocalStore(self.directory / node).get(key), Hit)

    def copy(self, key: CacheKey, node: str = "node") -> None:
        """Look a key up in a process of the reader that ends."""

        def process() -> None:
            cache = self.cache(node)
            cache.lookup(key)
            cache.flush()

        self.reader.do(process)

    def revoke(self, *options: object, by: User | None = None, code: int = 0) -> Any:
        environment = {"CACHEGRAPH_TRUST": self.trust}
        arguments = ["key", "revoke", *map(str, options), "--dir", str(self.shared), "--json"]
        result = (by or self.publisher).do(lambda: CliRunner().invoke(app, arguments, env=environment))
        assert result.exit_code == code, result.output
        return json.loads(result.stdout) if code == 0 else result.stderr

    @property
    def list(self) -> Path:
        return self.shared / revocation_place(self.publisher.key)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    return Site(tmp_path, monkeypatch)


def hour(patch: pytest.MonkeyPatch) -> None:
    """Let every reading of a list be due again."""
    patch.setattr("cachegraph.store.revocation.node.READ_SECONDS", 0.0)
    patch.setattr(reading, "READ_SECONDS", 0.0)


@pytest.mark.parametrize("kind", ["signer", "writer", "release", "entry"])
def test_what_is_revoked_is_refused_and_the_copies_are_swept(
    site: Site, key: Key, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.put(key("a"))
    site.put(key("b"), by=site.other)
    site.copy(key("a"))
    site.copy(key("b"))
    assert site.copied(key("a"))
    assert site.copied(key("b"))
    monkeypatch.setattr(entry_file, "this_writer", lambda: "7@elsewhere")
    monkeypatch.setattr("cachegraph.store.artifacts.__version__", "9.9")
    site.put(key("a"), b"other")
    assert site.get(key("a")) == ""
    hour(monkeypatch)
    given = {
        "signer": public_key_text(site.publisher.key),
        "writer": "7@elsewhere",
        "release": "9.9",
        "entry": key("a").hex,
    }
    site.revoke(f"--{kind}", given[kind])
    assert site.get(key("a")).startswith("untrusted: ")
    assert "revoked" in site.get(key("a"))
    assert site.get(key("b")) == "", "another signer, writer, release and entry"
    assert site.copied(key("a")), "nobody has looked yet"
    site.copy(key("b"))
    assert site.copied(key("a")) is (kind != "signer"), "the copy is of the first record, by the first writer"
    assert site.copied(key("b"))


@pytest.mark.parametrize("kind", ["writer", "release", "entry"])
def test_copies_of_the_revoked_record_itself_are_swept_and_a_later_build_is_believed(
    site: Site, key: Key, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.put(key("a"))
    site.put(key("b"), by=site.other)
    site.copy(key("a"))
    hour(monkeypatch)
    given = {"writer": entry_file.this_writer(), "release": __version__, "entry": key("a").hex}
    site.revoke(f"--{kind}", given[kind])
    site.copy(key("b"))
    assert not site.copied(key("a"))
    later = LocalStore(site.directory / "node").get(key("a"))
    assert isinstance(later, Miss)
    assert (later.reason, "it was revoked" in later.detail) == ("evicted", True)
    monkeypatch.setattr(entry_file, "this_writer", lambda: "7@elsewhere")
    monkeypatch.setattr("cachegraph.store.artifacts.__version__", "9.9")
    site.put(key("a"), b"built again")
    assert site.get(key("a")) == ""


def test_a_warm_node_that_only_reads_its_copies_hears_of_it_when_a_process_ends(
    site: Site, key: Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.put(key("a"))
    site.copy(key("a"))
    hour(monkeypatch)
    site.revoke("--signer", public_key_text(site.publisher.key))
    site.copy(key("a"))  # a hit in its own store
    assert not site.copied(key("a"))


def test_a_list_is_read_once_an_hour_by_all_processes_of_a_node(
    site: Site, key: Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    ask = reading.Revocations._ask
    monkeypatch.setattr(
        reading.Revocations, "_ask", lambda self, *given: asked.append(given[0]) or ask(self, *given)
    )
    for name in "abc":
        site.put(key(name))
    for name in "abc":
        site.copy(key(name))
    assert len(asked) == 3, "one for each signer, the reader among them"
    site.copy(key("a"), "another node")
    assert len(asked) == 6


def test_an_older_list_and_a_missing_one_take_nothing_back(
    site: Site, key: Key, caplog: pytest.LogCaptureFixture
) -> None:
    site.put(key("a"))
    assert site.revoke("--writer", "somebody@else")["number"] == 1
    first = site.list.read_bytes()
    assert site.revoke("--entry", key("a").hex)["number"] == 2
    assert "revoked" in site.get(key("a"))
    site.list.write_bytes(first)
    with caplog.at_level(logging.WARNING):
        assert "revoked" in site.get(key("a"))
    assert "has number 1, and number 2 was seen" in caplog.text
    site.list.unlink()
    assert "revoked" in site.get(key("a"))
    assert len(list((site.directory / "reader/cachegraph/revocations").iterdir())) == 1


def test_a_list_that_lost_what_an_earlier_one_held_takes_nothing_back(site: Site, key: Key) -> None:
    """A thief of the key can write such a list; who has seen the first one is not fooled."""
    site.put(key("a"))
    site.revoke("--entry", key("a").hex)
    assert "revoked" in site.get(key("a"))
    site.list.write_bytes(site.publisher.do(lambda: write_list(9, Revoked())))
    assert "revoked" in site.get(key("a"))


def publish(site: Site, number: int, *keys: CacheKey) -> None:
    """Write a list of the publisher that revokes the entries of these keys, whatever came before."""
    records = {key.hex: content_name(split(site.store().layout.entry(key.hex).read_bytes())) for key in keys}
    content = site.publisher.do(lambda: write_list(number, Revoked(entries=frozenset(records.items()))))
    site.list.parent.mkdir(exist_ok=True)
    site.list.write_bytes(content)


def split(content: bytes) -> bytes:
    pieces = entry_file.split_file(content)
    assert isinstance(pieces, entry_file.Pieces)
    return pieces.record


def test_a_list_of_a_lower_number_that_revokes_more_is_honoured_too_by_every_process(
    site: Site, process: Callable[..., str], caplog: pytest.LogCaptureFixture
) -> None:
    """Its signer lost his list and counts from 1 again; the readers have seen number 5."""
    looked_up, other = CacheKey.build("kernel", {"graph": b"g"}), CacheKey.build("kernel", {"graph": b"h"})
    site.put(looked_up)
    site.put(other)
    assert process() == "True True"
    publish(site, 5, other)
    assert "revoked" in site.get(other)
    publish(site, 1, looked_up)
    LocalStore(site.directory / "node").layout.revocations.unlink()  # an hour passes
    process()
    assert process() == "False True"
    site.list.unlink()
    assert process() == "False True", "what a process has read, the others know from the disk"
    with caplog.at_level(logging.WARNING):
        assert "revoked" in site.get(looked_up)
        assert "revoked" in site.get(other)
        publish(site, 4, other)
        assert "revoked" in site.get(looked_up)
    assert "replaced it by an older one" in caplog.text
    kept = site.directory / "reader/cachegraph/revocations"
    assert sorted(path.name.split(".")[1] for path in kept.iterdir()) == ["1", "5"], "4 says nothing new"
    publish(site, 6, other, looked_up)
    assert "revoked" in site.get(looked_up)
    assert [path.name.split(".")[1] for path in kept.iterdir()] == ["6"]


def test_whoever_hears_first_of_a_list_of_a_lower_number_says_what_it_is(
    site: Site, key: Key, caplog: pytest.LogCaptureFixture
) -> None:
    for name in "ab":
        site.put(key(name))
    publish(site, 2, key("a"))
    assert "revoked" in site.get(key("a"))
    publish(site, 1, key("b"))
    with caplog.at_level(logging.WARNING):
        assert "revoked" in site.get(key("b"))
    assert "It revokes more than the lists that were seen" in caplog.text


def test_threads_read_a_list_once_and_none_believes_what_it_revokes(
    site: Site, key: Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "ab":
        site.put(key(name))
    publish(site, 1, key("a"))
    asked: list[str] = []

    def slow(store: SharedStore) -> Callable[[str, int], bytes]:
        read = store.check._read  # type: ignore[union-attr]

        def wait(place: str, most: int) -> bytes:
            asked.append(place)
            time.sleep(0.05)
            return read(place, most)

        return wait

    def work() -> list[Hit | Miss]:
        store = site.store()
        store.check._read = slow(store)  # type: ignore[union-attr]
        with ThreadPoolExecutor(8) as threads:
            return list(threads.map(lambda number: store.get(key("ab"[number % 2])), range(32)))

    found = site.reader.do(work)
    assert ["revoked" in one.detail if isinstance(one, Miss) else "hit" for one in found] == [
        True,
        "hit",
    ] * 16
    assert len(asked) == len(set(asked)) == 3, "one for each signer, the reader among them"


def test_threads_that_read_lists_of_several_places_all_the_time_lose_none(
    site: Site, key: Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every look-up reads every list, which has another number each time."""
    for name in "ab":
        site.put(key(name))
    publish(site, 1, key("a"))
    hour(monkeypatch)
    revocations = site.reader.do(lambda: reading.Revocations([site.publisher.key, site.other.key]))
    numbers = itertools.count(1)
    entries = Revoked(entries=frozenset(((key("a").hex, "ab" * 40),)))
    lists = site.publisher.do(lambda: [write_list(number, entries) for number in range(1, 200)])

    def read(place: str, most: int) -> bytes:
        if place != revocation_place(site.publisher.key):
            raise FileNotFoundError(place)
        return lists[next(numbers) * 37 % len(lists)]

    def look(number: int) -> str:
        fault = revocations.fault(site.publisher.key, f"place {number % 3}", read)
        return fault or ("" if revocations.revoked == entries else "believed")

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as threads:
            said = site.reader.do(lambda: set(threads.map(look, range(160))))
    finally:
        sys.setswitchinterval(interval)
    assert said == {""}


@pytest.mark.parametrize(
    "damage", ["flipped", "cut", "empty", "of another signer", "too long", "a directory"]
)
def test_while_a_list_cannot_be_read_its_signer_is_not_believed_and_others_are(
    site: Site, key: Key, damage: str
) -> None:
    site.put(key("a"))
    site.put(key("b"), by=site.other)
    site.revoke("--writer", "somebody@else")
    whole = site.list.read_bytes()
    site.list.unlink()
    if damage == "a directory":
        site.list.mkdir()
    else:
        site.list.write_bytes(
            {
                "flipped": bytes((whole[0], whole[1] ^ 1)) + whole[2:],
                "cut": whole[:-1],
                "empty": b"",
                "of another signer": site.other.do(lambda: write_list(1, Revoked())),
                "too long": bytes(5 << 20),
            }[damage]
        )
    assert "whose revocation list" in site.get(key("a"))
    assert site.get(key("b")) == ""
    if damage == "a directory":
        site.list.rmdir()
    site.list.write_bytes(whole)
    assert site.get(key("a")) == ""


def test_a_trusted_signer_revokes_the_key_of_another_and_a_stranger_nothing(
    site: Site, key: Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.put(key("a"))
    stranger = User(site.directory / "stranger", monkeypatch)
    site.revoke("--signer", site.publisher.key.hex(), by=stranger)
    assert site.get(key("a")) == ""
    site.revoke("--signer", site.publisher.key.hex(), by=site.other)
    assert "a key that was revoked" in site.get(key("a"))


@pytest.mark.parametrize("broken", ["no home", "read only", "damaged"])
def test_without_a_sound_configuration_directory_lists_are_read_by_each_process(
    site: Site, key: Key, broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.put(key("a"))
    site.put(key("b"), by=site.other)
    site.copy(key("a"))
    site.revoke("--entry", key("a").hex)
    hour(monkeypatch)
    configuration = site.directory / "reader" / "cachegraph"
    if broken == "no home":
        monkeypatch.setattr("cachegraph.user_directories._directory_of_user", lambda *_: "")
        found = site.store().get(key("a"))
        assert isinstance(found, Miss)
        assert "revoked" in found.detail
        return
    if broken == "read only":
        (configuration / "revocations").write_bytes(b"a file where the directory should be")
    else:
        assert "revoked" in site.get(key("a"))
        [kept] = (configuration / "revocations").iterdir()
        kept.write_bytes(kept.read_bytes()[:-1])
        assert "remove it" in site.get(key("a"))
        assert site.get(key("b")) == ""
        kept.unlink()
    assert "revoked" in site.get(key("a"))
    site.copy(key("b"))
    assert not site.copied(key("a")), "the copies are swept nevertheless"


@pytest.mark.parametrize("shift", [-1e9, 1e9])
def test_clocks_that_differ_delay_nothing(
    site: Site, key: Key, shift: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record of a node may be from a time when its clock was wrong."""
    site.put(key("a"))
    site.copy(key("a"))
    record = LocalStore(site.directory / "node").layout.revocations
    document = json.loads(record.read_text())
    document["read"] = {place: when + shift for place, when in document["read"].items()}
    record.write_text(json.dumps(document))
    site.revoke("--entry", key("a").hex)
    site.copy(key("a"))
    assert not site.copied(key("a"))


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"read": {"x": "y"}, "swept": []}', b"\xff\xfe"])
def test_a_damaged_record_of_a_node_is_made_anew(site: Site, key: Key, content: bytes) -> None:
    site.put(key("a"))
    site.copy(key("a"))
    record = LocalStore(site.directory / "node").layout.revocations
    record.write_bytes(content)
    site.revoke("--entry", key("a").hex)
    site.copy(key("b"))
    assert not site.copied(key("a"))


def test_what_was_revoked_between_its_look_up_and_its_copy_is_not_copied(site: Site, key: Key) -> None:
    site.put(key("a"))

    def process() -> None:
        cache = site.cache()
        assert isinstance(cache.lookup(key("a")), Hit)
        site.revoke("--entry", key("a").hex)
        site.list.rename(site.list.with_name("aside"))  # only what another process kept tells it
        site.get(key("b"))
        site.list.with_name("aside").rename(site.list)
        site.get(key("b"))
        cache.flush()

    site.put(key("b"), by=site.other)
    site.reader.do(process)
    assert not site.copied(key("a"))


PROCESS = """
import sys
from cachegraph.cache import Cache, Hit
from cachegraph.key import CacheKey
from cachegraph.settings import current_settings
cache = Cache(current_settings())
found = cache.lookup(CacheKey.build("kernel", {"graph": b"g"}))
cache.flush()
print(isinstance(found, Hit), "cryptography" in sys.modules)
"""


@pytest.fixture
def process(site: Site) -> Callable[..., str]:
    """Return a function that looks a key up in a new process of the reader."""
    variables = {
        "CACHEGRAPH_DIR": str(site.directory / "node"),
        "CACHEGRAPH_SHARED_DIR": str(site.shared),
        "CACHEGRAPH_TRUST": site.trust,
        "XDG_CONFIG_HOME": str(site.directory / "reader"),
    }

    def run(program: str = PROCESS, *arguments: str) -> str:
        command = [sys.executable, "-c", program, *arguments]
        done = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True)
        assert done.returncode in (0, -signal.SIGKILL), done.stderr
        return "killed" if done.returncode else done.stdout.strip()

    return run


def test_processes_of_a_warm_node_parse_no_list_and_verify_nothing(
    site: Site, process: Callable[..., str]
) -> None:
    site.put(CacheKey.build("kernel", {"graph": b"g"}))
    site.revoke("--writer", "somebody@else")
    assert [process(), process(), process()] == ["True True", "True False", "True False"]


def test_another_process_finds_no_copy_of_what_was_revoked(site: Site, process: Callable[..., str]) -> None:
    key = CacheKey.build("kernel", {"graph": b"g"})
    site.put(key)
    assert process() == "True True"
    site.revoke("--entry", key.hex)
    LocalStore(site.directory / "node").layout.revocations.unlink()  # an hour passes
    assert process() == "True True", "it hits its copy, then reads the list"
    assert process() == "False True"


KILLED = (
    """
import os, signal, sys
from cachegraph.store import configuration, files
from cachegraph.store.local import eviction
from cachegraph.store.revocation import kept, node, reading

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

places = {
    "before it is kept": (kept, "create_configuration"),
    "after it was kept": (reading, "_is_kept"),
    "before it is noted": (node.NodeRevocations, "note"),
    "before the sweep": (node.NodeRevocations, "sweep"),
    "within the sweep": (eviction, "_forget_oldest"),
    "after the sweep": (node.NodeRevocations, "_write"),
}
owner, name = places[sys.argv[1]]
if sys.argv[1] == "after it was kept":
    keep = reading._is_kept
    die_now, die = die, lambda *given: (keep(*given), die_now())
setattr(owner, name, die)
"""
    + PROCESS
)


@pytest.mark.parametrize(
    "when",
    [
        "before it is kept",
        "after it was kept",
        "before it is noted",
        "before the sweep",
        "within the sweep",
        "after the sweep",
    ],
)
def test_a_process_that_is_killed_while_it_learns_of_it_leaves_it_to_the_next(
    site: Site, process: Callable[..., str], when: str
) -> None:
    key = CacheKey.build("kernel", {"graph": b"g"})
    site.put(key)
    assert process() == "True True"
    site.revoke("--entry", key.hex)
    LocalStore(site.directory / "node").layout.revocations.unlink()  # an hour passes
    assert process(KILLED, when) == "killed"
    process()
    assert process() == "False True"
    assert "revoked" in site.get(key)


@pytest.mark.slow
def test_processes_that_learn_of_it_at_once_agree(
    site: Site, key: Key, start_python: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readers of two nodes run while three lists are published."""
    for number in range(12):
        site.put(key(number))
    monkeypatch.setenv("CACHEGRAPH_SHARED_DIR", str(site.shared))
    monkeypatch.setenv("CACHEGRAPH_TRUST", site.trust)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(site.directory / "reader"))
    readers = []
    for number in range(6):
        monkeypatch.setenv("CACHEGRAPH_DIR", str(site.directory / f"node{number % 2}"))
        readers.append(start_python(READER))
    for number in range(3):
        site.revoke("--entry", key(number).hex)
    for reader in readers:
        output, errors = reader.communicate(timeout=60)
        assert (reader.returncode, output.strip()) == (0, "done"), errors
    for node in ("node0", "node1"):
        LocalStore(site.directory / node).layout.revocations.unlink()  # an hour passes
        site.copy(key(11), node)
        assert [site.copied(key(number), node) for number in range(12)] == [False] * 3 + [True] * 9
    assert len(list((site.directory / "reader/cachegraph/revocations").iterdir())) == 1


READER = """
from cachegraph.cache import Cache
from cachegraph.key import CacheKey
from cachegraph.settings import current_settings
from cachegraph.store.revocation import node, reading
node.READ_SECONDS = reading.READ_SECONDS = 0.0
for _ in range(6):
    cache = Cache(current_settings())
    for number in range(12):
        cache.lookup(CacheKey.build("kernel", {"scheme": b"test", "graph": str(number).encode()}))
    cache.flush()
print("done")
"""


def test_revoking_needs_a_place_and_a_thing_and_a_policy_that_signs(site: Site, key: Key) -> None:
    site.put(key("a"))
    assert "revoking what" in site.revoke(code=2)
    assert "no key of 32" in site.revoke("--entry", "abc", code=2)
    assert "there is no entry" in site.revoke("--entry", key("b").hex, code=1)
    assert "public key" in site.revoke("--signer", "ed25519:x", code=2)
    for trust, said in (("private", "not signed"), (site.trust, "revoking where")):
        arguments = ["--dir", str(site.shared)] if trust == "private" else []
        result = CliRunner().invoke(
            app, ["key", "revoke", "--writer", "w", *arguments], env={"CACHEGRAPH_TRUST": trust}
        )
        assert (result.exit_code, said in result.stderr) == (2, True)
    assert not site.list.exists()


def test_lists_grow_and_what_a_stranger_put_in_their_place_is_replaced(site: Site, key: Key) -> None:
    site.put(key("a"))
    site.revoke("--writer", "one@host")
    site.list.write_bytes(b"something else")
    told = site.revoke("--writer", "two@host", "--release", "0.0.1")
    assert told["number"] == 2
    assert told["revoked"]["writers"] == ["one@host", "two@host"]
    assert told["published"] == [str(site.shared)]
    assert site.get(key("a")) == ""


def test_two_machines_with_one_key_lose_no_revocation(site: Site, key: Key, tmp_path: Path) -> None:
    """Both write list number 1, to two directories; who reads both honours both."""
    site.put(key("a"))
    site.revoke("--writer", "one@host")
    first = site.list.read_bytes()
    site.list.unlink()
    for kept in site.publisher.do(kept_directory).iterdir():
        kept.unlink()
    site.revoke("--entry", key("a").hex)
    second = site.list.read_bytes()
    assert "revoked" in site.get(key("a"))
    site.list.write_bytes(first)
    assert "revoked" in site.get(key("a"))
    site.list.write_bytes(second)
    assert site.revoke("--release", "0.0.1")["number"] == 2


def test_a_published_entry_can_be_shown_with_its_signer_and_writer(site: Site, key: Key) -> None:
    site.put(key("a"))
    site.copy(key("a"))
    result = CliRunner().invoke(app, ["show", key("a").hex, "--dir", str(site.directory / "node")])
    assert public_key_text(site.publisher.key) in result.stdout, result.output
    assert entry_file.this_writer() in result.stdout
