"""An array of tasks that start at once on an empty shared cache; each compiles and runs the demo's model.

A real Slurm is brought up on loopback for it (cluster.py). Each node has a host name and a local
cache directory of its own; what they share is CACHEGRAPH_SHARED_DIR, which is written and claimed
as on a network file system. With `--share sshfs` it is one: each node has a mount of its own, and
CACHEGRAPH_DIR on it is all that is set. With `--share site` there is no such directory, but PostgreSQL with
a bucket (site_servers.py) in CACHEGRAPH_REMOTE. Prints JSON: how many tasks gave the numbers that numpy
gives, how often each key was built, and how long it took. Exit code 1 if a task failed or was
wrong, or if a key was built twice; 0 with the reason where there can be no Slurm.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "examples" / "grunfeld"
sys.path[:0] = [str(ROOT), str(DEMO), str(Path(__file__).parent)]

import numpy as np  # noqa: E402
import site_servers  # noqa: E402
import sshfs  # noqa: E402
from cluster import Cluster, on_node, unavailable  # noqa: E402

from cachegraph.store.shared.store import SharedStore  # noqa: E402

MODEL = "normal"
UNAVAILABLE: dict[str, Callable[[], str]] = {
    "directory": lambda: "",
    "sshfs": sshfs.unavailable,
    "site": site_servers.unavailable,
}
Report = dict[str, Any]


def main() -> int:
    """Run the array, print what came of it, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=1000, help="default: 1000")
    parser.add_argument("--nodes", type=int, default=4, help="default: 4")
    parser.add_argument("--slots", type=int, default=8, help="tasks at a time on each node (default: 8)")
    parser.add_argument(
        "--share",
        choices=sorted(UNAVAILABLE),
        default="directory",
        help="what nodes share (default: directory)",
    )
    arguments = parser.parse_args()
    reason = unavailable() or UNAVAILABLE[arguments.share]()
    if reason:
        print(json.dumps({"skipped": reason}))
        return 0
    with tempfile.TemporaryDirectory(prefix="slurm-") as directory:
        size = arguments.tasks, arguments.nodes, arguments.slots
        summary = run_array(Path(directory), *size, arguments.share)
    print(json.dumps(summary, indent=2))
    return 1 if problems(summary) else 0


def run_array(directory: Path, tasks: int, nodes: int, slots: int, share: str) -> dict[str, Any]:
    """Bring Slurm up in `directory`, run the array on it, and return what came of it."""
    for name in ("reports", "shared"):
        (directory / name).mkdir(mode=0o700)
    variables = {"CACHEGRAPH_DIR": "$HOME/cache"}
    with ExitStack() as stack:
        cluster = stack.enter_context(Cluster(directory, nodes, slots))
        site = stack.enter_context(site_servers.serving(directory)) if share == "site" else None
        if share == "sshfs":
            mounts = [directory / f"mount-{name}" for name in cluster.names]
            stack.enter_context(stack.enter_context(sshfs.serving()).mounted(directory / "shared", *mounts))
            variables["CACHEGRAPH_DIR"] = f"{directory}/mount-$SLURMD_NODENAME/cache"
        elif share == "directory":
            variables["CACHEGRAPH_SHARED_DIR"] = f"{directory}/shared/cache"
        script = directory / "task.sh"
        script.write_text(_script(directory, {**variables, **(site.variables if site else {})}))
        seconds = cluster.run_array(script, tasks, f"{directory}/reports/%a.log")
        summary = summarize(directory, tasks, site)
    if summary["right"] < tasks:
        summary["first error"] = _first_error(directory, tasks)
    asked = {"tasks": tasks, "nodes": nodes, "slots": slots, "share": share}
    return {**asked, **summary, "seconds": round(seconds, 1)}


def summarize(directory: Path, tasks: int, site: site_servers.SiteServers | None) -> dict[str, Any]:
    """Count what the tasks reported. Every key that is stored was built at least once: the sums tell if
    more often.
    """
    reports = [_report(directory, number) for number in range(1, tasks + 1)]
    ran = [report for report in reports if report is not None]
    stored = site.entries() if site else _entries(directory / "shared" / "cache")
    shared = (directory / "shared").glob("cache/v1/l/*/*")
    return {
        "right": sum(_is_right(report) for report in ran),
        "on each node": dict(Counter(report["node"] for report in ran)),
        "keys": {level: stored[level] for level in ("function", "kernel")},
        "built": {
            "function": sum(report["outcome"] == "miss" for report in ran),
            "kernel": sum(report["compilations"] for report in ran),
        },
        "left behind": site.leases() if site else [path.name for path in shared],
    }


def problems(summary: dict[str, Any]) -> list[str]:
    """Return the tasks that were wrong, and the keys that were not built exactly once."""
    found = []
    if summary["right"] != summary["tasks"]:
        found.append(f"{summary['tasks'] - summary['right']} tasks failed or were wrong")
    if summary["built"] != summary["keys"]:
        found.append(f"built {summary['built']} for {summary['keys']} keys")
    return found


def _entries(cache: Path) -> Counter[str]:
    return Counter(entry.level for entry in SharedStore(cache).scan())


def _script(directory: Path, variables: dict[str, str]) -> str:
    """Return the script of a task: the demo's process, on a node with a name and directories of its own."""
    exported = " ".join(f'{name}="{value}"' for name, value in variables.items())
    command = f"{sys.executable} {DEMO / 'fit.py'} {MODEL} --no-fit"
    return f"""\
#!/bin/sh
export HOME={directory}/node-$SLURMD_NODENAME
unset CACHEGRAPH_MODE CACHEGRAPH_ON_MISS CACHEGRAPH_TRUST XDG_CACHE_HOME
unset CACHEGRAPH_SHARED_DIR CACHEGRAPH_REMOTE
export {exported} PYTHONPATH={ROOT}
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
printf '%s' "$SLURMD_NODENAME" >{directory}/reports/$SLURM_ARRAY_TASK_ID.node
{on_node(f"{command} >{directory}/reports/$SLURM_ARRAY_TASK_ID.json")}
"""


def _report(directory: Path, number: int) -> Report | None:
    try:
        report: Report = json.loads((directory / "reports" / f"{number}.json").read_text())
        report["node"] = (directory / "reports" / f"{number}.node").read_text()
    except (OSError, ValueError):
        return None
    return report


def _is_right(report: Report) -> bool:
    import reference
    from panel import read_panel

    first = report["first"]
    value, gradient = reference.log_density(MODEL, np.array(first["point"]), read_panel())
    found = [first["log_density"], *first["gradient"]]
    return np.allclose(found, [value, *gradient], rtol=1e-9, atol=1e-9)


def _first_error(directory: Path, tasks: int) -> str:
    for number in range(1, tasks + 1):
        log = directory / "reports" / f"{number}.log"
        if _report(directory, number) is None and log.exists():
            return log.read_text()[-2000:]
    return ""


if __name__ == "__main__":
    sys.exit(main())
