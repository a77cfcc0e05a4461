"""Reading revocation lists, before an entry of their signers is believed.

The list of every trusted signer is read where entries are read, at most once an hour: by this
process, and by this node if it can write its record (node.py). What any of these signers revoked is
refused everywhere, and stays refused (kept.py): a missing list takes nothing back, nor does one of a
lower number, and what that revokes counts as well. While the list of a signer at a place cannot be
read, or is damaged, the entries of that signer there are refused. Without a configuration directory,
each process reads for itself and forgets when it ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from cachegraph.errors import NoDirectoryError
from cachegraph.forking import momentary_lock
from cachegraph.logger import logger
from cachegraph.named_tuples import NamedTuple
from cachegraph.store.paths import revocation_place
from cachegraph.store.revocation.kept import keep, kept_directory, kept_lists, kept_name, kept_names
from cachegraph.store.revocation.list_file import (
    LARGEST_LIST,
    RevocationFault,
    RevocationList,
    Revoked,
    read_list,
)
from cachegraph.store.revocation.node import READ_SECONDS, NodeRevocations
from cachegraph.store.signing import public_key_text

RETRY_SECONDS = 60.0
"""After a failure, the list is read again by the first look-up after this time."""

_REPLAYED = "somebody replaced it by an older one. What was revoked stays revoked."
_BEGUN_ANEW = (
    "its signer lost the list, or somebody else has the key. It revokes more than the lists that were seen, "
    "and what any of them revokes counts."
)

_BUNDLE = "bundle:"
"""The location of a bundle starts so. It may be exchanged and costs no request: every process reads it."""

Read = Callable[[str, int], bytes]
"""Reads a file (its place, the most bytes). Raises FileNotFoundError, OSError."""


class _Seen(NamedTuple):
    """The findings at one place: until when that counts, and the signers whose list has a fault."""

    until: float
    faults: dict[bytes, str]


class Revocations:
    """The revocations of `signers`, as this process knows it. Creating it reads nothing.

    With `node`, the lists are read once for all processes of a node, and its copies are swept. Without
    `keeps`, nothing is written. One thread reads lists at a time; those that need them wait. Whoever finds
    a place that was read takes no lock.
    """

    def __init__(
        self, signers: Collection[bytes], node: NodeRevocations | None = None, keeps: bool = True
    ) -> None:
        self._signers = tuple(sorted(signers))
        self._node = node
        self._keeps = keeps
        self._lock = momentary_lock()
        self._seen: dict[str, _Seen] = {}
        self._lists: dict[str, RevocationList] = {}
        self._kept_faults: dict[bytes, str] = {}
        self.revoked = Revoked()

    def fault(self, signer: bytes, location: str, read: Read) -> str:
        """Return why no entry of `signer` at `location` is believed for now; empty if its list was read.

        `read` reads the files there. Then `revoked` has what this process should not believe.
        """
        seen = self._seen_lately(location)
        if seen is None:
            with self._lock:  # another thread may have read them meanwhile
                seen = self._seen_lately(location) or self._refresh(location, read)
        return seen.faults.get(signer) or self._kept_faults.get(signer, "")

    def _seen_lately(self, location: str) -> _Seen | None:
        seen = self._seen.get(location)
        return seen if seen is not None and time.monotonic() < seen.until else None

    def refresh(self, location: str, read: Read) -> None:
        """Read the lists at `location` that are due, and those that other processes kept. Never raises."""
        with self._lock:
            self._refresh(location, read)

    def _refresh(self, location: str, read: Read) -> _Seen:
        """Do what `refresh` does, in the one thread that has the lock; what was seen is written last."""
        is_due = not self._load_kept() or location.startswith(_BUNDLE)
        lately = frozenset() if is_due else self._read_lately()
        faults: dict[bytes, str] = {}
        done = []
        for signer in self._signers:
            place = _place(location, signer)
            if place in lately:
                continue
            try:
                if self._ask(signer, location, read):
                    done.append(place)
            except Exception as error:  # a damaged file, or lack of memory, can raise anything
                faults[signer] = _described(signer, location, error)
        if done and self._node is not None:
            self._node.note(done)
        self._take_over()
        pause = RETRY_SECONDS if faults else READ_SECONDS
        seen = self._seen[location] = _Seen(time.monotonic() + pause, faults)
        return seen

    def settle(self, location: str, read: Read) -> None:
        """Do what is due when a process ends: read lists, and sweep copies for new ones. Never raises.

        Costs little if nothing is due: no list is parsed.
        """
        if self._node is None:
            return
        with self._lock:
            names = _kept_names(self._signers)
            is_new = bool(self._seen) and not names <= self._lists.keys()
            places = {_place(location, signer) for signer in self._signers}
            if is_new or not self._node.has_swept(names) or not places <= self._read_lately():
                self._refresh(location, read)
            if is_new:  # this process may have copied what another one has just swept
                self._node.sweep(self._lists, self.revoked)

    def _read_lately(self) -> frozenset[str]:
        return frozenset() if self._node is None else self._node.read_lately()

    def _ask(self, signer: bytes, location: str, read: Read) -> bool:
        """Read one list; return True if later processes need not read it. Raises RevocationFault, OSError."""
        try:
            content = read(revocation_place(signer), LARGEST_LIST)
        except FileNotFoundError:
            return True
        found = read_list(content, signer)
        self._warn_of_older(found, location)
        self._lists[kept_name(content, found)] = found
        return self._keeps and _is_kept(content, found)

    def _warn_of_older(self, found: RevocationList, location: str) -> None:
        others = [other for other in self._lists.values() if other.signer == found.signer]
        newest = max((other.number for other in others), default=0)
        if found.number >= newest:
            return
        is_replay = found.revoked.is_within(Revoked.union(other.revoked for other in others))
        logger("cachegraph").warning(
            "the revocation list of %s in %s has number %d, and number %d was seen: %s",
            public_key_text(found.signer),
            location,
            found.number,
            newest,
            _REPLAYED if is_replay else _BEGUN_ANEW,
        )

    def _load_kept(self) -> bool:
        """Read the lists that any process kept; return False if that is not possible."""
        try:
            kept = kept_lists(self._signers)
        except (OSError, NoDirectoryError):
            return False
        faults = {name: found for name, found in kept.items() if not isinstance(found, RevocationList)}
        self._kept_faults = {bytes.fromhex(name[:64]): str(found) for name, found in faults.items()}
        self._lists.update({name: found for name, found in kept.items() if isinstance(found, RevocationList)})
        return True

    def _take_over(self) -> None:
        """Revoke what the lists say, and sweep the copies of this node for those that are new to it."""
        self.revoked = Revoked.union((self.revoked, *(found.revoked for found in self._lists.values())))
        if self._node is not None and self._lists and not self._node.has_swept(self._lists):
            self._node.sweep(self._lists, self.revoked)


def _is_kept(content: bytes, found: RevocationList) -> bool:
    try:
        keep(content, found)
    except (OSError, NoDirectoryError):
        return False
    return True


def _place(location: str, signer: bytes) -> str:
    """Return the name of a list at a location in the record of a node, for this user's kept lists."""
    try:
        kept = str(kept_directory())
    except NoDirectoryError:
        kept = ""
    return f"{location}\n{signer.hex()}\n{kept}"


def _kept_names(signers: Collection[bytes]) -> frozenset[str]:
    try:
        return frozenset(kept_names(signers))
    except (OSError, NoDirectoryError):
        return frozenset()


def _described(signer: bytes, location: str, error: Exception) -> str:
    what = str(error) if isinstance(error, RevocationFault) else f"{type(error).__name__}: {error}"
    whose = f"an entry signed by {public_key_text(signer)}"
    return f"{whose}, whose revocation list in {location} cannot be read ({what})"
