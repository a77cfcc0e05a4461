"""Processes that start at once on one empty cache: each key is built once, also across hosts, also
when builders die.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.flow.model_process import expected

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "tests" / "flow" / "model_process.py"

BUILDER = """
import os, socket, sys, time
from pathlib import Path
from cachegraph import single_flight
from cachegraph.cache import Artifact, Cache
from cachegraph.key import CacheKey
from cachegraph.settings import Settings
from cachegraph import processes
from cachegraph.store.claims import lease

local, shared, log, host, begin, names, seconds = sys.argv[1:8]
if host:  # as if this process ran on another machine
    name = lambda: host
    lease.host_name = processes.host_name = lease.machine = name
lease.TTL = 1.0
lease.Lease.__init__.__defaults__ = (1.0, *lease.Lease.__init__.__defaults__[1:])
single_flight.UNKNOWN_WAIT = single_flight.LEAST_WAIT = 20.0
cache = Cache(Settings(Path(local), "readwrite", "compile", Path(shared) if shared else None))
keys = [CacheKey.build("kernel", {"graph": name.encode()}) for name in names.split()]

def build(missing):
    for key in missing:
        with open(log, "a") as file:
            file.write(f"{key.hex} {os.getpid()}\\n")
    print("building", flush=True)
    time.sleep(float(seconds))
    return [Artifact(key.hex.encode(), {"b": key.digest * 9}, {"compile": 0.1}) for key in missing]

while time.time() < float(begin):
    time.sleep(0.001)
