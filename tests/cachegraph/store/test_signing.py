"""Signatures: in a directory that a group writes to, only entries of listed users are read."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cachegraph.cache import Artifact, Cache, Hit, Miss
from cachegraph.cli.app import app
from cachegraph.fingerprint.primitives import digest
from cachegraph.key import CacheKey
from cachegraph.settings import Settings
from cachegraph.store.configuration import UnusableFile
from cachegraph.store.entry import INLINE_LIMIT
from cachegraph.store.maintenance.verification import verify
from cachegraph.store.shared.store import SharedStore
from cachegraph.store.signing import (
    key_path,
    make_own_key,
    own_public_key,
    public_key,
    public_key_text,
    sign,
)
from cachegraph.store.trust import Trust
from tests.cachegraph.store.older_release import first_format
from tests.cachegraph.store.signers import signing_key

Key = Callable[..., CacheKey]
GROUP, FIRST, SECOND, UNLISTED = 4321, 54001, 54002, 54003

needs_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can be several users"
)
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no users here")


@pytest.fixture
def place() -> Iterator[Path]:
    """Yield a directory that every user can enter, with the cache directory of a group in it."""
    directory = Path(tempfile.mkdtemp(prefix="cachegraph-group-"))
    directory.chmod(0o755)
    shared = directory / "project"
    shared.mkdir()
    if os.geteuid() == 0:
        os.chown(shared, FIRST, GROUP)
    shared.chmod(0o2770)
    yield directory
    shutil.rmtree(directory)


def as_user(place: Path, user: int, work: Callable[[], Any]) -> Any:
    """Return the result of `work` in a process of that user, a member of the group, with its own home."""
    home = place / str(user)
    if not home.exists():
        home.mkdir(mode=0o700)
        os.chown(home, user, GROUP)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([GROUP])
            os.setresgid(GROUP, GROUP, GROUP)
            os.setresuid(user, user, user)
            os.environ.update(HOME=str(home), XDG_CONFIG_HOME=str(home / "config"))
            os.write(writer, json.dumps(work()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        said = file.read()
    os.waitpid(child, 0)
    assert said, f"the process of user {user} failed"
    return json.loads(said)


class Group:
    """Two listed users, and a third one who may write to the directory too."""

    def __init__(self, place: Path) -> None:
        signing_key()  # as root, so that modules are imported that the other user could not read
        self.place = place
        keys = [self.run(user, lambda: public_key_text(signing_key())) for user in (FIRST, SECOND, UNLISTED)]
        self.trust = f"group:{keys[0]},{keys[1]}"

    def run(self, user: int, work: Callable[[], Any]) -> Any:
        return as_user(self.place, user, work)

    def store(self) -> SharedStore:
        return SharedStore(self.place / "project", trust=Trust.of(self.trust))

    def put(self, user: int, key: CacheKey, payload: bytes) -> None:
        self.run(user, lambda: self.store().put(key, Artifact(payload, {"graph": b"g" + payload})))

    def get(self, user: int, key: CacheKey) -> str:
        """Return the payload that the user finds, or the reason for the miss."""

        def look() -> str:
            found = self.store().get(key)
            return found.payload.decode() if isinstance(found, Hit) else f"{found.reason}: {found.detail}"

        return str(self.run(user, look))


@pytest.fixture
def group(place: Path) -> Group:
    return Group(place)


@needs_root
def test_listed_users_read_each_other_and_nobody_who_may_merely_write_there(group: Group, key: Key) -> None:
    group.put(FIRST, key("a"), b"first")
    group.put(SECOND, key("b"), b"second" * INLINE_LIMIT)
    group.put(UNLISTED, key("c"), b"unlisted")
    for user in (FIRST, SECOND, UNLISTED):
        assert group.get(user, key("a")) == "first"
        assert group.get(user, key("b")) == "second" * INLINE_LIMIT
        assert group.get(user, key("c")).startswith("untrusted: ")
        assert "who is not listed" in group.get(user, key("c"))
    may_write = {
        user: group.run(user, lambda: group.store().guard.trust.may_write) for user in (FIRST, UNLISTED)
    }
    assert may_write == {FIRST: True, UNLISTED: False}


@needs_root
@pytest.mark.parametrize("what", ["a file that he owns", "an entry that he published", "a directory"])
def test_moving_what_a_listed_user_owns_makes_no_entry_of_it(what: str, group: Group, key: Key) -> None:
    """An attack with `mv`: the moved file has the owner and mode of a trusted user."""
    group.put(FIRST, key("a"), b"first")
    layout = group.store().layout
    target = layout.entry(key("b").hex)

    def prepare() -> None:
        entry = layout.entry(key("a").hex)
        if (
            what == "a file that he owns"
        ):  # for example an e-mail attachment, saved in a directory of the project
            made = SharedStore(group.place / "project" / "mail")
            made.put(key("b"), Artifact(b"evil"))
            for path in [made.layout.directory, *made.layout.directory.rglob("*")]:
                path.chmod(0o2770 if path.is_dir() else 0o640)
        elif what == "a directory":
            shutil.copytree(entry.parent, entry.parent.with_name("aside"))
            entry.parent.with_name("aside").chmod(0o2770)

    def attack() -> None:
        target.parent.mkdir(exist_ok=True)
        if what == "a file that he owns":
            os.rename(SharedStore(group.place / "project" / "mail").layout.entry(key("b").hex), target)
        elif what == "an entry that he published":
            os.rename(layout.entry(key("a").hex), target)
        else:
            shutil.rmtree(target.parent)
            os.rename(layout.entries / "aside", target.parent)
            os.rename(target.parent / key("a").hex, target)

    group.run(FIRST, prepare)
    group.run(UNLISTED, attack)
    assert target.stat().st_uid == FIRST
    for user in (FIRST, SECOND):
        assert group.get(user, key("b")).startswith("untrusted: ")
        problems = group.run(user, lambda: [problem.done for problem in verify(group.store())])
        assert "left as it is" in problems


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SharedStore:
    """A group of this user alone."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    trust = f"group:{public_key_text(signing_key())}"
    return SharedStore(tmp_path / "project", trust=Trust.of(trust))


