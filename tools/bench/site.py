"""The cost of a request on each kind of server of CACHEGRAPH_REMOTE, and 10,000 simulated nodes that ask.

    python tools/bench/site.py [--check] [--short] [--only KIND]

Every server is a real one on loopback: a directory written as on a network file system, PostgreSQL,
PostgreSQL with a bucket, a bucket (moto), Redis, nginx over a shared directory, and a bundle. One process
gets and puts entries of 20 kB and of 150 kB, all checks included, and compares the bytes. Meanwhile the
processor time of the server is read from /proc, so that a simulation (site_nodes.py) can tell how many
nodes one can serve.
Tasks are started at once on an empty database, and what each asks of it is counted (site_tasks.py).

Then two tables of PostgreSQL are filled, with 10,000 and 1,000,000 rows, and read at random, in turn.

Prints JSON. `--check` fails (exit code 1) if a get returned other bytes, or if the median of reading among
1,000,000 rows is above 1.5 times that among 10,000. `--short` measures a hundredth, for the test.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple
from unittest.mock import patch

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

import site_nodes  # noqa: E402
import site_tasks  # noqa: E402
from cachegraph.key import CacheKey  # noqa: E402
from cachegraph.remote_url import RemoteURL  # noqa: E402
from cachegraph.store.entry import Artifact, Hit  # noqa: E402
from cachegraph.store.maintenance.directory import CacheDirectory  # noqa: E402
from cachegraph.store.maintenance.exporting import export  # noqa: E402
from cachegraph.store.remote.files import RemoteFiles  # noqa: E402
from cachegraph.store.remote.opening import open_files  # noqa: E402
from cachegraph.store.remote.store import RemoteStore  # noqa: E402
from cachegraph.store.shared.store import SharedStore  # noqa: E402
from cachegraph.store.signing import make_own_key, own_public_key, public_key_text  # noqa: E402
from cachegraph.store.tiers import place  # noqa: E402
from cachegraph.store.trust import Trust  # noqa: E402
from tests.cachegraph.store.remote.servers import SERVERS, free_port, missing, running  # noqa: E402

SMALL, LARGE = 20_000, 150_000
KEYS = 200
CALLS = 2000
ROWS = (10_000, 1_000_000)
CONNECTIONS = 200
TASKS = 8
LOOKS = 3000
FLAT = 1.5
NODES = 10_000
SPREAD = 10.0
ENTRIES = 9
"""A function and eight kernels."""
TRAVEL = 0.001
"""Seconds to a server of the same site and back."""
WORKERS = {"postgresql": 8, "postgresql+s3": 8, "redis": 1, "http": 8, "s3": 2}
"""Workers that a server has for the simulation: processors of its machine. Redis uses one; moto is no S3,
which takes 5,500 reads and 3,500 writes a second below one prefix, says its documentation."""
LISTENING = 3
"""Requests of PostgreSQL's clients around a wait: LISTEN, is it still built?, UNLISTEN."""
S3_READ, S3_WRITE, S3_TRAVEL = 2 / 5500, 2 / 3500, 0.03
_TICK = os.sysconf("SC_CLK_TCK")


class MeasuredStore(NamedTuple):
    """A store that is measured; one that `writer` fills, the processes of its server, and what publishes."""

    store: Any
    writer: Any
    processes: tuple[int, ...]
    publish: Callable[[], object] = lambda: None


