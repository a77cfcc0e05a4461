"""Users with numbers of their own share a directory: each in a process that has given up root, under
the kernel's rules.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cachegraph.cache import Artifact, Cache, Hit, Miss
from cachegraph.key import CacheKey
from cachegraph.settings import Settings
from cachegraph.store.entry import INLINE_LIMIT
from tests.flow.users import ALICE, BOB, PROJECT, as_user

pytestmark = pytest.mark.skipif(
    not hasattr(os, "setuid") or os.geteuid() != 0, reason="only root can become other users"
)


@pytest.fixture
def directory() -> Iterator[Path]:
    """A directory that all can reach, and in which nobody but root can write."""
    path = Path(tempfile.mkdtemp(prefix="cachegraph-users-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture(autouse=True, scope="module")
def everything_is_imported(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Do once as root what the users will do: where this interpreter lies, they may not be able to look."""
    tmp = tmp_path_factory.mktemp("warm")
    for _ in range(2):
        warm = Cache(Settings(tmp / "local", "readwrite", "compile", tmp / "shared"))
        warm.get_or_build(key_of("a"), lambda: artifact("a"), bytes)
        warm.flush()
        shutil.rmtree(tmp / "local")


def key_of(text: str) -> CacheKey:
    return CacheKey.build("kernel", {"graph": text.encode()})


def artifact(text: str) -> Artifact:
    return Artifact(text.encode() * INLINE_LIMIT * 2, {"graph": b"g"}, {"compile": 1.0})


def cache(directory: Path, user: int, trust: str) -> Cache:
    """The cache of a user who has a local directory of his own."""
    local = directory / f"of-{user}"
    return Cache(Settings(local, "readwrite", "compile", directory / "project", trust=trust))


def prepare(directory: Path, owner: int, mode: int) -> None:
    """Make the shared directory, and one for each user."""
    for name, user, bits in [("project", owner, mode), *((f"of-{u}", u, 0o700) for u in (ALICE, BOB))]:
        (directory / name).mkdir()
        os.chown(directory / name, user, PROJECT)
        (directory / name).chmod(bits)


def build(directory: Path, user: int, trust: str, text: str) -> Any:
    """Have the user build the entry named `text`, or find it; return how that went and with which reason."""

    def work() -> tuple[str, str, bool]:
        found = cache(directory, user, trust).get_or_build(key_of(text), lambda: artifact(text), bytes)
        return found.outcome, found.reason, found.value == artifact(text).payload

    return as_user(user, work)


def look(directory: Path, user: int, trust: str, text: str) -> Any:
    """What the user finds in the shared directory: its reason if it is a miss."""

    def work() -> str:
        found = cache(directory, user, trust)._store.shared[0].get(key_of(text))  # type: ignore[union-attr]
        assert isinstance(found, Hit | Miss)
        return "hit" if isinstance(found, Hit) else found.reason

    return as_user(user, work)


def test_what_one_user_publishes_all_read_and_nobody_else_can_add_to(directory: Path) -> None:
    prepare(directory, ALICE, 0o755)
    assert build(directory, ALICE, "published", "a") == ("miss", "never-seen", True)
    assert build(directory, BOB, f"published:{ALICE}", "a") == ("hit", "", True)
    assert look(directory, BOB, "private", "a") == "untrusted"
    assert build(directory, BOB, f"published:{ALICE}", "b") == ("miss", "never-seen", True)
    assert build(directory, BOB, f"published:{ALICE}", "b") == ("hit", "", True)  # in his own
    assert look(directory, ALICE, "published", "b") == "never-seen"
    owners = {path.stat().st_uid for path in (directory / "project").rglob("*")}
    assert owners == {ALICE}


def test_a_private_directory_is_closed_to_others(directory: Path) -> None:
    prepare(directory, ALICE, 0o700)
    assert build(directory, ALICE, "private", "a") == ("miss", "never-seen", True)
    assert look(directory, ALICE, "private", "a") == "hit"
    assert look(directory, BOB, f"published:{ALICE}", "a") == "unreadable"
    assert build(directory, BOB, f"published:{ALICE}", "a") == ("miss", "unreadable", True)
