"""Tasks that start at once and share a database only: what each asks of it, cold and warm.

Each task is the demo's process, with a cache directory of its own, as in a job's $TMPDIR.
PostgreSQL counts the statements (each is one request) and the connections. `cold`: nobody has compiled
before. `warm`: the same again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FIT = [sys.executable, str(ROOT / "examples" / "grunfeld" / "fit.py"), "normal", "--no-fit"]


def started(tasks: int, url: str, directory: Path) -> dict[str, Any]:
    """Return what so many tasks ask of the PostgreSQL server at `url`: first cold, then warm."""
    found = {}
    for name in ("cold", "warm"):
        before = _counts(url)
        reports = _run([directory / f"{name}-{n}" for n in range(tasks)], url)
        requests, connections = (now - then for now, then in zip(_counts(url), before, strict=True))
        found[name] = {
            "tasks": tasks,
            "functions built": sum(report["outcome"] == "miss" for report in reports),
            "kernels built": sum(report["compilations"] for report in reports),
            "requests a task": round(requests / tasks, 1),
            "connections a task": round(connections / tasks, 1),
        }
    return found


def _run(caches: list[Path], url: str) -> list[dict[str, Any]]:
    """Start a task for each cache; return what they print. Raises subprocess.CalledProcessError."""
    usual = {name: value for name, value in os.environ.items() if not name.startswith("CACHEGRAPH_")}
    running = [
        subprocess.Popen(
            FIT,
            env=usual
            | {
                "CACHEGRAPH_DIR": str(cache),
                "CACHEGRAPH_REMOTE": f"{url}?timeout=60",
                "PYTHONPATH": str(ROOT),
            },
            stdout=subprocess.PIPE,
        )
        for cache in caches
    ]
    printed = [process.communicate()[0] for process in running]
    for process in running:
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, FIT)
    return [json.loads(text) for text in printed]


def _counts(url: str) -> tuple[int, int]:
    """Return how many statements and connections the database `postgres` has had; asked in another one."""
    import psycopg

    with psycopg.connect(url.rpartition("/")[0] + "/template1", autocommit=True) as asking:
        # A server process adds its counts when it ends, which is after the client has gone.
        left = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'postgres'"
        while asking.execute(left).fetchall() != [(0,)]:
            asking.execute("SELECT pg_sleep(0.05)")
        [counts] = asking.execute(
            "SELECT xact_commit + xact_rollback, sessions FROM pg_stat_database WHERE datname = 'postgres'"
        ).fetchall()
    return int(counts[0]), int(counts[1])
