"""Processes on a terminal: what appears on it, without a screen."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import termios
import threading
from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Ran(NamedTuple):
    """What a process did: its exit code, what it wrote to the terminal, and to standard output if that is a
    pipe."""

    code: int
    shown: bytes
    output: bytes


def run_on_terminal(
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    only_errors: bool = False,
    columns: int = 80,
    seconds: float = 120,
) -> Ran:
    """Run `command` in a session whose terminal is its input, output and errors, and return what it did.

    With `only_errors`, its input is empty and its output a pipe.
    """
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    shown: list[bytes] = []
    reader = threading.Thread(target=_read, args=(ours, shown))
    reader.start()
    try:
        done = subprocess.run(
            list(command),
            stdin=subprocess.DEVNULL if only_errors else its,
            stdout=subprocess.PIPE if only_errors else its,
            stderr=its,
            env={"TERM": "xterm", **environment},
            start_new_session=True,
            timeout=seconds,
            check=False,
        )
    finally:
        os.close(its)
        reader.join(seconds)
        os.close(ours)
    return Ran(done.returncode, b"".join(shown), done.stdout or b"")


def _read(descriptor: int, shown: list[bytes]) -> None:
    while True:
        try:
            part = os.read(descriptor, 65536)
        except OSError:  # EIO: all who held the terminal have closed it
            return
        if not part:
            return
        shown.append(part)
