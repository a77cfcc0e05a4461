"""Processes of four nodes that miss one key and share only a server, while builder or server is ended.

    python tools/stress/remotes.py [--processes N] [--seconds S] [--only TEXT]

The nodes have host names and local directories of their own. For each kind of server, real and on loopback:
one process builds the key; if the builder is killed, two do, also if that happens at any step of its put;
if the server is killed or paused at any step of the put, everybody else builds for itself. Always every
process has the right bytes, none has an error, and none waits longer than LONGEST seconds.

Prints a line for each case; exit code 1 if one has a fault. Without `--seconds`, all cases run;
with it, cases in random order until the time is up.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import select
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from cachegraph import processes  # noqa: E402
from cachegraph.cache import Artifact, Cache  # noqa: E402
from cachegraph.key import CacheKey  # noqa: E402
from cachegraph.logger import logger  # noqa: E402
from cachegraph.named_tuples import NamedTuple  # noqa: E402
from cachegraph.remote_url import RemoteURL  # noqa: E402
from cachegraph.settings import Settings  # noqa: E402
from cachegraph.store.claims import lease  # noqa: E402
from cachegraph.store.remote.files import RemoteFile, RemoteFiles  # noqa: E402
from cachegraph.store.signing import make_own_key  # noqa: E402
from tests.cachegraph.store.remote.servers import SERVERS, Server, missing  # noqa: E402

KINDS = ("postgresql", "redis", "s3", "postgresql+s3")
NODES = 4
PROCESSES = 8
LONGEST = 90.0
TTL = 4.0
"""Seconds until a lease whose holder is silent counts as dead; 10 outside of this program."""
BUILD_SECONDS = 0.5
STEPS = 5
"""Calls of the builder to the server after its build: those of the put, and those that release the lease."""
KEY = CacheKey.build("kernel", {"scheme": b"stress", "graph": b"one key"})
ARTIFACT = Artifact(b"payload" * 100, {"code": bytes(range(256)) * 400}, {"compile": BUILD_SECONDS}, "code")


class Ending(NamedTuple):
    """A `kind` of server, and who has which `end` (killed, paused), before call `step` after the build.

    The victim is the builder or the server, or empty: then nobody is ended. Without a step (-1), the builder
    is killed while it builds.
    """

    kind: str
    victim: str = ""
    end: str = ""
    step: int = -1

    def __str__(self) -> str:
        where = "" if not self.victim else "in the build" if self.step < 0 else f"before call {self.step + 1}"
        return " ".join(filter(None, (f"{self.kind:14}", self.victim, self.end, where)))


class Outcome(NamedTuple):
    """A case's number of builds, the longest time of a process in seconds, and its fault or ""."""

    builds: int
    seconds: float
    fault: str


def cases() -> list[Ending]:
    """Return every case of every kind of server."""
    found = []
    for kind in KINDS:
        found += [Ending(kind), Ending(kind, "builder", "killed")]
        for step in range(STEPS):
            found += [Ending(kind, "builder", "killed", step)]
            found += [Ending(kind, "server", end, step) for end in ("killed", "paused")]
    return found


def main() -> int:
    """Run the cases, print what came of each, and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--processes", type=int, default=PROCESSES, help=f"default: {PROCESSES}")
    parser.add_argument("--seconds", type=float, help="cases in random order until then, at least one")
    parser.add_argument("--only", default="", help="only cases whose line contains this")
    arguments = parser.parse_args()
    named = [case for case in cases() if arguments.only in str(case)]
    if not named:
        parser.error(
            f"no case's line contains {arguments.only!r}; the kinds of servers are {', '.join(KINDS)}"
        )
    chosen = [case for case in named if not _lacking(case)]
    if arguments.seconds is not None:
        random.shuffle(chosen)
    begin, faults, done = time.monotonic(), 0, 0
    for case in chosen:
        if arguments.seconds is not None and done and time.monotonic() - begin > arguments.seconds:
            break
        outcome = run(case, arguments.processes)
        done += 1
        faults += bool(outcome.fault)
        found = outcome.fault or "right"
        print(f"{case}: {outcome.builds} builds, {outcome.seconds:.1f} s at most, {found}", flush=True)
    print(f"remotes.py: {done} cases with {arguments.processes} processes, {faults} with a fault")
    return 1 if faults else 0


def run(case: Ending, count: int) -> Outcome:
    """Run a case with `count` processes on a server of its own, and judge it."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cachegraph-remotes-")))
        servers = [stack.enter_context(SERVERS[kind]()) for kind in case.kind.split("+")]
        variables = {name: value for server in servers for name, value in server.variables.items()}
        stack.enter_context(patch.dict(os.environ, {**variables, "XDG_CONFIG_HOME": str(directory)}))
        make_own_key()
        content = "".join(f"&content={server.url}" for server in servers[1:])
        url = f"{servers[0].url}?timeout={1 if case.victim == 'server' else 5}{content}"
        fleet = _Fleet(case, directory, url, servers[0])
        ended = fleet.run(count)
        return Outcome(fleet.builds(), max(ended.values(), default=0.0), fleet.fault(ended, count))


