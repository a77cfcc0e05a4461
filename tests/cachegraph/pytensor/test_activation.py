"""`CACHEGRAPH_PYTENSOR` installs the adapter into processes that run an installed wheel."""

from __future__ import annotations

import os
import subprocess
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from tests.cachegraph.pytensor.entry_points import needs_engine

ROOT = Path(__file__).resolve().parents[3]

BACKEND = """
def made(_=None):
    import numpy as np, pytensor, pytensor.tensor as pt
    x = pt.dvector("x")
    f = pytensor.function([x], pt.exp(x).sum())
    backend = getattr(f.maker.linker, "backend", "numba")
    return backend, type(f.maker).__name__, float(f(np.zeros(2)))
"""
WORKERS = """
import multiprocessing
from joblib import Parallel, delayed
from backend import made
if __name__ == "__main__":
    for method in ("spawn", "fork"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            print(*pool.map(made, [0])[0])
    for found in (*Parallel(2)(delayed(made)() for _ in range(1)), made()):
        print(*found)
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with a wheel of this checkout, and what is installed here."""
    from hatchling.build import build_wheel

    directory = tmp_path_factory.mktemp("installed")
    before = Path.cwd()
    os.chdir(ROOT)
    try:
        wheel = directory / build_wheel(str(directory))
    finally:
        os.chdir(before)
    venv.create(directory / "env", with_pip=False, symlinks=True)
    site = next((directory / "env").glob("lib/python*/site-packages"))
    with zipfile.ZipFile(wheel) as content:
        content.extractall(site)
    (site / "others.pth").write_text(sysconfig.get_paths()["purelib"])
    (site / "backend.py").write_text(BACKEND)
    return directory / "env" / "bin" / "python"


def run(python: Path, program: str, **environ: str) -> subprocess.CompletedProcess[str]:
    own = {
        name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "CACHEGRAPH_PYTENSOR")
    }
    return subprocess.run(
        [python, "-c", program],
        env={**own, **environ},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )


def test_without_the_variable_nothing_is_imported(python: Path) -> None:
    program = "import sys; print([m for m in sys.modules if m.startswith('cachegraph')], sys.meta_path)"
    done = run(python, program)
    assert done.stdout.startswith("[] ")
    assert "Watcher" not in done.stdout


def test_with_it_pytensor_is_not_imported_but_watched(python: Path) -> None:
    program = (
        "import sys, cachegraph; print('pytensor' in sys.modules, len(sys.modules), cachegraph.__file__)"
    )
    done = run(python, program, CACHEGRAPH_PYTENSOR="engine")
    assert done.stdout.startswith("False ")
    assert str(python.parents[1]) in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize("backend", [pytest.param("engine", marks=needs_engine), "numba"])
def test_the_variable_does_what_the_two_lines_do(python: Path, backend: str) -> None:
    program = (
        "import inspect, pytensor; from backend import made; print(*made());"
        "print(vars(pytensor.__spec__.loader).get('exec_module'), 'config' in inspect.getsource(pytensor))"
    )
    done = run(python, program, CACHEGRAPH_PYTENSOR=backend)
    first, second = done.stdout.splitlines()
    assert first == f"{backend} CachedMaker 2.0"
    assert second == "None True"


@needs_engine
def test_worker_processes_have_it_too(python: Path, tmp_path: Path) -> None:
    script = tmp_path / "workers.py"
    script.write_text(WORKERS)
    done = run(
        python,
        f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')",
        CACHEGRAPH_PYTENSOR="engine",
    )
    assert done.stdout.count("engine CachedMaker 2.0") == 4


def test_a_wrong_value_says_so_once_and_breaks_nothing(python: Path) -> None:
    program = "from backend import made; print(*made()); print(*made(1))"
    done = run(python, program, CACHEGRAPH_PYTENSOR="enigne")
    assert done.stdout.split() == ["numba", "FunctionMaker", "2.0"] * 2
    assert done.stderr.count("CACHEGRAPH_PYTENSOR=enigne does nothing") == 1
    assert "found numba, engine" in done.stderr


@needs_engine
def test_an_import_that_fails_is_watched_again(python: Path, tmp_path: Path) -> None:
    (tmp_path / "pytensor.py").write_text("raise RuntimeError('half installed')")
    program = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
try:
    import pytensor
except RuntimeError as error:
    print(error)
del sys.path[0]
from backend import made
print(*made())
"""
    assert run(python, program, CACHEGRAPH_PYTENSOR="engine").stdout.split() == [
        "half",
        "installed",
        "engine",
        "CachedMaker",
        "2.0",
    ]
