"""Trust: whose files are believed. Whoever can write an entry runs code in every reader, so that is decided before a read.

CACHEGRAPH_TRUST    who may write                  directories, files    made so whatever the umask is
private             this user                      0700, 0600
published[:UID]     that user, or this one         0755, 0644
group:KEY,KEY..     who has one of these keys      2770, 0640

In a directory that a group can write in, anybody of the group can move a file of one user, or a directory, to where another
looks for an entry: owner and mode say nothing of who published it. There each entry is signed (signing.py), with the place it
lies in, and those that are not, or by others, are refused; what an entry refers to is named by its content. For the other
policies nobody else can write in the directories, and what counts is the owner. Root's files are believed too: root needs
no cache to run code. Owner and mode of a file are those of the descriptor that is read, which was opened without following a
link; nobody but its owner may be able to write it. The directories above it, from the cache directory down, must belong to
one of those users and be no links; others may not write in them, but for the group where the policy is `group`, and in the
cache directory itself if it is sticky, or of a group that has its owner's number, which is his alone by convention. What
lies above the cache directory is not looked at: somebody who can rename it can put another of the owner's directories
there (docs/hpc.md). A user is a number: it needs no entry in any list of users. Where the system has no owners and modes,
nothing is checked.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from cachegraph.errors import NoDirectoryError
from cachegraph.store.paths import make_directory

_ROOT = 0
_MODES = {"private": (0o700, 0o600), "published": (0o755, 0o644), "group": (0o2770, 0o640)}


class Untrusted(OSError):
    """Something in a cache directory is not to be believed: what lies at `path`, what was `found`, and `advice`."""

    def __init__(self, path: str | os.PathLike[str], found: str, advice: str) -> None:
        super().__init__(errno.EPERM, found, os.fspath(path))
        self.path = path
        self.found = found
        self.advice = advice

    def __str__(self) -> str:
        return f"not using {os.fspath(self.path)}: found {self.found}; {self.advice}"


class Trust(NamedTuple):
    """A `policy`, the users whose files are believed under it, or the keys that entries are signed with (each None where the
    policy is about the other), the modes of what is written, and whether this user writes."""

    policy: str
    owners: frozenset[int] | None
    signers: frozenset[bytes] | None
    directory_mode: int
    file_mode: int
    may_write: bool

    @classmethod
    def of(cls, setting: str) -> Trust:
        """Return what CACHEGRAPH_TRUST asks for; `setting` is as settings.py lets it through."""
        policy, _, listed = setting.partition(":")
        if policy == "group":
            return cls._of_group(listed.split(","))
        writer = int(listed) if listed else _own_user()
        owners = frozenset((writer, _own_user(), _ROOT))
        return cls(policy, owners, None, *_MODES[policy], writer == _own_user())

    @classmethod
    def _of_group(cls, listed: Sequence[str]) -> Trust:
        from cachegraph.store.signing import own_public_key, public_key  # no other policy needs it

        signers = frozenset(map(public_key, listed))
        try:
            own = own_public_key()
        except (OSError, NoDirectoryError):  # who has no key that can be used reads, and the doctor says why
            own = None
        return cls("group", None, signers, *_MODES["group"], own in signers)

    @property
    def shared(self) -> bool:
        """Whether several users use the same directory."""
        return self.policy != "private"

    def __str__(self) -> str:
        if self.owners is not None:
            return f"{self.policy}, files of uid {', '.join(map(str, sorted(self.owners)))}"
        from cachegraph.store.signing import public_key_text

        return (
            f"{self.policy}, entries signed by {', '.join(sorted(map(public_key_text, self.signers or ())))}"
        )


PRIVATE = "private"


class Guard:
    """Refuses what is not to be believed in the cache directory `top`, by `trust`; remembers directories that passed."""

    def __init__(self, top: Path, trust: Trust) -> None:
        self.top = top
        self.trust = trust
        self._sound: set[Path] = set()

    def check_file(self, path: Path, status: os.stat_result) -> None:
        """Raise Untrusted unless the open file at `path`, of that `status`, and all directories above may be believed.

        Raises OSError where a directory cannot be looked at.
        """
        self.check_directory(path.parent)
        self._check_owner(path, status)
        if _has_modes() and status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            mode = stat.S_IMODE(status.st_mode)
            raise Untrusted(
                path, f"mode {mode:04o}: others can write it", f"chmod {self.trust.file_mode:o} it"
            )

    def check_link(self, path: Path) -> None:
        """Raise what `check_file` raises, for a file that somebody else is to open by its name; it may be no link."""
        status = os.lstat(path)
        _refuse_link(path, status)
        self.check_file(path, status)

    def check_directory(self, directory: Path) -> None:
        """Raise Untrusted unless `directory`, and those above it up to the top, may be believed; raises OSError too."""
        if directory in self._sound:
            return
        if directory != self.top:
            self.check_directory(directory.parent)
        self._check_directory(directory, os.stat(directory) if directory == self.top else os.lstat(directory))
        self._sound.add(directory)

    def make_directory(self, directory: Path) -> None:
        """Make `directory` and its missing parents with the mode that the policy has; raises OSError and Untrusted."""
        make_directory(directory, self.trust.directory_mode)
        self.check_directory(directory)

    def _check_directory(self, directory: Path, status: os.stat_result) -> None:
        _refuse_link(directory, status)
        self._check_owner(directory, status)
        mode = stat.S_IMODE(status.st_mode)
        if _has_modes() and mode & self._forbidden(directory, status):
            raise Untrusted(
                directory,
                f"mode {mode:04o}: others can write in it",
                f"chmod {self.trust.directory_mode:o} it",
            )

    def _forbidden(self, directory: Path, status: os.stat_result) -> int:
        """The bits that would let others put there, by mv, what belongs to a user who is believed."""
        keeps_own = directory == self.top and bool(status.st_mode & stat.S_ISVTX)
        is_of_one = (
            directory == self.top and status.st_gid == status.st_uid
        )  # a group that each user has for himself
        by_group = 0 if keeps_own or is_of_one or self.trust.policy == "group" else stat.S_IWGRP
        return by_group | (0 if keeps_own else stat.S_IWOTH)

    def _check_owner(self, path: Path, status: os.stat_result) -> None:
        if self.trust.owners is not None and _has_modes() and status.st_uid not in self.trust.owners:
            advice = (
                "use a directory of your own, or name in CACHEGRAPH_TRUST whose entries may run code here:"
                f" published:{status.st_uid}, or group: and the keys of several users"
            )
            raise Untrusted(path, f"uid {status.st_uid} as its owner, and trust is {self.trust}", advice)


def link_found(path: Path) -> Untrusted:
    """Return the error for a link where nothing but a file or a directory is believed."""
    return Untrusted(path, "a symbolic link", "remove it: only the cache directory itself may be one")


def _refuse_link(path: Path, status: os.stat_result) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise link_found(path)


def _has_modes() -> bool:
    return hasattr(os, "geteuid")


def _own_user() -> int:
    return os.geteuid() if _has_modes() else _ROOT
