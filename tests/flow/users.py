"""Users with numbers of their own: each in a forked process that has given up root."""

from __future__ import annotations

import os
import pickle
import traceback
from collections.abc import Callable
from typing import Any

ALICE, BOB, CAROL, PROJECT = 54321, 54322, 54323, 54000
"""Three users and a group, none of which is in any list."""


def as_user(user: int, work: Callable[[], Any]) -> Any:
    """What `work` gives in a process of that user, with a umask that would close everything to others."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            os.setgroups([])
            os.setgid(PROJECT)
            os.setuid(user)
            os.umask(0o077)
            answer = ("fine", work())
        except BaseException:
            answer = ("failed", traceback.format_exc())
        with os.fdopen(writing, "wb") as pipe:
            pickle.dump(answer, pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        outcome, answer = pickle.load(pipe)
    os.waitpid(child, 0)
    assert outcome == "fine", answer
    return answer
