"""Trust: the users whose files are read.

Whoever can write an entry runs code in every reader, so trust is checked first.

CACHEGRAPH_TRUST    who may write                       directories, files    (whatever the umask is)
private             this user                           0700, 0600
published[:UID]     that user, or this one              0755, 0644
group:KEY,KEY..     the holders of one of these keys    2770, 0640
signed:KEY,KEY..    they, and the holder of this user's  0755, 0644
signed              those of the user's trust list       0755, 0644          (trusted_signers.py)

private, published: nobody else can write to the directories, and the owner of a file decides. Root
is trusted too: root can run code without a cache. Owner and mode are read from the open descriptor;
links are not followed; nobody but the owner may be able to write the file. Every directory from the
cache directory down must belong to a trusted user, be no link, and not be writable for others. The
cache directory itself may be writable for its group if it is sticky, or if the group has the number
of its owner, which by convention is a private group.

group: any member of the group can move a file of one user, or a directory, to the place of another
entry, so owner and mode do not tell who published it. Therefore each entry is signed together with
its place (signing.py), and unsigned entries and other signers are refused; blobs are named by their
content. The group may write to the directories.

signed: the same, for stores whose owners and modes say nothing: servers, copies. What
CACHEGRAPH_REMOTE names is always read so (`Trust.on_servers`). The cache directory itself stays
private: the keys are those of whom to believe elsewhere.

Directories above the cache directory are not checked: whoever can rename it can replace it by
another directory of the same owner (docs/hpc.md). A user is a number, and need not be known to the
system.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from cachegraph.errors import NoDirectoryError
from cachegraph.named_tuples import NamedTuple
from cachegraph.store.paths import make_directory

_ROOT = 0
_SIGNED = ("group", "signed")
_MODES = {
    "private": (0o700, 0o600),
    "published": (0o755, 0o644),
    "group": (0o2770, 0o640),
    "signed": (0o755, 0o644),
}


class Untrusted(OSError):
    """An error for an untrusted file or directory: what was `found`, and `advice` on it."""

    def __init__(self, path: str | os.PathLike[str], found: str, advice: str) -> None:
        super().__init__(errno.EPERM, found, os.fspath(path))
        self.path = path
        self.found = found
        self.advice = advice

    def __str__(self) -> str:
        return f"not using {os.fspath(self.path)}: found {self.found}; {self.advice}"


class Trust(NamedTuple):
    """A policy: trusted `owners` of files, or trusted `signers` of entries (the other is None).

    New files and directories get its modes; `may_write` is True if this user may write.
    """

    policy: str
    owners: frozenset[int] | None
    signers: frozenset[bytes] | None
    directory_mode: int
    file_mode: int
    may_write: bool

    @classmethod
    def of(cls, setting: str) -> Trust:
        """Return the policy of a valid value of CACHEGRAPH_TRUST."""
        policy, _, listed = setting.partition(":")
        if policy in _SIGNED:
            return cls._of_signers(policy, listed)
        writer = int(listed) if listed else os.geteuid()
        owners = frozenset((writer, os.geteuid(), _ROOT))
        return cls(policy, owners, None, *_MODES[policy], writer == os.geteuid())

    @classmethod
    def on_servers(cls, setting: str) -> Trust:
        """Return the policy for servers, where a signature alone tells who wrote an entry.

        The keys that a valid value of CACHEGRAPH_TRUST names are trusted, or else this user's own.
        """
        policy, _, listed = setting.partition(":")
        if policy in _SIGNED:
            return cls._of_signers(policy, listed)
        own = _own_signer()
        return cls("signed", None, own, *_MODES["signed"], bool(own))

    @classmethod
    def _of_signers(cls, policy: str, listed: str) -> Trust:
        from cachegraph.store.signing import public_key  # no other policy needs it

        own = _own_signer()
        signers = frozenset(map(public_key, listed.split(","))) if listed else _trusted_signers()
        trusted = signers | own if policy == "signed" else signers
        return cls(policy, None, trusted, *_MODES[policy], bool(own & trusted))

    @property
    def shared(self) -> bool:
        """Return True if several users use the same directory."""
        return self.policy != "private"

    def __str__(self) -> str:
        if self.owners is not None:
            return f"{self.policy}, files of uid {', '.join(map(str, sorted(self.owners)))}"
        from cachegraph.store.signing import public_key_text

        signers = sorted(map(public_key_text, self.signers or ()))
        return f"{self.policy}, entries signed by {', '.join(signers) or 'nobody'}"


def _own_signer() -> frozenset[bytes]:
    """Return this user's key; none without one: this user only reads then (`cachegraph doctor` says why)."""
    from cachegraph.store.signing import own_public_key

    try:
        own = own_public_key()
    except (OSError, NoDirectoryError):
        own = None
    return frozenset() if own is None else frozenset((own,))


