"""The revocation lists that this user has seen, kept so that nobody can take one back.

    <configuration directory>/revocations/<signer>.<number>.<digest>       a list file as it was read

What one of these lists revokes stays revoked, whatever a server says later. Numbers do not decide: a
signer who lost his list counts from 1 again, and two nodes may write lists of one number, which is why
the digest of the file is in its name. So a list of a lower number is kept too, unless a later one
holds all that it holds. Files are created and removed, never changed, so no lock is needed; one is
removed when a later list of its signer holds all that it held.

Version history: none yet.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from cachegraph.fingerprint.primitives import digest
from cachegraph.store.configuration import (
    UnusableFile,
    configuration_path,
    create_configuration,
    read_configuration,
)
from cachegraph.store.paths import is_key, is_signer
from cachegraph.store.revocation.list_file import LARGEST_LIST, RevocationFault, RevocationList, read_list

_TRIES = 5
_ADVICE = "remove it, if you can still read the list where it was published"


def kept_directory() -> Path:
    """Return the directory of the lists, present or not. Raises NoDirectoryError."""
    return configuration_path("revocations")


def kept_lists(signers: Iterable[bytes]) -> dict[str, RevocationList | UnusableFile]:
    """Return the kept lists of `signers` by their file names, or why one cannot be read.

    Raises NoDirectoryError, and OSError if the directory cannot be read.
    """
    wanted, directory = tuple(signers), kept_directory()
    for _ in range(_TRIES):
        found = {name: _kept(directory / name) for name in kept_names(wanted)}
        kept = {name: one for name, one in found.items() if one is not None}
        if len(kept) == len(found):
            return kept
    raise OSError(errno.EAGAIN, "lists are replaced again and again", os.fspath(directory))


def usable_lists(signers: Iterable[bytes]) -> dict[str, RevocationList]:
    """Return the kept lists of `signers` by their file names.

    Raises UnusableFile, NoDirectoryError, OSError.
    """
    lists = {}
    for name, found in kept_lists(signers).items():
        if isinstance(found, UnusableFile):
            raise found
        lists[name] = found
    return lists


def newest_files(lists: Mapping[str, RevocationList]) -> dict[bytes, bytes]:
    """Return the file of the kept list with the highest number of each signer who has one in `lists`.

    Raises UnusableFile, NoDirectoryError, OSError.
    """
    newest: dict[bytes, tuple[int, str]] = {}
    for name, found in lists.items():
        newest[found.signer] = max(newest.get(found.signer, (0, "")), (found.number, name))
    directory = kept_directory()
    return {
        signer: read_configuration(directory / name, LARGEST_LIST) for signer, (_, name) in newest.items()
    }


def kept_name(content: bytes, seen: RevocationList) -> str:
    """Return the name under which the file `content` of a list is kept."""
    return f"{seen.signer.hex()}.{seen.number}.{digest(content).hex()}"


def keep(content: bytes, seen: RevocationList) -> None:
    """Keep the file `content` of a list, and remove those that it replaces.

    Does nothing if a later list holds all of it. Raises NoDirectoryError, OSError.
    """
    if any(_is_replaced(seen, later) for later in _sound_lists(seen.signer).values()):
        return
    directory = kept_directory()
    create_configuration(directory / kept_name(content, seen), content)
    for earlier, found in _sound_lists(seen.signer).items():
        if _is_replaced(found, seen):
            with suppress(OSError):  # another process was first, or it stays
                os.unlink(directory / earlier)


def _sound_lists(signer: bytes) -> dict[str, RevocationList]:
    kept = kept_lists((signer,))
    return {name: found for name, found in kept.items() if isinstance(found, RevocationList)}


def _is_replaced(earlier: RevocationList, later: RevocationList) -> bool:
    return earlier.number < later.number and earlier.revoked.is_within(later.revoked)


def kept_names(signers: Iterable[bytes]) -> list[str]:
    """Return the names of the kept lists of `signers`. Raises NoDirectoryError, OSError."""
    wanted = {signer.hex() for signer in signers}
    try:
        names = sorted(os.listdir(kept_directory()))
    except FileNotFoundError:
        return []
    return [name for name in names if name[:64] in wanted and _is_list(name)]


def _is_list(name: str) -> bool:
    """Return True for the name of a kept list, and not of one that is being written."""
    signer, _, rest = name.partition(".")
    number, _, digest_hex = rest.partition(".")
    return is_signer(signer) and number.isdecimal() and is_key(digest_hex)


def _kept(path: Path) -> RevocationList | UnusableFile | None:
    """Return the list in a file, or why it cannot be read; None if a later one has just replaced it."""
    try:
        return read_list(read_configuration(path, LARGEST_LIST), bytes.fromhex(path.name[:64]))
    except FileNotFoundError:
        return None
    except UnusableFile as error:
        return error
    except (OSError, RevocationFault) as error:
        return UnusableFile(path, f"a list that cannot be read ({error})", _ADVICE)
