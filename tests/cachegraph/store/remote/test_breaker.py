"""A server that failed is left alone for a while, longer from failure to failure."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from cachegraph.store.files import Oversized
from cachegraph.store.remote.breaker import FIRST_PAUSE, LONGEST_PAUSE, Breaker, LeftAlone
from cachegraph.store.remote.files import RemoteError, RemoteFile, WriteRefused


class Scripted:
    """Files whose reads do what the test says, and are counted."""

    location = "scripted://server"
    may_write = True

    def __init__(self) -> None:
        self.asked = 0
        self.answer: Callable[[], bytes] = lambda: b"content"

    def read(self, name: str, most: int) -> bytes:
        self.asked += 1
        return self.answer()

    def write(self, name: str, content: bytes) -> None:
        self.answer()

    def create(self, name: str, content: bytes) -> bool:
        return bool(self.answer())

    remove = read

    def listed(self, prefix: str) -> Iterator[RemoteFile]:
        raise RemoteError(self.location, "no listing")

    def close(self) -> None:
        pass


def failing(error: Exception) -> Callable[[], bytes]:
    def fail() -> bytes:
        raise error

    return fail


@pytest.fixture
def now() -> list[float]:
    return [1000.0]


def test_after_a_failure_nobody_asks_until_the_pause_is_over(now: list[float]) -> None:
    files = Scripted()
    breaker = Breaker(files, lambda: now[0])  # type: ignore[arg-type]
    pause = FIRST_PAUSE
    while pause < LONGEST_PAUSE * 2:
        files.answer = failing(RemoteError(files.location, "it is full"))
        with pytest.raises(RemoteError, match="it is full"):
            breaker.read("name", 1)
        asked = files.asked
        now[0] += min(pause, LONGEST_PAUSE) - 1
        with pytest.raises(LeftAlone, match=r"left alone for 1 s more, because it failed \(it is full\)"):
            breaker.read("name", 1)
        assert files.asked == asked
        now[0] += 2
        pause *= 2
    files.answer = lambda: b"content"
    assert breaker.read("name", 1) == b"content"


@pytest.mark.parametrize("answer", [FileNotFoundError(), Oversized("name", 2, 1)])
def test_a_missing_or_long_file_is_an_answer(answer: OSError, now: list[float]) -> None:
    files = Scripted()
    breaker = Breaker(files, lambda: now[0])  # type: ignore[arg-type]
    files.answer = failing(answer)
    for _ in range(3):
        with pytest.raises(type(answer)):
            breaker.read("name", 1)
    assert files.asked == 3


def test_a_failed_listing_counts_as_well(now: list[float]) -> None:
    files = Scripted()
    breaker = Breaker(files, lambda: now[0])  # type: ignore[arg-type]
    with pytest.raises(RemoteError):
        list(breaker.listed(""))
    with pytest.raises(LeftAlone):
        breaker.read("name", 1)
    assert files.asked == 0


def test_a_server_that_refuses_to_write_is_read_and_not_written_until_the_pause_is_over(
    now: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    files = Scripted()
    breaker = Breaker(files, lambda: now[0])  # type: ignore[arg-type]
    for change in (lambda: breaker.write("name", b""), lambda: breaker.create("name", b"")):
        files.answer = failing(WriteRefused(files.location, "it is full"))
        with pytest.raises(WriteRefused):
            change()
        files.answer = lambda: b"content"
        assert breaker.read("name", 1) == b"content"
        with pytest.raises(LeftAlone, match=r"because it refused to write \(it is full\)"):
            change()
        now[0] += LONGEST_PAUSE
        change()
    said = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert said == ["scripted://server refused to write (it is full); it is only read for 30 s. Logged once."]


def test_a_server_that_refuses_to_be_read_is_left_alone(now: list[float]) -> None:
    files = Scripted()
    breaker = Breaker(files, lambda: now[0])  # type: ignore[arg-type]
    files.answer = failing(WriteRefused(files.location, "not yours"))
    with pytest.raises(WriteRefused):
        breaker.read("name", 1)
    with pytest.raises(LeftAlone, match="because it failed"):
        breaker.read("name", 1)
