"""What a new user has: the wheel, built from the sdist, in an environment of its own, outside the checkout.

A second environment has only what docs/library.md calls a small installation. pip fetches the dependencies; where
it reaches no index, these tests are skipped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import venv
from pathlib import Path

import pytest

from tests.flow.page_snippets import HAS_PYTENSOR, ROOT, run_page, to_run

pytestmark = pytest.mark.slow
SMALL = ("numpy", "xxhash", "platformdirs", "cloudpickle")
PROGRAM = Path(__file__).with_name("typed_program.py")


def run(*words: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command with nothing of the checkout on its path."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env=environment | {"COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with the sdist, and the wheel that was built from it."""
    directory = tmp_path_factory.mktemp("built")
    done = run(sys.executable, "-m", "build", "--no-isolation", "--outdir", directory, ROOT, cwd=directory)
    assert done.returncode == 0, done.stdout + done.stderr
    return directory


def environment(directory: Path, *installs: tuple[str, ...]) -> Path:
    """Return the Python of a new environment, after the given runs of pip install."""
    venv.create(directory, with_pip=True)
    python = directory / "bin" / "python"
    for words in installs:
        done = run(
            *(python, "-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", *words),
            cwd=directory,
        )
        if done.returncode and "No matching distribution" in done.stderr:
            pytest.skip(f"pip reaches no index: {done.stderr[-300:]}")
        assert done.returncode == 0, done.stderr
    return python


@pytest.fixture(scope="module")
def python(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of an environment with the wheel and its dependencies."""
    (wheel,) = built.glob("*.whl")
    extras = "[pytensor]" if HAS_PYTENSOR else ""
    return environment(tmp_path_factory.mktemp("full") / "venv", (f"{wheel}{extras}", "mypy"))


@pytest.fixture(scope="module")
def small_python(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of an environment with the wheel and little else."""
    (wheel,) = built.glob("*.whl")
    return environment(tmp_path_factory.mktemp("small") / "venv", ("--no-deps", str(wheel)), SMALL)


def test_the_sdist_holds_what_tests_and_pages_need(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    needed = ["tests/conftest.py", "docs/tutorial.md", "docs/decisions/index.md", "mkdocs.yml", "Makefile"]
    needed += [
        ".github/workflows/tests.yml",
        "migrations/0001_initial.sql",
        "examples/nile/demo.py",
        "tools/set-up",
        "constraints.txt",
    ]
    assert not [name for name in needed if name not in names]
    assert not [name for name in names if name.startswith((".venv", "build", ".cache"))]


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md", "docs/library.md", "docs/sharing.md"])
def test_pages_run_in_an_environment_with_the_wheel(page: str, python: Path, tmp_path: Path) -> None:
    done = run_page(to_run(ROOT / page), tmp_path / "page", python)
    assert done.returncode == 0, done.stderr


def test_what_runs_is_the_wheel(python: Path, tmp_path: Path) -> None:
    done = run(
        python, "-c", "import cachegraph, engine; print(cachegraph.__file__, engine.__file__)", cwd=tmp_path
    )
    assert [Path(word).is_relative_to(python.parents[1]) for word in done.stdout.split()] == [True, True]


def test_the_commands_help_in_80_columns(python: Path, tmp_path: Path) -> None:
    command = python.with_name("cachegraph")
    for words in (["--help"], ["stats", "--help"], ["why-miss", "--help"]):
        done = run(command, *words, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert max(map(len, done.stdout.splitlines())) <= 80


def test_mypy_knows_the_public_types(python: Path, tmp_path: Path) -> None:
    shutil.copy(PROGRAM, tmp_path)
    done = run(python, "-m", "mypy", "--strict", PROGRAM.name, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_small_installation_has_the_cache_as_a_library(small_python: Path, tmp_path: Path) -> None:
    snippets = [
        snippet._replace(text="\n".join(_without_commands(snippet.text)))
        if snippet.language == "console"
        else snippet
        for snippet in to_run(ROOT / "docs" / "library.md")
    ]
    done = run_page(snippets, tmp_path / "page", small_python)
    assert done.returncode == 0, done.stderr


def _without_commands(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith("$ cachegraph")]


@pytest.mark.parametrize(
    ("words", "needed"),
    [
        (["-m", "cachegraph", "stats"], "click"),
        (["-c", "import cachegraph.pytensor; cachegraph.pytensor.install()"], "pytensor"),
        (
            ["-c", "import engine, engine.tensor as pt; x = pt.vector(); engine.function([x], x + 1)"],
            "msgspec",
        ),
    ],
)
def test_what_a_small_installation_lacks_says_its_name(
    words: list[str], needed: str, small_python: Path, tmp_path: Path
) -> None:
    done = run(small_python, *words, cwd=tmp_path)
    assert done.returncode != 0
    assert needed in done.stderr.splitlines()[-1]
