"""Every command, as a process of its own, wherever it may run: on a terminal of 80 columns, in ASCII, in a
pipe, in a pipe that is closed, and on caches that are empty, missing, read-only, or another user's.

The commands are those of the application: one that has no case here fails a test.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest
from rich.cells import cell_len

from cachegraph.cache import Artifact, Cache
from cachegraph.cli.app import COMMANDS, app
from cachegraph.key import CacheKey
from cachegraph.settings import Settings
from tests.terminals import run_on_terminal

ROOT = Path(__file__).resolve().parents[3]
NAME = "a function whose name does not end before the eightieth column, whatever is in front of it: é 漢"
KEY = CacheKey.build("kernel", {"graph": b"3"})
TRUSTED = "ab" * 32


class Case(NamedTuple):
    """A command: its arguments, and its exit codes where the cache is sound, where it is empty or missing,
    and where it is another user's who lets nobody in; what it prints as JSON, if anything."""

    arguments: str = ""
    sound: int = 0
    empty: int = 0
    private: int = 1
    has_json: bool = True


CASES = {
    "dir": Case(private=0),
    "config": Case(private=0),
    "stats": Case(),
    "list": Case(),
    "show": Case(KEY.hex, empty=1),
    "why-miss": Case(),
    "report": Case("{out}/report.html", has_json=False),
    "prune": Case("--dry-run --max-size 0"),
    "verify": Case(),
    "doctor": Case(),
    "export": Case("{out}/new.cgb", empty=1),
    "import": Case("{out}/old.cgb"),
    "key": Case(sound=2, empty=2, private=2, has_json=False),
    "key new": Case(sound=1, empty=1),
    "key show": Case(private=0),
    "key trust": Case(f"{TRUSTED} --name me", private=0, has_json=False),
    "key revoke": Case(f"--entry {KEY.hex} --dir {{cache}}", sound=2, empty=2, private=2),
    "clear": Case("--yes"),
    "completion": Case("bash", private=0, has_json=False),
}


def words_of_commands() -> Iterator[str]:
    for name in COMMANDS:
        command = app.get_command(click.Context(app), name)
        yield name
        yield from (f"{name} {inner}" for inner in getattr(command, "commands", ()))


every_command = pytest.mark.parametrize("words", CASES)


