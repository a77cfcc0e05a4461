"""The frameworks that the engine is compared with: their environment, and processes in it.

A comparison runs each framework in processes of its own, which answer in lines of JSON. Its program
that such a process runs gets the framework's name as its first argument.
"""

from __future__ import annotations

import json
import os
import subprocess
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pace import ONE_THREAD

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = ROOT / ".venv-peers"
PACKAGES = ("pytensor>=3.3,<4", "jax>=0.5")


def environment(directory: Path, python: str | None) -> str:
    """Return the interpreter of the environment in `directory`, which is made if it is missing.

    It is made with `python`, or with what tools/find-python finds.
    """
    interpreter = str(directory / "bin" / "python")
    wanted = "import pytensor, jax, numba, xxhash, sqlalchemy, msgspec"
    if not os.path.exists(interpreter):
        finder = str(ROOT / "tools" / "find-python")
        base = (
            python or subprocess.run([finder], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
        )
        subprocess.run([base, "-m", "venv", str(directory)], check=True)
    if subprocess.run([interpreter, "-c", wanted], capture_output=True, check=False).returncode != 0:
        own = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
        subprocess.run([interpreter, "-m", "pip", "install", "--quiet", *PACKAGES, *own], check=True)
    return interpreter


def versions(python: str) -> dict[str, str]:
    """Return the releases that are compared."""
    program = (
        "import json, platform; from importlib.metadata import version; "
        "print(json.dumps({'python': platform.python_version()} | "
        "{name: version(name) for name in ('numpy', 'numba', 'pytensor', 'jax')}))"
    )
    found: dict[str, str] = json.loads(subprocess.run([python, "-c", program], stdout=-1, check=True).stdout)
    return found


@contextmanager
def subject(python: str, program: Path, arguments: Sequence[str], caches: Path) -> Iterator[Any]:
    """Start `program` with `arguments` and its caches in `caches`; the process ends with the block."""
    variables = os.environ | {
        "PYTHONPATH": str(ROOT),
        "CACHEGRAPH_DIR": str(caches / "cachegraph"),
        # cxx= keeps PyTensor from looking for a C++ compiler, which nothing here needs.
        "PYTENSOR_FLAGS": f"cxx=,base_compiledir={caches / 'pytensor'}",
        "JAX_COMPILATION_CACHE_DIR": str(caches / "jax"),
        "JAX_PLATFORMS": "cpu",
        # One thread is compared with one thread.
        **ONE_THREAD,
        "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    }
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    with subprocess.Popen(
        [python, "-W", "ignore", str(program), *arguments],
        env=variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        yield process


def asked(process: Any, question: object) -> Any:
    """Send `question` to a subject and return its answer."""
    ask(process, question)
    return answer(process)


def ask(process: Any, question: object) -> None:
    """Send `question` to a subject, whose `answer` is read later: others may work meanwhile."""
    print(json.dumps(question), file=process.stdin, flush=True)


def answer(process: Any) -> Any:
    """Return the next line that a subject prints; raise RuntimeError with its last words if it ended."""
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"{process.args} ended: {process.stderr.read()[-2000:]}")
    return json.loads(line)
