"""The size and the import time of a small installation: cachegraph for other compilers (docs/library.md).

Builds the wheel, makes an environment with the wheel and the four packages that the library needs, and
another with all dependencies (`--full`, some 500 MB). Prints JSON: the megabytes of each package, and the
milliseconds of the processor, least of all rounds, that `import numpy` takes, and after it a program that
finds the result of a memoized function. `--check` fails (exit code 1) where the ratio of the two is over the
budget.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SMALL = ("numpy", "xxhash", "platformdirs", "cloudpickle")
BUDGET = 1.0
"""The most that the library and a hit may take, by `import numpy`."""

SIZES = """
import json
from importlib.metadata import distributions
print(json.dumps({
    found.name: sum(found.locate_file(file).stat().st_size for file in found.files or ()
                    if found.locate_file(file).is_file())
    for found in distributions() if found.name != "pip"
}))
"""
SUBJECT = """
import json
from time import process_time as now
times = [now()]
import numpy
times.append(now())
import cachegraph
times.append(now())

@cachegraph.memoize
def primes(limit):
    return [n for n in range(2, limit) if all(n % d for d in range(2, n))]

assert primes(100)[-1] == 97
times.append(now())
hits = {level: counted["hits"] for level, counted in cachegraph.counters().levels.items() if counted["hits"]}
print(json.dumps({"milliseconds": [1e3 * (b - a) for a, b in zip(times, times[1:])], "hits": hits}))
"""


def main() -> int:
    """Build, install, measure, print, and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9, help="fresh processes (default: 9)")
    parser.add_argument(
        "--full", action="store_true", help="weigh an installation with all dependencies, too"
    )
    parser.add_argument("--check", action="store_true", help="fail where the budget is missed")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cachegraph-bench-") as name:
        directory = Path(name)
        wheel = built(directory)
        small = environment(directory / "small", ["--no-deps", wheel], list(SMALL))
        result = {"megabytes": megabytes(small)} | timing(small, directory / "cache", arguments.rounds)
        if arguments.full:
            full = environment(directory / "full", [wheel])
            result["megabytes with all dependencies"] = sum(megabytes(full).values())
    print(json.dumps(result, indent=2))
    return 1 if arguments.check and result["ratio"] > BUDGET else 0


def built(directory: Path) -> str:
    """Return the wheel, built in `directory`."""
    words = [
        sys.executable,
        "-m",
        "build",
        "--no-isolation",
        "--wheel",
        "--outdir",
        str(directory),
        str(ROOT),
    ]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    return str(next(directory.glob("*.whl")))


def environment(directory: Path, *installs: list[str]) -> Path:
    """Return the Python of a new environment, after the given runs of pip install."""
    venv.create(directory, with_pip=True)
    python = directory / "bin" / "python"
    pip = [str(python), "-m", "pip", "install", "--quiet", "--constraint", str(ROOT / "constraints.txt")]
    for words in installs:
        # pip warns, on stderr, of each dependency that is left out: that is the point.
        done = subprocess.run([*pip, *words], stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"pip install {' '.join(words)}: {done.stderr}")
    return python


def megabytes(python: Path) -> dict[str, float]:
    """Return the size of each package that is installed."""
    return {name: round(size / 1e6, 1) for name, size in printed(python, SIZES).items()}


def timing(python: Path, cache: Path, rounds: int) -> dict[str, Any]:
    """Return the milliseconds of each step, least of all rounds, and the ratio to `import numpy`."""
    settings = {"CACHEGRAPH_DIR": str(cache)}
    printed(python, SUBJECT, settings)  # a miss, and the bytecode
    runs = [printed(python, SUBJECT, settings) for _ in range(rounds)]
    if any(sum(run["hits"].values()) != 1 for run in runs):
        raise RuntimeError(f"expected one hit, got {runs[0]['hits']}")
    numpy, library, hit = (
        round(min(times), 1) for times in zip(*(run["milliseconds"] for run in runs), strict=True)
    )
    return {
        "milliseconds": {"import numpy": numpy, "import cachegraph": library, "memoize and a hit": hit},
        "ratio": round((library + hit) / numpy, 2),
        "budget": BUDGET,
    }


def printed(python: Path, program: str, settings: dict[str, str] | None = None) -> Any:
    """Return the JSON that a fresh process of `program` prints."""
    dropped = ("CACHEGRAPH_", "PYTHONDONTWRITEBYTECODE", "PYTHONPATH")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    done = subprocess.run(
        [str(python), "-c", program], env=inherited | (settings or {}), stdout=subprocess.PIPE, check=True
    )
    return json.loads(done.stdout)


if __name__ == "__main__":
    sys.exit(main())