def detail(store: SharedStore, key: CacheKey) -> str:
    found = store.get(key)
    assert isinstance(found, Miss)
    assert found.reason == "untrusted"
    return found.detail


def plant(store: SharedStore, key: CacheKey, content: bytes | bytearray) -> None:
    """Write an entry file, as any member of the group can."""
    path = store.layout.entry(key.hex)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(content[:4]) + digest(bytes(content[20:])) + bytes(content[20:]))
    path.chmod(0o640)


def test_an_entry_that_nobody_signed_is_not_believed(own: SharedStore, key: Key, tmp_path: Path) -> None:
    own.put(key("x"), Artifact(b"x"))
    unsigned = SharedStore(tmp_path / "private")
    unsigned.put(key("a"), Artifact(b"a"))
    plant(own, key("a"), unsigned.layout.entry(key("a").hex).read_bytes())
    assert "an entry that nobody signed" in detail(own, key("a"))
    older = first_format(key("a"), b"a", {})
    plant(own, key("a"), b"CGE\1" + bytes(16) + len(older).to_bytes(4, "big") + bytes(4) + older)
    assert "an older release" in detail(own, key("a"))


def test_a_signature_covers_all_that_is_in_the_file_and_where_it_lies(own: SharedStore, key: Key) -> None:
    own.put(key("a"), Artifact(b"payload", {"graph": b"g"}, {"compile": 1.0}, "a summary"))
    whole = own.layout.entry(key("a").hex).read_bytes()
    for place in range(20, len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 0x10
        plant(own, key("a"), changed)
        found = own.get(key("a"))
        assert isinstance(found, Miss), place
        assert found.reason == "untrusted", place
    plant(own, key("b"), whole)
    assert "did not publish here" in detail(own, key("b"))
    plant(own, key("a"), whole)
    assert isinstance(own.get(key("a")), Hit)


def test_an_older_record_of_the_same_key_is_believed_and_under_another_key_it_is_not(
    own: SharedStore, key: Key
) -> None:
    """Its signer published it for this key: it is a result of the same computation."""
    own.put(key("a"), Artifact(b"older"))
    older = own.layout.entry(key("a").hex).read_bytes()
    own.put(key("a"), Artifact(b"newer"))
    plant(own, key("b"), older)
    assert "did not publish here" in detail(own, key("b"))
    plant(own, key("a"), older)
    found = own.get(key("a"))
    assert isinstance(found, Hit)
    assert found.payload == b"older"


def test_whoever_signs_for_himself_is_not_the_one_who_is_listed(
    own: SharedStore, key: Key, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own.put(key("a"), Artifact(b"a"))
    whole = bytearray(own.layout.entry(key("a").hex).read_bytes())
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "another"))
    signing_key()
    own.put(key("a"), Artifact(b"b"))
    theirs = bytearray(own.layout.entry(key("a").hex).read_bytes())
    assert "who is not listed" in detail(own, key("a"))
    theirs[20:52] = whole[20:52]  # under the name of the listed user
    plant(own, key("a"), theirs)
    assert "did not publish here" in detail(own, key("a"))