class _Fleet:
    """The processes of a case. Each writes what it builds into one file, and its end into one of its own."""

    def __init__(self, case: Ending, directory: Path, url: str, server: Server) -> None:
        self.case = case
        self.directory = directory
        self.url = url
        self.server = server
        self.log = directory / "built"
        self.log.touch()

    def run(self, count: int) -> dict[int, float]:
        """Start the processes and end the victim; return the seconds that each process took."""
        asking, self.asked = os.pipe()
        self.go, answering = os.pipe()
        begin = time.monotonic()
        running = {self._start(f"n{number % NODES}") for number in range(count)}
        ended: dict[int, float] = {}
        victims: set[int] = set()
        while running and time.monotonic() - begin < LONGEST:
            if select.select([asking], [], [], 0.02)[0]:
                builder = int(os.read(asking, 32))
                if self.case.victim == "builder":
                    os.kill(builder, signal.SIGKILL)
                    victims.add(builder)
                else:
                    self.server.kill() if self.case.end == "killed" else self.server.pause()
                    os.write(answering, b"!")
            for pid in [pid for pid in running if os.waitpid(pid, os.WNOHANG)[0]]:
                running.discard(pid)
                if pid not in victims:
                    ended[pid] = time.monotonic() - begin
        for pid in running:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        for descriptor in (asking, self.asked, self.go, answering):
            os.close(descriptor)
        return ended

    def builds(self) -> int:
        """Return how often the key was built."""
        return len(self.log.read_text().split())

    def fault(self, ended: dict[int, float], count: int) -> str:
        """Return what is wrong, or ""."""
        killed = int(self.case.victim == "builder" and len(self._victims()) > 0)
        if len(ended) + killed < count:
            return f"{count - killed - len(ended)} processes still wait after {LONGEST:.0f} s"
        said = {pid: (self.directory / f"end.{pid}").read_text() for pid in ended}
        wrong = [text for text in said.values() if text != "right"]
        if wrong:
            return f"{len(wrong)} processes failed, one with: {wrong[0]}"
        if self.case.victim and not self._victims():
            return "" if self.case.step >= 0 else "nobody was ended"
        # What a builder had published before it died needs no other builder; nor has a local copy.
        least, most = 1, {"": 1, "builder": 2, "server": count}[self.case.victim]
        if self.case == Ending(self.case.kind, "builder", "killed"):
            least = 2
        return "" if least <= self.builds() <= most else f"{least} to {most} builds were due"

    def _victims(self) -> str:
        path = self.directory / "victim"
        return path.read_text() if path.exists() else ""

    def _start(self, node: str) -> int:
        child = os.fork()
        if child:
            return child
        try:
            said = self._live(node)
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        (self.directory / f"end.{os.getpid()}").write_text(said)
        os._exit(0)

    def _live(self, node: str) -> str:
        """Get the key as a process of `node`; return "right" or what is wrong."""
        logger("cachegraph").setLevel(logging.ERROR)  # that a server has gone is said in each process
        lease.host_name = processes.host_name = lease.machine = lambda: node  # type: ignore[assignment]
        lease.Lease.__init__.__defaults__ = (TTL, *lease.Lease.__init__.__defaults__[1:])  # type: ignore
        settings = Settings(self.directory / node, "readwrite", "compile", remotes=(RemoteURL.of(self.url),))
        cache = Cache(settings)
        [remote] = cache._store.shared  # type: ignore[attr-defined]
        remote.files = counted = _Counted(remote.files, self._end_victim, self.case.step)
        blobs: dict[str, bytes | None] = {}

        def build() -> Artifact:
            with open(self.log, "a") as file:
                file.write(f"{os.getpid()}\n")
            if self.case.victim == "builder" and self.case.step < 0:
                self._end_victim()
            time.sleep(BUILD_SECONDS)
            counted.count = 0
            blobs.update(ARTIFACT.blobs)
            return ARTIFACT

        found = cache.get_or_build(KEY, build, lambda payload: payload)
        for name, digest in found.blobs.items():
            blobs[name] = cache.read_blob(digest)
        if found.value != ARTIFACT.payload:
            return "wrong bytes"
        # A blob whose server has gone is missing, and its entry is built anew by who needs it.
        lost = self.case.victim == "server" and blobs == {"code": None}
        return "right" if lost or blobs == ARTIFACT.blobs else "a wrong blob"

    def _end_victim(self) -> None:
        """Have the parent end the victim, once: the first who comes here."""
        try:
            descriptor = os.open(self.directory / "victim", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        except FileExistsError:
            return
        os.write(descriptor, str(os.getpid()).encode())
        os.write(self.asked, str(os.getpid()).encode())
        os.read(self.go, 1)


class _Counted:
    """`files`, which call `end` before the call of that `step`, once `count` is set to 0."""

    def __init__(self, files: RemoteFiles, end: Callable[[], None], step: int) -> None:
        self.location = files.location
        self.may_write = files.may_write
        self.count: int | None = None
        self._files = files
        self._end = end
        self._step = step

    def read(self, name: str, most: int) -> bytes:
        return self._counted(self._files.read, name, most)

    def write(self, name: str, content: bytes) -> None:
        self._counted(self._files.write, name, content)

    def create(self, name: str, content: bytes) -> bool:
        return self._counted(self._files.create, name, content)

    def remove(self, name: str) -> bool:
        return self._counted(self._files.remove, name)

    def listed(self, prefix: str) -> Iterator[RemoteFile]:
        return self._counted(self._files.listed, prefix)

    def wait(self, name: str, seconds: float) -> None:
        self._files.wait(name, seconds)

    def close(self) -> None:
        self._files.close()

    def _counted(self, call: Callable[..., Any], *given: Any) -> Any:
        if self.count is not None:
            if self.count == self._step:
                self._end()
            self.count += 1
        return call(*given)


def _lacking(case: Ending) -> Sequence[str]:
    return [lacking for kind in case.kind.split("+") if (lacking := missing(kind))]


if __name__ == "__main__":
    sys.exit(main())
