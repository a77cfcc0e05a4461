"""Kinds of file systems, by the type that statfs returns on Linux, and by what psutil lists elsewhere;
trying locks proves nothing.

SQLite in WAL mode is correct only if all its users share one kernel. A type that is not known to be
local is treated as a network file system.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

from cachegraph.named_tuples import NamedTuple

_LOCAL = {
    0xEF53: "ext4",
    0x58465342: "xfs",
    0x9123683E: "btrfs",
    0x01021994: "tmpfs",
    0x858458F6: "ramfs",
    0x794C7630: "overlayfs",
    0x2FC12FC1: "zfs",
    0xF2F52010: "f2fs",
    0xCA451A4E: "bcachefs",
    0x3153464A: "jfs",
    0x52654973: "reiserfs",
    0xF15F: "ecryptfs",
    0x4D44: "vfat",
    0x2011BAB0: "exfat",
    0x7366746E: "ntfs3",
    0x73717368: "squashfs",
    0xE0F5E1E2: "erofs",
    0x9FA0: "proc",
    0x62656572: "sysfs",
}
_NETWORK = {
    0x6969: "nfs",
    0x0BD00BD0: "lustre",
    0x47504653: "gpfs",
    0x19830326: "beegfs",
    0x00C36400: "ceph",
    0xFF534D42: "cifs",
    0xFE534D42: "smb2",
    0x517B: "smb",
    0x5346414F: "afs",
    0x65735546: "fuse",
    0x01021997: "9p",
    0xAAD7AAEA: "panfs",
    0x20030528: "orangefs",
    0x01161970: "gfs2",
    0x7461636F: "ocfs2",
    0x73757245: "coda",
}
_STATFS_SIZE = 256  # bytes; the structure has at most 120, and its first word is the type


_CHANGE_TIMES = frozenset({"ext4", "xfs", "btrfs", "tmpfs", "overlayfs", "zfs", "f2fs", "bcachefs", "apfs"})


class FileSystem(NamedTuple):
    """A kind of file system; `local` if it is known to belong to this machine alone."""

    name: str
    local: bool

    @property
    def keeps_change_times(self) -> bool:
        """Return True if every change of a file gives it a time of change that cannot be set, and is seen at
        once: not through the caches of a network, and not on an image, where it is that of modification."""
        return self.local and self.name in _CHANGE_TIMES


def file_system(path: Path) -> FileSystem:
    """Return the kind of file system of `path`, or of its nearest existing parent. Never raises."""
    try:
        if sys.platform != "linux":
            return _listed(_existing(path))
        number = _statfs_type(_existing(path))
    except OSError as error:
        return FileSystem(f"unknown ({error})", False)
    if number in _LOCAL:
        return FileSystem(_LOCAL[number], True)
    return FileSystem(_NETWORK.get(number, f"type {number:#x}"), False)


def _existing(path: Path) -> Path:
    """Return the nearest existing one of `path` and its parents, with links resolved."""
    path = Path(os.path.realpath(path))
    while not os.path.exists(path) and path != path.parent:
        path = path.parent
    return path


def _listed(path: Path) -> FileSystem:
    """Return the local file system that holds `path`, or an unknown one. Raises OSError.

    Of a mount only the option `local` is believed (macOS, BSD): others are not even looked at, since a file
    system whose server is away would block. Links between volumes of macOS make prefixes of paths
    meaningless, so devices are compared.
    """
    try:
        from psutil import disk_partitions
    except ImportError:
        return FileSystem("unknown (psutil is not installed)", False)
    device = os.stat(path).st_dev
    for mount in disk_partitions(all=True):
        with suppress(OSError):
            if "local" in mount.opts.split(",") and os.stat(mount.mountpoint).st_dev == device:
                return FileSystem(mount.fstype, True)
    return FileSystem("unknown (no local one)", False)


def _statfs_type(path: Path) -> int:
    import ctypes

    buffer = ctypes.create_string_buffer(_STATFS_SIZE)
    library = ctypes.CDLL(None, use_errno=True)
    if library.statfs(os.fsencode(path), buffer) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), os.fspath(path))
    word = ctypes.sizeof(ctypes.c_long)
    return int.from_bytes(buffer.raw[:word], sys.byteorder) & 0xFFFFFFFF