def test_every_command_has_a_case_here() -> None:
    assert sorted(CASES) == sorted(words_of_commands())


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a folder that everybody can enter, with a cache, a bundle of it, and a home with a key."""
    folder = Path(tempfile.mkdtemp(prefix="cachegraph-everywhere-"))
    folder.chmod(0o755)
    filled = Cache(Settings(folder / "cache", "readwrite", "compile"))
    for number in range(4):
        key = CacheKey.build("kernel", {"graph": str(number).encode()})
        artifact = Artifact(b"code", {"blob": bytes(70_000)}, {"compile": 1.0}, NAME)
        for _ in range(2):
            filled.get_or_build(key, lambda artifact=artifact: artifact, bytes)
    filled.note_bypass("function", "unfingerprintable", NAME)
    filled.flush()
    for name in ("home", "out"):
        (folder / name).mkdir()
    for words in ("key new", "export {out}/old.cgb"):
        assert run(words.split(), folder).returncode == 0
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def place(sound: Path, tmp_path: Path) -> Path:
    """Return a copy of that folder for one test."""
    return Path(shutil.copytree(sound, tmp_path / "place"))


def environment(place: Path, **more: str) -> dict[str, str]:
    home = {name: str(place / "home" / name.lower()) for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME")}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CACHEGRAPH_")}
    own = {"HOME": str(place / "home"), "XDG_CONFIG_HOME": str(place / "home"), "PYTHONPATH": str(ROOT)}
    return {**kept, **home, **own, "CACHEGRAPH_DIR": str(place / "cache"), **more}


def arguments_of(words: str, place: Path) -> list[str]:
    given = CASES[words].arguments.format(out=place / "out", cache=place / "cache")
    return [*words.split(), *given.split()]


def run(
    arguments: list[str], place: Path, stdout: int = subprocess.PIPE, **more: str
) -> subprocess.CompletedProcess[bytes]:
    """Run a command in a fresh process whose output is a pipe."""
    arguments = [one.format(out=place / "out", cache=place / "cache") for one in arguments]
    return subprocess.run(
        [sys.executable, "-m", "cachegraph", *arguments],
        env=environment(place, **more),
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        check=False,
    )


def said(done: subprocess.CompletedProcess[bytes]) -> bytes:
    """Return what a process printed, which no traceback is a part of."""
    text = (done.stdout or b"") + done.stderr
    assert b"Traceback" not in text, text.decode(errors="replace")
    return text


@pytest.mark.slow
@every_command
def test_on_a_terminal_no_line_is_longer_than_it(words: str, place: Path) -> None:
    for option in ([], ["--help"]):
        command = [sys.executable, "-m", "cachegraph", *arguments_of(words, place), *option]
        ran = run_on_terminal(command, environment(place))
        shown = ran.shown.decode()
        assert ran.code == (0 if option else CASES[words].sound), shown
        assert "\x1b" not in shown
        lines = [] if words == "completion" and not option else shown.split("\r\n")  # a script is as it is
        assert [line for line in lines if cell_len(line) > 80] == []


@pytest.mark.slow
@every_command
def test_in_ascii_nothing_else_is_printed_and_no_colours(words: str, place: Path) -> None:
    own = {"LC_ALL": "C", "LANG": "C", "PYTHONIOENCODING": "ascii"}
    in_ascii = {**own, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    for option, colour in (([], {"FORCE_COLOR": "1"}), (["--help"], {"NO_COLOR": "1"})):
        done = run([*arguments_of(words, place), *option], place, **in_ascii, **colour)
        assert done.returncode == (0 if option else CASES[words].sound), done.stderr
        assert said(done).isascii()
        assert b"\x1b" not in said(done)


@every_command
def test_a_reader_that_has_gone_is_no_traceback(words: str, place: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = run(arguments_of(words, place), place, stdout=writing)
    os.close(writing)
    said(done)
    assert done.returncode in (1, 2)  # what was asked for was not shown


@every_command
def test_where_standard_output_is_closed_the_command_says_so(words: str, place: Path) -> None:
    closing = 'exec "$@" >&-'
    command = [sys.executable, "-m", "cachegraph", *arguments_of(words, place)]
    done = subprocess.run(["sh", "-c", closing, "sh", *command], env=environment(place), capture_output=True)
    assert (done.returncode, said(done).count(b"standard output is closed")) == (1, 1)


@pytest.mark.parametrize("words", [words for words, case in CASES.items() if case.has_json])
def test_json_is_one_document(words: str, place: Path) -> None:
    done = run([*arguments_of(words, place), "--json"], place)
    assert done.returncode == CASES[words].sound, done.stderr
    assert b"\x1b" not in said(done)
    if done.stdout:
        assert isinstance(json.loads(done.stdout), dict | list)


@pytest.mark.parametrize("words", [words for words, case in CASES.items() if not case.has_json])
def test_what_prints_no_data_has_no_json(words: str, place: Path) -> None:
    done = run([*words.split(), "--json"], place)
    assert (done.returncode, b"No such option" in done.stderr) == (2, True)


@every_command
def test_an_empty_or_missing_cache_is_said_to_be_one(words: str, place: Path) -> None:
    shutil.rmtree(place / "cache")
    for make in (lambda: None, (place / "cache").mkdir):
        make()
        if words != "import":  # which makes one
            done = run(arguments_of(words, place), place)
            assert (done.returncode, said(done) != b"") == (CASES[words].empty, True)
            assert not (place / "cache" / "v1").exists()


@every_command
def test_a_file_in_place_of_a_cache_breaks_nothing(words: str, place: Path) -> None:
    shutil.rmtree(place / "cache")
    (place / "cache").write_text("mine")
    done = run(arguments_of(words, place), place)
    assert done.returncode in (0, 1, 2)
    assert said(done)
    assert (place / "cache").read_text() == "mine"


OTHER = 54321
AS_ANOTHER = """
import io, json, logging, os, pathlib, sys, tempfile
from contextlib import redirect_stderr, redirect_stdout
from cachegraph.cli import main

