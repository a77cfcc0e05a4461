"""Every script of the gallery on the engine and on PyTensor, and their results side by side.

Run as `python examples/gallery/beside_pytensor.py [NAME ...]`. A script's results are the numbers, arrays,
strings and lists of them that it leaves in its variables; names that begin with an underscore are its own.
For PyTensor the word `engine` in the script's imports is replaced, nothing else. Prints a row for each
script. Exit code 1 if a script fails, if a result is missing, or if one differs by more than 1e-10.

PyTensor runs its Ops' own `perform`, so that nothing has to be compiled.
"""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
SCRIPTS = sorted(path.stem for path in HERE.glob("*.py") if path != Path(__file__).resolve())
LIBRARIES = ("engine", "pytensor")
TOLERANCE = 1e-10


def main(names: list[str]) -> int:
    """Compare the scripts with these names, or all; return the exit code."""
    with tempfile.TemporaryDirectory() as directory:
        found = [results_of(library, names or SCRIPTS, Path(directory)) for library in LIBRARIES]
    faults = {name: differences(*(results[name] for results in found)) for name in found[0]}
    for name, fault in faults.items():
        n_results = len(found[0][name])
        print(f"{name:24}{fault or f'{n_results} results agree'}")
    return 1 if any(faults.values()) else 0


def results_of(library: str, names: list[str], directory: Path) -> dict[str, Any]:
    """Return the results of scripts on a library, which runs in a process of its own."""
    file = directory / library
    environment = os.environ | {
        "PYTENSOR_FLAGS": "linker=py,cxx=,optimizer_excluding=inplace",
        "PYTHONPATH": str(HERE.parents[1]),
    }
    command = [sys.executable, __file__, "--library", library, str(file), *names]
    subprocess.run(command, env=environment, check=True)
    return pickle.loads(file.read_bytes())


def run(library: str, file: str, *names: str) -> int:
    """Run scripts on a library, and leave their results in a file; return 0."""
    results = {name: outcome(library, HERE / f"{name}.py") for name in names}
    Path(file).write_bytes(pickle.dumps(results))
    return 0


def outcome(library: str, script: Path) -> dict[str, Any]:
    """Return the results of a script; if it fails, the end of the traceback under the name `failure`."""
    variables: dict[str, Any] = {"__name__": "__main__", "__file__": str(script)}
    try:
        exec(compile(source(library, script), str(script), "exec"), variables)
    except Exception:
        return {"failure": f"{library}: {traceback.format_exc(limit=-3)}"}
    return {name: value for name, value in variables.items() if not name.startswith("_") and is_result(value)}


def source(library: str, script: Path) -> str:
    """Return a script's text with its imports from `library`."""
    text = script.read_text()
    if library == "engine":
        return text
    text = text.replace("import engine as pytensor", "import pytensor")
    return re.sub(r"^(import|from) engine\b", rf"\1 {library}", text, flags=re.MULTILINE)


def is_result(value: object) -> bool:
    """Return True for numbers, strings, arrays, and lists and tuples of them."""
    if isinstance(value, (list, tuple)):
        return all(map(is_result, value))
    return isinstance(value, (bool, int, float, complex, str, np.ndarray, np.generic))


def differences(ours: dict[str, Any], theirs: dict[str, Any]) -> str:
    """Return what differs between the results of one script, or an empty string."""
    if failure := ours.get("failure", "") + theirs.get("failure", ""):
        return failure
    if ours.keys() != theirs.keys():
        return f"one of the two has no {', '.join(sorted(ours.keys() ^ theirs.keys()))}"
    return ", ".join(name for name in ours if not agree(ours[name], theirs[name]))


def agree(ours: Any, theirs: Any) -> bool:
    """Return True if two results have the same kinds, shapes and numbers, up to rounding."""
    ours_flat, theirs_flat = list(leaves(ours)), list(leaves(theirs))
    if len(ours_flat) != len(theirs_flat):
        return False
    return all(map(leaves_agree, ours_flat, theirs_flat))


def leaves(value: Any) -> Iterator[Any]:
    """Yield the numbers, strings and arrays in a result."""
    if not isinstance(value, (list, tuple)):
        yield value
        return
    for part in value:
        yield from leaves(part)


def leaves_agree(ours: Any, theirs: Any) -> bool:
    """Return True if two arrays have one dtype and shape and nearly the same elements."""
    if isinstance(ours, str) or isinstance(theirs, str):
        return bool(ours == theirs)
    mine, other = np.asarray(ours), np.asarray(theirs)
    if (mine.dtype, mine.shape) != (other.dtype, other.shape):
        return False
    return np.allclose(mine, other, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--library"]:
        sys.exit(run(*sys.argv[2:]))
    sys.exit(main(sys.argv[1:]))
