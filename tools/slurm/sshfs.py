"""sshfs over an ssh server of its own on loopback: what a mount of another machine's directory is
like, without one.

Debian's packages sshfs, openssh-server and fuse3, /dev/fuse and root are all it needs;
`unavailable` says what is missing.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

PROGRAMS = ("sshfs", "sshd", "ssh-keygen", "fusermount3")
PACKAGES = "sshfs openssh-server fuse3"
_START_SECONDS = 10.0


def unavailable() -> str:
    """Return why nothing can be mounted here, empty if something can."""
    missing = [program for program in PROGRAMS if _found(program) is None]
    if missing:
        return f"{', '.join(missing)} not found: apt-get install --no-install-recommends {PACKAGES}"
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError as error:
        return f"no file system may be mounted here: {error}"
    if os.geteuid() != 0:
        return "only root can start an ssh server that makes sessions"
    return ""


class MountError(Exception):
    """An error of sshfs: it could not mount a directory, for the reason given."""


class Server:
    """An ssh server with keys of its own; use `serving`."""

    def __init__(self, keys: Path, port: int) -> None:
        self._keys = keys
        self._port = port

    @contextmanager
    def mounted(self, directory: Path, *mounts: Path) -> Iterator[None]:
        """Show `directory` at each of `mounts`, which are made; each remembers on its own what it has seen.

        Raises MountError where sshfs refuses.
        """
        identity = f"port={self._port},IdentityFile={self._keys / 'user'},StrictHostKeyChecking=no"
        options = f"{identity},UserKnownHostsFile=/dev/null,idmap=user"
        with ExitStack() as stack:
            for mount in mounts:
                mount.mkdir(mode=0o700, exist_ok=True)
                command = ["sshfs", "-o", options, f"root@127.0.0.1:{directory}", str(mount)]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                if done.returncode != 0:
                    raise MountError(done.stderr.strip())
                stack.callback(subprocess.run, ["fusermount3", "-u", "-z", str(mount)], check=True)
            yield


@contextmanager
def serving() -> Iterator[Server]:
    """Run an ssh server on loopback that lets root in with a key made for it."""
    with tempfile.TemporaryDirectory(prefix="sshd-") as name, ExitStack() as stack:
        keys = Path(name)
        for key in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(keys / key)], check=True)
        Path("/run/sshd").mkdir(exist_ok=True)  # where it confines those who are not yet let in
        port = _free_port()
        process = subprocess.Popen(_command(keys, port), stderr=subprocess.DEVNULL)
        stack.callback(process.wait)
        stack.callback(process.terminate)
        _await(port)
        yield Server(keys, port)


def _command(keys: Path, port: int) -> list[str]:
    settings = {
        "ListenAddress": "127.0.0.1",
        "AuthorizedKeysFile": keys / "user.pub",
        "StrictModes": "no",
        "UsePAM": "no",
        "PermitRootLogin": "yes",
        "PidFile": "none",
        "Subsystem": "sftp internal-sftp",
    }
    options = [f"-o{name}={value}" for name, value in settings.items()]
    return [
        str(_found("sshd")),
        "-D",
        "-e",
        "-f",
        "/dev/null",
        "-p",
        str(port),
        "-h",
        str(keys / "host"),
        *options,
    ]


def _found(program: str) -> str | None:
    return shutil.which(program, path=os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin")))


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def _await(port: int) -> None:
    end = time.monotonic() + _START_SECONDS
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