def run(arguments):
    sys.argv = ["cachegraph", *arguments]
    try:
        main()
    except SystemExit as end:
        return end.code or 0

commands, warming, theirs, environment = json.loads(sys.argv[1])
for arguments in warming:  # imports what the other user may not read
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        run(arguments)
os.environ.update(environment)
for folder in map(pathlib.Path, theirs):
    for path in (folder, *folder.rglob("*")):
        os.chown(path, {other}, {other})
results = []
for arguments in commands:
    with tempfile.TemporaryFile() as output:
        child = os.fork()
        if child == 0:
            os.setgroups([])
            os.setgid({other})
            os.setuid({other})
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
            code = 99
            try:
                code = run(arguments)
                sys.stdout.flush()
            except BaseException:
                import traceback
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        output.seek(0)
        results.append([status, output.read().decode(errors="replace")])
print("RESULTS" + json.dumps(results))
"""

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


def results_as_another(place: Path, arguments: Mapping[str, list[str]]) -> dict[str, tuple[int, str]]:
    """Return the exit code and the output of each command, run by another user on the caches in `place`."""
    warm = place.parent / "warm"
    shutil.copytree(place, warm)
    warming = [[one.replace(str(place), str(warm)) for one in given] for given in arguments.values()]
    theirs = [str(place / name) for name in ("home", "out")]
    given = list(arguments.values()), warming, theirs, environment(place)
    program = AS_ANOTHER.replace("{other}", str(OTHER))
    done = subprocess.run(
        [sys.executable, "-c", program, json.dumps(given)],
        env=environment(warm),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: Any = json.loads(done.stdout.split("RESULTS")[1])
    return {words: (code, text) for words, (code, text) in zip(arguments, found, strict=True)}


@pytest.fixture
def reachable(sound: Path) -> Iterator[Path]:
    """Return a copy of that folder which every user can enter."""
    folder = Path(tempfile.mkdtemp(prefix="cachegraph-everywhere-"))
    folder.chmod(0o755)
    yield Path(shutil.copytree(sound, folder / "place"))
    shutil.rmtree(folder)


NOT_WRITTEN = {"verify": 1, "doctor": 1, "clear": 1}
"""The exit codes of the commands that write, or say that nothing can be written, where the cache is only read."""


@needs_root
@pytest.mark.parametrize(
    ("owner", "folders", "files"),
    [(0, 0o700, 0o600), (0, 0o755, 0o644), (OTHER, 0o500, 0o400)],
    ids=["another user's", "another user's, open", "read-only"],
)
def test_a_cache_that_is_not_ones_to_write_is_read_or_refused_and_stays_as_it_is(
    owner: int, folders: int, files: int, reachable: Path
) -> None:
    cache = reachable / "cache"
    for path in (cache, *cache.rglob("*")):
        os.chown(path, owner, owner)
        path.chmod(folders if path.is_dir() else files)
    before = contents_of(cache)
    results = results_as_another(reachable, {words: arguments_of(words, reachable) for words in CASES})
    for words, (code, text) in results.items():
        assert "Traceback" not in text, text
        case = CASES[words]
        due = case.private if folders == 0o700 else NOT_WRITTEN.get(words, case.sound)
        assert code == due, (words, text)
    assert contents_of(cache) == before


def contents_of(directory: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(directory)): path.read_bytes() if path.is_file() else None
        for path in sorted(directory.rglob("*"))
    }