def main() -> int:
    """Measure, print, and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="fail if a bound is broken")
    parser.add_argument("--short", action="store_true", help="a hundredth of the calls, rows and nodes")
    parser.add_argument("--only", choices=sorted(KINDS), help="this kind alone")
    arguments = parser.parse_args()
    scale = 100 if arguments.short else 1
    kinds = [arguments.only] if arguments.only else list(KINDS)
    result = measure([kind for kind in kinds if not lacking(kind)], scale)
    result["skipped"] = {kind: lacking(kind) for kind in kinds if lacking(kind)}
    print(json.dumps(result, indent=2))
    faults = problems(result)
    print("\n".join(faults), file=sys.stderr)
    return 1 if arguments.check and faults else 0


def measure(kinds: list[str], scale: int) -> dict[str, Any]:
    """Return the costs for each kind, the rows of PostgreSQL, and the nodes that each kind serves."""
    result: dict[str, Any] = {"costs": {}, "nodes": {}}
    for kind in kinds:
        costs = result["costs"][kind] = measured(kind, max(20, CALLS // scale))
        if kind in WORKERS:
            result["nodes"][kind] = served(kind, costs, NODES // scale)
    if "postgresql" in kinds:
        result["tasks"] = started(2 if scale > 1 else TASKS)
        result["rows"] = rows([count // scale for count in ROWS], max(100, LOOKS // scale))
    return result


def problems(result: dict[str, Any]) -> list[str]:
    """Return the bounds that are broken."""
    found = [
        f"{kind}: {row['wrong']} gets were wrong" for kind, row in result["costs"].items() if row["wrong"]
    ]
    if "rows" in result and result["rows"]["growth"] > FLAT:
        found.append(f"reading grows by {result['rows']['growth']} with the rows, more than {FLAT}")
    return found


def measured(kind: str, calls: int) -> dict[str, Any]:
    """Return milliseconds of a get and a put (p50, p99) on one kind, and of the server for each."""
    with tempfile.TemporaryDirectory(prefix="cachegraph-site-") as name:
        directory = Path(name)
        directory.chmod(0o755)  # nginx's workers read it
        with own_key(directory), KINDS[kind](directory) as subject:
            return {"wrong": 0, **_sizes(subject, calls)}


def started(tasks: int) -> dict[str, Any]:
    """Return what tasks that start at once on an empty database ask of it."""
    with (
        tempfile.TemporaryDirectory(prefix="cachegraph-site-") as name,
        own_key(Path(name)),
        SERVERS["postgresql"]() as server,
    ):
        return site_tasks.started(tasks, server.url, Path(name))


def _sizes(subject: MeasuredStore, calls: int) -> dict[str, Any]:
    found: dict[str, Any] = {"wrong": 0}
    for size in (SMALL, LARGE):
        keys = [CacheKey.build("kernel", {"size": f"{size}-{n}".encode()}) for n in range(KEYS)]
        payloads = [random.Random(f"{size}-{n}").randbytes(size) for n in range(KEYS)]
        for key, payload in zip(keys, payloads, strict=True):
            subject.writer.put(key, Artifact(payload))
        subject.publish()

        def get(n: int, keys: list[CacheKey] = keys, payloads: list[bytes] = payloads) -> None:
            hit = subject.store.get(keys[n])
            found["wrong"] += not (isinstance(hit, Hit) and hit.payload == payloads[n])

        def put(n: int, size: int = size) -> None:
            key = CacheKey.build("kernel", {"put": f"{size}-{n}".encode()})
            subject.store.put(key, Artifact(random.Random(n).randbytes(size)))

        get(0)  # the connection is made
        found[f"get of {size // 1000} kB"] = timed(subject, [lambda: get(random.randrange(KEYS))] * calls)
        if subject.store.may_write:
            puts = [lambda n=n: put(n) for n in range(calls // 4)]  # type: ignore[misc]
            found[f"put of {size // 1000} kB"] = timed(subject, puts)
        if size == SMALL and subject.processes:

            def connect(get: Callable[[int], None] = get) -> None:
                subject.store.close()
                get(0)

            found["connecting and get of 20 kB"] = timed(subject, [connect] * min(calls, CONNECTIONS))
    return found


def timed(subject: MeasuredStore, calls: list[Callable[[], None]]) -> dict[str, float]:
    """Make the calls; return milliseconds: median, 99th percentile, and processor time of the server."""
    took, before = [], processor_seconds(subject.processes)
    for call in calls:
        begin = perf_counter()
        call()
        took.append(perf_counter() - begin)
    server = (processor_seconds(subject.processes) - before) / len(calls)
    at = {"p50": site_nodes.percentile(took, 0.5), "p99": site_nodes.percentile(took, 0.99), "server": server}
    return {name: round(1e3 * seconds, 3) for name, seconds in at.items()}


def served(kind: str, costs: dict[str, Any], nodes: int) -> dict[str, Any]:
    """Return what `nodes` make of a server of that kind; warm alone if nobody writes there."""
    get, put, both = (
        _server_seconds(costs.get(f"{verb} of 20 kB")) for verb in ("get", "put", "connecting and get")
    )
    connect, travel = max(both - get, 0.0), TRAVEL
    if kind == "s3":
        get, put, connect, travel = S3_READ, S3_WRITE, 0.0, S3_TRAVEL
    load = site_nodes.NodeLoad(
        nodes, SPREAD, ENTRIES, WORKERS[kind], get, put or get, travel, connect=connect
    )
    load = load._replace(listening=LISTENING if kind.startswith("postgresql") else 0)
    outcomes = dict(site_nodes.both(load))
    if kind == "http":  # a request has a connection of its own, and nobody writes
        outcomes = {"warm": outcomes["warm"]._replace(connections=outcomes["warm"].at_once)}
    return {
        name: {field: round(value, 3) for field, value in outcome._asdict().items()}
        for name, outcome in outcomes.items()
    }


def _server_seconds(costs: dict[str, float] | None) -> float:
    """Return the seconds of the server; at least 10 us, since /proc counts in hundredths of a second."""
    return max(costs["server"] / 1e3, 1e-5) if costs else 0.0


def rows(counts: list[int], looks: int) -> dict[str, Any]:
    """Return the milliseconds of reading a row among so many, and how they grow.

    There is a server for each count; they are read in turn, so that all suffer the same from other processes.
    """
    took: dict[int, list[float]] = {count: [] for count in counts}
    choose = random.Random(0)
    with ExitStack() as stack:
        opened = {}
        for count in counts:
            server = stack.enter_context(SERVERS["postgresql"]())
            files = opened[count] = open_files(RemoteURL.of(f"{server.url}?timeout=600"))
            stack.callback(files.close)
            fill(server.url, files, count)
        for _ in range(looks):
            for count, files in opened.items():
                took[count].append(_read(files, choose.randint(1, count)))
    warm = {count: seconds[looks // 5 :] for count, seconds in took.items()}
    found: dict[str, Any] = {
        f"{count} rows": {
            f"p{share}": round(1e3 * site_nodes.percentile(warm[count], share / 100), 3) for share in (50, 99)
        }
        for count in counts
    }
    first, last = (found[f"{count} rows"]["p50"] for count in (counts[0], counts[-1]))
    return {**found, "growth": round(last / first, 2)}


def fill(url: str, files: RemoteFiles, count: int) -> None:
    """Add rows of 1,024 bytes, named by the digests of 1 to `count`, and write them to the disk."""
    import psycopg

    files.write("v1/e/00/first", b"")  # creates the table
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO cachegraph_file (name, size, content)"
            " SELECT 'v1/e/' || substr(md5(n::text), 1, 2) || '/' || md5(n::text), 1024,"
            " decode(repeat(md5(n::text), 64), 'hex') FROM generate_series(1, %s::int) n",
            (count,),
        )
        connection.execute("VACUUM ANALYZE cachegraph_file")
        connection.execute("CHECKPOINT")


def _read(files: RemoteFiles, number: int) -> float:
    """Return the seconds that reading the row of that number took. Raises AssertionError on other bytes."""
    digest = hashlib.md5(str(number).encode(), usedforsecurity=False).hexdigest()
    begin = perf_counter()
    content = files.read(f"v1/e/{digest[:2]}/{digest}", 4096)
    took = perf_counter() - begin
    if content != bytes.fromhex(digest) * 64:
        raise AssertionError(f"the row of {digest} has other bytes")
    return took


def processor_seconds(processes: tuple[int, ...]) -> float:
    """Return the processor time of these processes and their children, ended ones included."""
    return sum(_ticks(pid) for pid in processes) / _TICK


def _ticks(pid: int) -> int:
    used = 0
    with suppress(FileNotFoundError, ProcessLookupError):
        used = sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]))
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        used += sum(_ticks(int(child)) for child in children)
    return used


@contextmanager
def own_key(directory: Path) -> Iterator[None]:
    """Sign with a key that is made in `directory`."""
    with patch.dict(os.environ, {"XDG_CONFIG_HOME": str(directory / "config")}):
        make_own_key()
        yield


@contextmanager
def on_directory(directory: Path) -> Iterator[MeasuredStore]:
    """Yield a directory that is written and read as on a network file system."""
    store = SharedStore(directory / "shared")
    yield MeasuredStore(store, store, ())


@contextmanager
def on_servers(*names: str) -> Iterator[MeasuredStore]:
    """Yield the store on a server, with the second as the place of large content."""
    with ExitStack() as stack:
        started = [stack.enter_context(SERVERS[name]()) for name in names]
        variables = {key: value for server in started for key, value in server.variables.items()}
        stack.enter_context(patch.dict(os.environ, variables))
        content = f"?content={started[1].url}" if len(started) > 1 else ""
        files = open_files(RemoteURL.of(f"{started[0].url}{content}"))
        stack.callback(files.close)
        store = RemoteStore(files, Trust.on_servers("private"))
        yield MeasuredStore(store, store, tuple(server.process.pid for server in started))


@contextmanager
def on_nginx(directory: Path) -> Iterator[MeasuredStore]:
    """Yield the store behind nginx, which publishes a shared directory."""
    own = own_public_key()
    assert own is not None
    trust = Trust.of(f"signed:{public_key_text(own)}")
    public = directory / "public"
    writer = SharedStore(public, trust=trust)
    port = free_port()
    configuration = directory / "nginx.conf"
    configuration.write_text(
        f"user root;\nworker_processes 1;\npid {directory}/nginx.pid;\nerror_log {directory}/nginx.log;\n"
        f"events {{}}\nhttp {{ access_log off; client_body_temp_path {directory}/body;"
        f" proxy_temp_path {directory}/proxy; fastcgi_temp_path {directory}/fastcgi;"
        f" uwsgi_temp_path {directory}/uwsgi; scgi_temp_path {directory}/scgi;"
        f" server {{ listen 127.0.0.1:{port}; root {public}; }} }}\n"
    )
    command = ["nginx", "-c", str(configuration), "-g", "daemon off;"]
    with running(command, port, f"http://127.0.0.1:{port}") as server:
        files = open_files(RemoteURL.of(server.url))
        yield MeasuredStore(RemoteStore(files, trust), writer, (server.process.pid,))


@contextmanager
def on_bundle(directory: Path) -> Iterator[MeasuredStore]:
    """Yield a bundle that is exported from a local cache."""
    cache, file = CacheDirectory(place(directory / "cache")), directory / "models.bundle"
    files = open_files(RemoteURL.of(f"bundle:{file}"))

    def publish() -> None:
        export(cache, [entry.digest for entry in cache.local.scan()], str(file))

    yield MeasuredStore(RemoteStore(files, Trust.on_servers("private")), cache.local, (), publish)
    cache.local.close()


KINDS: dict[str, Callable[[Path], Any]] = {
    "directory": on_directory,
    "postgresql": lambda _: on_servers("postgresql"),
    "postgresql+s3": lambda _: on_servers("postgresql", "s3"),
    "s3": lambda _: on_servers("s3"),
    "redis": lambda _: on_servers("redis"),
    "http": on_nginx,
    "bundle": on_bundle,
}


def lacking(kind: str) -> str:
    """Return what is not installed for a kind; empty if nothing."""
    if kind in ("directory", "bundle"):
        return ""
    if kind == "http":
        return "" if shutil.which("nginx") else "nginx"
    return next(filter(None, map(missing, kind.split("+"))), "")


if __name__ == "__main__":
    sys.exit(main())