found = cache.get_or_build_many(keys, build, lambda key, payload: payload)
assert {key: one.value for key, one in found.items()} == {key: key.hex.encode() for key in keys}
print("done", flush=True)
"""


class Fleet:
    """Builders that share a directory of logs; each says there what it builds."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.log = directory / "built"
        self.processes: list[subprocess.Popen[str]] = []

    def start(
        self,
        names: str,
        local: str = "local",
        shared: str = "",
        host: str = "",
        seconds: float = 0.2,
        begin: float = 0.0,
    ) -> subprocess.Popen[str]:
        places = str(self.directory / local), str(self.directory / shared) if shared else ""
        arguments = [*places, str(self.log), host, str(begin), names, str(seconds)]
        process = subprocess.Popen(
            [sys.executable, "-c", BUILDER, *arguments],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.processes.append(process)
        return process

    def end(self) -> None:
        """Wait for all; every one of them must have got everything."""
        for process in self.processes:
            output, errors = process.communicate(timeout=120)
            if process.returncode != -signal.SIGKILL:
                assert (process.returncode, output.split()[-1:]) == (0, ["done"]), errors

    def builds(self) -> Counter[str]:
        """How often each key was built."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return Counter(line.split()[0] for line in lines)


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path)


def soon() -> float:
    return time.time() + 1.0


def left_locks(directory: Path) -> list[str]:
    return [path.name for path in directory.rglob("*") if path.parent.name == "locks" or ".1" in path.suffix]


def test_eight_processes_on_one_empty_directory_build_each_key_once(fleet: Fleet) -> None:
    begin = soon()
    for number in range(8):
        names = "a b c d".split()[:: (-1) ** number]
        fleet.start(" ".join(names), begin=begin)
    fleet.end()
    assert sorted(fleet.builds().values()) == [1, 1, 1, 1]
    assert left_locks(fleet.directory) == []


def test_sets_that_overlap_are_built_once_each(fleet: Fleet) -> None:
    begin = soon()
    for number in range(6):
        names = [str((number + n) % 6) for n in range(3)]
        fleet.start(" ".join(names), begin=begin)
    fleet.end()
    assert sorted(fleet.builds().values()) == [1] * 6


def test_processes_of_two_hosts_that_share_a_directory_build_each_key_once(fleet: Fleet) -> None:
    begin = soon()
    for number in range(8):
        node = f"n{number % 2}"
        fleet.start("a b", local=f"local-{node}", shared="shared", host=node, seconds=0.5, begin=begin)
    fleet.end()
    assert sorted(fleet.builds().values()) == [1, 1]
    assert left_locks(fleet.directory) == []


@pytest.mark.parametrize("shared", ["", "shared"])
def test_a_killed_leader_is_replaced_by_one_of_those_who_wait(fleet: Fleet, shared: str) -> None:
    leader = fleet.start("a", shared=shared, seconds=60)
    assert leader.stdout is not None
    assert leader.stdout.readline() == "building\n"
    for _ in range(3):
        fleet.start("a", shared=shared)
    time.sleep(1.0)
    assert sum(fleet.builds().values()) == 1
    leader.kill()
    begin = time.monotonic()
    fleet.end()
    assert time.monotonic() - begin < 10
    assert list(fleet.builds().values()) == [2]


@pytest.mark.slow
def test_a_leader_killed_on_another_host_is_replaced_when_its_lease_stands_still(fleet: Fleet) -> None:
    leader = fleet.start("a", local="local-n1", shared="shared", host="n1", seconds=60)
    assert leader.stdout is not None
    assert leader.stdout.readline() == "building\n"
    for node in ("n2", "n3"):
        fleet.start("a", local=f"local-{node}", shared="shared", host=node)
    time.sleep(2.5)
    assert sum(fleet.builds().values()) == 1
    leader.kill()
    fleet.end()
    assert list(fleet.builds().values()) == [2]


@pytest.mark.slow
@pytest.mark.stress
def test_builders_killed_at_random_keep_nobody_waiting(fleet: Fleet) -> None:
    """Half of them die, on both hosts, wherever they are; the others get everything, long before a wait
    would end.
    """
    choose = random.Random(3)
    for number in range(60 if os.environ.get("CACHEGRAPH_STRESS") == "full" else 4):
        names = " ".join(f"{number}-{key}" for key in "abc")
        begin = soon()
        doomed = []
        for process in range(6):
            node = f"n{process % 2}"
            started = fleet.start(names, f"local-{node}", "shared", node, seconds=0.2, begin=begin)
            doomed += [started] if process % 3 == 0 else []
        time.sleep(max(begin - time.time(), 0.0))
        for process_ in doomed:
            time.sleep(choose.uniform(0.0, 0.4))
            process_.kill()
        fleet.end()
        assert time.time() - begin < 15
        assert all(1 <= count <= 1 + len(doomed) for count in fleet.builds().values())
        fleet.processes.clear()


def obstruct(directory: Path) -> None:
    directory.parent.mkdir(parents=True, exist_ok=True)
    directory.write_text("a file in the way")


@pytest.mark.slow
@pytest.mark.parametrize("where", ["local/v1/locks", "shared/v1/l", "local", "shared"])
def test_where_nothing_can_be_claimed_everybody_builds_and_nobody_waits(fleet: Fleet, where: str) -> None:
    obstruct(fleet.directory / where)
    begin = soon()
    for number in range(3):
        local = "local" if where.startswith("local") else f"local-{number}"
        fleet.start("a", local=local, shared="shared", begin=begin, seconds=0.5)
    fleet.end()
    assert time.time() - begin < 15
    assert 1 <= sum(fleet.builds().values()) <= 3


def run_models(count: int, environments: Sequence[dict[str, str]]) -> list[dict[str, Any]]:
    """Start the model's process `count` times at once; return what each reports."""
    processes = [
        subprocess.Popen(
            [sys.executable, str(MODEL), "softened"],
            env={**os.environ, "PYTHONPATH": str(ROOT), **environments[number % len(environments)]},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(count)
    ]
    reports = []
    for process in processes:
        output, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
        reports.append(json.loads(output))
    return reports


def check_models(reports: list[dict[str, Any]]) -> None:
    due = expected("softened")
    for report in reports:
        for found, wanted in zip(report["results"], due, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-12)
    assert sorted(report["outcome"] for report in reports) == ["hit"] * (len(reports) - 1) + ["miss"]
    [built] = [report for report in reports if report["outcome"] == "miss"]
    assert built["compilations"] == built["found"]["kernel"][1] > 0
    assert sum(report["compilations"] for report in reports) == built["compilations"]
    assert sum(report["rewrites"] > 0 for report in reports) == 1


@pytest.mark.slow
def test_eight_processes_that_start_cold_compile_once(tmp_path: Path) -> None:
    check_models(run_models(8, [{"CACHEGRAPH_DIR": str(tmp_path / "cache")}]))


@pytest.mark.slow
def test_nodes_that_share_a_directory_compile_once(tmp_path: Path) -> None:
    shared = {"CACHEGRAPH_SHARED_DIR": str(tmp_path / "shared")}
    nodes = [{"CACHEGRAPH_DIR": str(tmp_path / f"node{number}"), **shared} for number in range(3)]
    check_models(run_models(6, nodes))
