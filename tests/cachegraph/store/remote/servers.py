"""Real servers on loopback, each started for the tests that need it, and what a URL calls them."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

POSTGRESQL = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
S3_VARIABLES = {"AWS_ACCESS_KEY_ID": "tests", "AWS_SECRET_ACCESS_KEY": "tests", "AWS_REGION": "us-east-1"}


class Server:
    """A server: its `url`, and the environment that its clients need."""

    def __init__(self, process: subprocess.Popen[bytes], url: str, variables: Mapping[str, str]) -> None:
        self.process = process
        self.url = url
        self.variables = dict(variables)

    def pause(self) -> None:
        """Stop the server without closing its connections; nothing answers any more."""
        self.process.send_signal(signal.SIGSTOP)
        self._signal_children(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused server go on."""
        # The children first: one that ends stays in the process table while its parent is stopped.
        self._signal_children(signal.SIGCONT)
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kill the server with all its processes."""
        self.process.send_signal(signal.SIGSTOP)
        self._signal_children(signal.SIGKILL)
        self.process.kill()
        self.process.wait()

    def _signal_children(self, number: int) -> None:
        # PostgreSQL's children have groups of their own.
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        for pid in map(int, children):
            os.kill(pid, number)


def free_port() -> int:
    """Return a port of loopback that nobody uses now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def answers(port: int) -> bool:
    """Return True if somebody listens."""
    with socket.socket() as asked:
        return asked.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def running(
    command: list[str], port: int, url: str, variables: Mapping[str, str] | None = None, user: str = ""
) -> Iterator[Server]:
    """Run a server until the context ends."""
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, stdout=quiet, stderr=quiet, start_new_session=True, user=user or None)
    try:
        until(lambda: answers(port), process)
        yield Server(process, url, variables or {})
    finally:
        if process.poll() is None:
            Server(process, url, {}).kill()


def until(is_there: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    """Wait until `is_there`, for 60 seconds at most, and as long as the process runs."""
    end = time.monotonic() + 60
    while not is_there():
        assert process.poll() is None, f"{process.args} has ended"
        assert time.monotonic() < end, f"{process.args} does not answer"
        time.sleep(0.02)


@contextmanager
def redis() -> Iterator[Server]:
    """Run Redis."""
    port = free_port()
    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    with running(command, port, f"redis://127.0.0.1:{port}/0") as server:
        yield server


@contextmanager
def s3() -> Iterator[Server]:
    """Run a server of S3's protocol, moto's, with one bucket."""
    port = free_port()
    variables = {**S3_VARIABLES, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"}
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with running(command, port, "s3://bucket/site/cache", variables) as server:
        until(lambda: _is_made(f"http://127.0.0.1:{port}/bucket"), server.process)
        yield server


@contextmanager
def postgresql() -> Iterator[Server]:
    """Run PostgreSQL on a new cluster; as the user postgres if we are root, whom it refuses."""
    port, programs = free_port(), POSTGRESQL[-1]
    user = "postgres" if os.geteuid() == 0 else ""
    directory = tempfile.mkdtemp(prefix="cachegraph-postgresql-")
    if user:
        os.chown(directory, pwd.getpwnam(user).pw_uid, -1)
    try:
        made = [str(programs / "initdb"), "-D", directory, "-A", "trust", "-U", "postgres", "--no-sync"]
        subprocess.run(made, check=True, stdout=subprocess.DEVNULL, user=user or None)
        settings = ["-c", "fsync=off", "-c", "listen_addresses=127.0.0.1"]
        command = [str(programs / "postgres"), "-D", directory, "-p", str(port), "-k", directory, *settings]
        with running(command, port, f"postgresql://postgres@127.0.0.1:{port}/postgres", user=user) as server:
            until(lambda: _accepts(server.url), server.process)
            yield server
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def pgbouncer(server: Server, mode: str) -> Iterator[Server]:
    """Run a pooler before a server of PostgreSQL, configured as docs/scale.md says; a `mode` for its pools."""
    port, behind = free_port(), urlsplit(server.url).port
    with tempfile.TemporaryDirectory(prefix="cachegraph-pgbouncer-") as name:
        directory = Path(name)
        (directory / "users").write_text('"postgres" ""\n')
        (directory / "pgbouncer.ini").write_text(
            f"[databases]\npostgres = host=127.0.0.1 port={behind} user=postgres\n[pgbouncer]\n"
            f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n"
            f"auth_file = {directory}/users\npool_mode = {mode}\ndefault_pool_size = 2\n"
            "ignore_startup_parameters = options\n"
        )
        directory.chmod(0o755)
        user = "postgres" if os.geteuid() == 0 else ""
        command = ["pgbouncer", "-q", str(directory / "pgbouncer.ini")]
        url = f"postgresql://postgres@127.0.0.1:{port}/postgres"
        with running(command, port, url, user=user) as pooler:
            yield pooler


@contextmanager
def web(directory: Path) -> Iterator[Server]:
    """Run Python's web server on a directory."""
    port = free_port()
    command = [sys.executable, "-m", "http.server", str(port), "-b", "127.0.0.1", "-d", str(directory)]
    with running(command, port, f"http://127.0.0.1:{port}") as server:
        yield server


@contextmanager
def nginx(directory: Path) -> Iterator[Server]:
    """Run nginx on a directory, as this user, with its own files beside it."""
    port, own = free_port(), directory.with_name(f"{directory.name}-nginx")
    own.mkdir()
    paths = "".join(
        f" {name}_temp_path {own}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    user = f"user {pwd.getpwuid(os.geteuid()).pw_name};\n" if os.geteuid() == 0 else ""
    configuration = own / "nginx.conf"
    configuration.write_text(
        f"{user}worker_processes 1;\npid {own}/pid;\nerror_log {own}/log;\nevents {{}}\n"
        f"http {{ access_log off;{paths} server {{ listen 127.0.0.1:{port}; root {directory}; }} }}\n"
    )
    command = ["nginx", "-c", str(configuration), "-e", f"{own}/log", "-g", "daemon off;"]
    with running(command, port, f"http://127.0.0.1:{port}") as server:
        yield server


def missing(name: str) -> str:
    """Return what a server needs that is not installed; empty if nothing."""
    if name == "postgresql":
        return "" if POSTGRESQL else "postgresql"
    program = {"redis": "redis-server", "http": "nginx"}.get(name)
    return program if program is not None and not shutil.which(program) else ""


SERVERS = {"redis": redis, "s3": s3, "postgresql": postgresql}
"""The servers that are written to."""


def _is_made(bucket: str) -> bool:
    try:
        urlopen(Request(bucket, method="PUT"), timeout=5).close()
    except (URLError, OSError):
        return False
    return True


def _accepts(url: str) -> bool:
    import psycopg

    try:
        psycopg.connect(url, connect_timeout=2).close()
    except psycopg.Error:
        return False
    return True
