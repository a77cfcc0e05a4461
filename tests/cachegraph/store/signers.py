"""Keys of the users of a test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from cachegraph.store.signing import make_own_key, own_public_key

T = TypeVar("T")


def signing_key() -> bytes:
    """Return the public key of this test's user, who gets a key if there is none."""
    return own_public_key() or make_own_key()


class User:
    """A user with a configuration directory, and so a key, of his own."""

    def __init__(self, directory: Path, patch: pytest.MonkeyPatch) -> None:
        self._directory = directory
        self._patch = patch
        self.key = self.do(signing_key)

    def do(self, work: Callable[[], T]) -> T:
        """Return the result of `work` as this user."""
        with self._patch.context() as patch:
            patch.setenv("XDG_CONFIG_HOME", str(self._directory))
            return work()