def test_a_blob_that_somebody_exchanges_is_damage(own: SharedStore, key: Key) -> None:
    own.put(key("a"), Artifact(b"a" * (INLINE_LIMIT + 1)))
    [blob] = [path for path in own.layout.blobs.rglob("*") if path.is_file()]
    blob.write_bytes(b"b" * (INLINE_LIMIT + 1))
    found = own.get(key("a"))
    assert isinstance(found, Miss)
    assert found.reason == "damaged"


PROGRAM = """
import sys
from cachegraph.cache import Cache, Hit
from cachegraph.key import CacheKey
from cachegraph.settings import current_settings
cache = Cache(current_settings())
assert isinstance(cache.lookup(CacheKey.build("kernel", {"graph": b"g"})), Hit)
print("cryptography" in sys.modules)
"""


def test_what_was_copied_to_this_node_is_not_verified_again(own: SharedStore, tmp_path: Path) -> None:
    key = CacheKey.build("kernel", {"graph": b"g"})
    own.put(key, Artifact(b"a"))
    (signer,) = own.guard.trust.signers or ()
    variables = {
        "CACHEGRAPH_SHARED_DIR": str(own.layout.directory),
        "CACHEGRAPH_TRUST": f"group:{public_key_text(signer)}",
    }

    def process() -> str:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env=os.environ | variables,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    assert [process(), process()] == ["True", "False"]


def test_a_cache_of_a_group_keeps_and_finds(own: SharedStore, tmp_path: Path, key: Key) -> None:
    (signer,) = own.guard.trust.signers or ()
    trust = f"group:{public_key_text(signer)}"
    for node in ("one", "two"):
        cache = Cache(Settings(tmp_path / node, "readwrite", "compile", own.layout.directory, trust=trust))
        found = cache.get_or_build(key("a"), lambda: Artifact(b"built"), bytes)
        assert (found.outcome, found.value) == ("miss" if node == "one" else "hit", b"built")


def test_the_key_is_made_once_and_is_for_its_user_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert own_public_key() is None
    with ThreadPoolExecutor(8) as threads:
        tried = list(threads.map(lambda _: made_now(), range(8)))
    [made] = {key for key in tried if key}
    assert tried.count(b"") == 7
    assert own_public_key() == made == public_key(public_key_text(made)) == sign(b"message").signer
    assert stat.S_IMODE(key_path().stat().st_mode) == 0o600
    assert os.listdir(key_path().parent) == ["key"]


def made_now() -> bytes:
    """Return a new key, or nothing if there was one."""
    try:
        return make_own_key()
    except FileExistsError:
        return b""


@pytest.mark.parametrize("change", ["mode", "content", "link"])
def test_a_key_that_others_can_have_or_that_is_none_is_not_used(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    listed = public_key_text(signing_key())
    assert Trust.of(f"group:{listed}").may_write
    if change == "mode":
        key_path().chmod(0o640)
    elif change == "content":
        key_path().write_text("no key")
    else:
        key_path().rename(tmp_path / "aside")
        key_path().symlink_to(tmp_path / "aside")
    with pytest.raises(OSError, match="key") as caught:
        own_public_key()
    assert change == "link" or isinstance(caught.value, UnusableFile)
    with pytest.raises(FileExistsError, match="there is one"):
        make_own_key()
    assert not Trust.of(f"group:{listed}").may_write
    result = CliRunner().invoke(app, ["key", "show"])
    assert result.exit_code == 1


def test_what_is_written_without_a_signature_has_none(key: Key, tmp_path: Path) -> None:
    store = SharedStore(tmp_path / "private")
    store.put(key("a"), Artifact(b"a"))
    assert store.layout.entry(key("a").hex).read_bytes()[20:116] == bytes(96)