def _trusted_signers() -> frozenset[bytes]:
    """Return the keys of the trust list; none if it cannot be used, which `cachegraph doctor` explains."""
    from cachegraph.store.trusted_signers import trusted_signers

    try:
        return frozenset(signer.key for signer in trusted_signers())
    except (OSError, NoDirectoryError):
        return frozenset()


PRIVATE = "private"


class Guard:
    """The check of files below `top` against `trust`; it remembers the directories that passed."""

    def __init__(self, top: Path, trust: Trust) -> None:
        self.top = top
        self.trust = trust
        self._sound: set[Path] = set()

    def check_file(self, path: Path, status: os.stat_result) -> None:
        """Raise Untrusted unless the open file at `path` and all directories above are trusted.

        `status` is that of the open file. Raises OSError if a directory cannot be checked.
        """
        self.check_directory(path.parent)
        self._check_owner(path, status)
        if self.trust.policy != "signed" and status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            found = f"mode {stat.S_IMODE(status.st_mode):04o}: others can write it"
            raise Untrusted(path, found, f"chmod {self.trust.file_mode:o} it")

    def check_link(self, path: Path) -> None:
        """Raise what `check_file` raises, and Untrusted for a link; SQLite opens the file by its name."""
        status = os.lstat(path)
        _refuse_link(path, status)
        self.check_file(path, status)

    def check_directory(self, directory: Path) -> None:
        """Raise Untrusted, or OSError, unless `directory` and those above it up to the top are trusted."""
        if directory in self._sound:
            return
        if directory != self.top:
            self.check_directory(directory.parent)
        self._check_directory(directory, os.stat(directory) if directory == self.top else os.lstat(directory))
        self._sound.add(directory)

    def make_directory(self, directory: Path) -> None:
        """Create `directory` and its parents with the mode of the policy. Raises OSError and Untrusted."""
        make_directory(directory, self.trust.directory_mode)
        self.check_directory(directory)

    def _check_directory(self, directory: Path, status: os.stat_result) -> None:
        _refuse_link(directory, status)
        self._check_owner(directory, status)
        mode = stat.S_IMODE(status.st_mode)
        if mode & self._forbidden(directory, status):
            found = f"mode {mode:04o}: others can write in it"
            raise Untrusted(directory, found, f"chmod {self.trust.directory_mode:o} it")

    def _forbidden(self, directory: Path, status: os.stat_result) -> int:
        """Return the mode bits that would let others move a trusted user's files into the directory."""
        if self.trust.policy == "signed":
            return 0
        keeps_own = directory == self.top and bool(status.st_mode & stat.S_ISVTX)
        has_private_group = directory == self.top and status.st_gid == status.st_uid
        by_group = 0 if keeps_own or has_private_group or self.trust.policy == "group" else stat.S_IWGRP
        return by_group | (0 if keeps_own else stat.S_IWOTH)

    def _check_owner(self, path: Path, status: os.stat_result) -> None:
        if self.trust.owners is not None and status.st_uid not in self.trust.owners:
            advice = (
                "use a directory of your own, or name in CACHEGRAPH_TRUST whose entries may run code here:"
                f" published:{status.st_uid}, or group: and the keys of several users"
            )
            raise Untrusted(path, f"uid {status.st_uid} as its owner, and trust is {self.trust}", advice)


def link_found(path: Path) -> Untrusted:
    """Return the error for a link in place of a file or a directory."""
    return Untrusted(path, "a symbolic link", "remove it: only the cache directory itself may be one")


def _refuse_link(path: Path, status: os.stat_result) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise link_found(path)
