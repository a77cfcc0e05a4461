"""The commands with other users' texts and directories, ASCII terminals, and wrong arguments."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cachegraph.cache import Artifact, Cache
from cachegraph.cli.app import app
from cachegraph.key import CacheKey
from cachegraph.settings import Settings
from cachegraph.store.artifacts import describe
from cachegraph.store.local.store import LocalStore
from cachegraph.store.shared.store import SharedStore
from cachegraph.units import format_ago, format_count
from cachegraph.visible_text import one_line

ROOT = Path(__file__).resolve().parents[3]
NOBODY = 54321
HOSTILE = "\x1b[31mred\x07 \x9b2J \u202egnp.exe\u2066 \u200b\nfunction 0000: hit\r é \u6f22"
"""Colours, a bell, a C1 sequence, reversed direction, invisible characters, a forged line, two letters."""

READING = ("list", "stats", "show", "why-miss", "prune", "verify")


def key_of(text: str) -> CacheKey:
    return CacheKey.build("kernel", {"graph": text.encode()})


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, [*map(str, arguments)], env={"COLUMNS": "200"})


@pytest.fixture
def peers(tmp_path: Path) -> SharedStore:
    """Return a shared directory with arbitrary texts of another user."""
    store = SharedStore(tmp_path / "shared", network=False)
    store.put(key_of("sound"), Artifact(b"a", summary="sound"))
    store.put(key_of("hostile"), Artifact(b"a", summary=HOSTILE))
    return store


def commands_that_show(key: str) -> list[list[str]]:
    return [["list"], ["show", key], ["prune", "--max-size", "0", "--dry-run"], ["stats"], ["verify"]]


def test_no_command_prints_what_a_terminal_obeys(peers: SharedStore) -> None:
    shown = ""
    for command in commands_that_show(key_of("hostile").hex):
        result = run(*command, "--dir", peers.layout.directory)
        assert result.exit_code == 0, result.output
        shown += result.output
    assert "\\x1b[31mred\\x07 \\x9b2J \\u202egnp.exe\\u2066 \\u200b\\nfunction 0000: hit\\r é" in shown
    assert all(line.isprintable() for line in shown.split("\n"))
    assert not any(line.startswith("function 0000") for line in shown.split("\n"))


def test_what_was_kept_of_a_miss_is_shown_and_not_obeyed(cache_directory: Path) -> None:
    cache = Cache(Settings(cache_directory, "readwrite", "compile"))
    cache.get_or_build(key_of("a"), lambda: Artifact(b"a"), bytes)
    cache.flush()
    with closing(sqlite3.connect(cache_directory / "v1" / "index.sqlite")) as index:
        index.execute("UPDATE miss SET reason = ?, detail = ?", ("\x1b]0;title\x07", "a\nb\x1b[2J"))
        index.commit()
    for arguments in ([], [key_of("a").hex]):
        result = run("why-miss", *arguments)
        assert result.exit_code == 0
        assert "\x1b" not in result.output
        assert "\\x1b]0;title\\x07" in result.output


@pytest.mark.parametrize("variables", [{"PYTHONIOENCODING": "ascii"}, {"LANG": "C", "LC_ALL": "C"}])
def test_a_terminal_that_knows_ascii_alone_shows_everything(
    variables: dict[str, str], peers: SharedStore
) -> None:
    key, environ = key_of("hostile").hex, {**os.environ, "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    program = f"""
import sys
from cachegraph.cli.app import app
for command in {commands_that_show(key)!r} + [["list", "--help"], ["show", "\\u00e9"]]:
    try:
        app([*command, "--dir", {str(peers.layout.directory)!r}])
    except SystemExit as end:
        print("exit", end.code)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env={**environ, **variables}, capture_output=True
    )
    text = done.stdout.decode("ascii", "replace")
    assert done.returncode == 0, done.stderr
    assert [line for line in text.splitlines() if line.startswith("exit")] == ["exit 0"] * 6 + ["exit 2"]
    assert "Traceback" not in done.stderr.decode("ascii", "replace")


@pytest.fixture
def reachable() -> Iterator[Path]:
    """Yield a directory that every user can enter."""
    path = Path(tempfile.mkdtemp(prefix="cachegraph-strangers-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


def as_nobody(work: Callable[[], Any]) -> Any:
    """Return the result of `work` in a process of another user than root."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        try:
            said = work()
        except BaseException as error:
            said = repr(error)
        os.write(writing, json.dumps(said).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        found = json.loads(pipe.read())
    os.waitpid(child, 0)
    return found


@pytest.mark.skipif(
    not hasattr(os, "setuid") or os.geteuid() != 0, reason="only root can become another user"
)
def test_the_directory_of_another_user_is_refused_in_one_line(reachable: Path) -> None:
    private = reachable / "private"
    for store in (LocalStore(private), SharedStore(private, network=False)):
        store.put(key_of("a"), Artifact(b"a"))
        store.close()
    private.chmod(0o700)
    arguments = [[name, *(["00"] if name == "show" else []), "--dir", str(private)] for name in READING]
    for command in (*arguments, ["list", "--dir", str(reachable / "none")], ["list", "--sort", "none"]):
        run(*command)  # imports modules that the other user cannot read
    import colorsys  # noqa: F401  # as rich does, at times

    def outcomes() -> list[Any]:
        results = [run(*command) for command in arguments]
        return [[result.exit_code, result.output, repr(result.exception)] for result in results]

    for code, output, exception in as_nobody(outcomes):
        assert code == 1, (output, exception)
        assert "Permission denied" in output, exception
        assert output.count("\n") == 1
    code, output = as_nobody(lambda: [(found := run("doctor", "--dir", private)).exit_code, found.output])
    assert (code, "Permission denied" in output) == (1, True)


NONSENSE: dict[str, dict[str, Any]] = {
    "a word for a time": {"last_used": "soon"},
    "no time": {"created": None},
    "a number with 400 digits": {"uses": 10**400},
    "no number": {"build_seconds": float("nan")},
    "for ever": {"load_seconds": float("inf")},
    "after the end": {"created": 1e300},
    "less than nothing": {"payload_size": -1},
    "a list": {"summary": ["x"]},
    "half a character": {"summary": "\ud800"},
    "no names": {"seconds": [1]},
    "no seconds": {"seconds": {"a": "b"}},
    "a book": {"level": "x" * 10_000},
    "a library": {"summary": "x" * 1_000_000},
}


def put_saying(store: SharedStore, key: CacheKey, fields: dict[str, Any]) -> None:
    """Put an entry whose description has those fields, as if written by hand with right checksums."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "cachegraph.store.shared.store.describe", lambda *given: describe(*given)._replace(**fields)
        )
        store.put(key, Artifact(b"a"))


@pytest.mark.parametrize("said", NONSENSE)
def test_an_entry_that_says_nonsense_is_passed_over_and_found_by_verify(
    said: str, peers: SharedStore
) -> None:
    put_saying(peers, key_of("hostile"), NONSENSE[said])
    where = ["--dir", peers.layout.directory]
    listed = run("list", "--json", *where)
    assert [entry["key"] for entry in json.loads(listed.stdout)] == [key_of("sound").hex]
    for command in (["stats"], ["prune", "--dry-run", "--unused-for", "1d"]):
        assert run(*command, *where).exit_code == 0
    shown = run("show", key_of("hostile").hex, *where)
    assert (shown.exit_code, "not what was written" in shown.output) == (1, True)
    found = run("verify", *where)
    assert (found.exit_code, "not what was written" in found.output) == (1, True)
    assert run("verify", *where).exit_code == 0


def test_a_row_that_says_nonsense_is_passed_over_and_found_by_verify(cache_directory: Path) -> None:
    store = LocalStore(cache_directory)
    for name in "ab":
        store.put(key_of(name), Artifact(b"a"))
    store.close()
    with closing(sqlite3.connect(cache_directory / "v1" / "index.sqlite")) as index:
        index.execute("UPDATE entry SET last_used = 'soon' WHERE digest = ?", (key_of("a").digest,))
        index.commit()
    listed = run("list")
    assert listed.exit_code == 1
    assert key_of("b").hex[:12] in listed.stdout
    assert "1 row passed over" in listed.stderr
    assert run("prune", "--dry-run", "--unused-for", "1d").exit_code == 0
    assert run("verify").exit_code == 1
    assert run("list").exit_code == 0


@pytest.mark.parametrize("name", READING)
def test_a_directory_that_is_given_and_holds_no_cache_is_wrong_usage(name: str, tmp_path: Path) -> None:
    arguments = [name, *(["00"] if name == "show" else [])]
    LocalStore(tmp_path / "cachegraph").put(key_of("a"), Artifact(b"a"))
    for given, advice in (
        (tmp_path / "mistyped", "there is no such directory"),
        (tmp_path, f"there is one in {tmp_path / 'cachegraph'}"),
        (tmp_path / "cachegraph" / "v1", "give the directory that v1 is in"),
    ):
        result = run(*arguments, "--dir", given)
        assert result.exit_code == 2
        assert f"there is no cache in {given}" in result.stderr
        assert advice in result.stderr
        assert result.stdout == ""


def test_a_cache_that_has_not_begun_yet_is_said_to_be_none(cache_directory: Path) -> None:
    assert run("verify").output == f"there is no cache in {cache_directory} yet\n"


@pytest.mark.parametrize("name", ["CACHEGRAPH_MODE", "CACHEGRAPH_MAX_SIZE"])
def test_a_bad_setting_is_wrong_usage(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "nonsense")
    result = run("stats")
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"reading {name}: found 'nonsense'" in result.stderr


def test_a_variable_that_is_no_setting_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CACHEGRAPH_MODDE", "off")
    result = run("stats")
    assert result.exit_code == 0
    assert "CACHEGRAPH_MODDE does nothing" in result.stderr


def test_no_home_is_wrong_usage_unless_a_directory_is_given(
    monkeypatch: pytest.MonkeyPatch, cache_directory: Path
) -> None:
    LocalStore(cache_directory).put(key_of("a"), Artifact(b"a"))
    monkeypatch.delenv("CACHEGRAPH_DIR")
    monkeypatch.setattr("cachegraph.user_directories._directory_of_user", lambda *_: "")
    result = run("list")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "set CACHEGRAPH_DIR" in result.stderr
    assert run("list", "--dir", cache_directory).exit_code == 0


def test_the_mode_off_does_not_keep_anybody_from_looking(
    monkeypatch: pytest.MonkeyPatch, cache_directory: Path
) -> None:
    LocalStore(cache_directory).put(key_of("a"), Artifact(b"a"))
    monkeypatch.setenv("CACHEGRAPH_MODE", "off")
    assert key_of("a").hex[:12] in run("list").stdout


def test_help_says_what_is_taken_where_no_directory_is_given() -> None:
    shown = " ".join(run("stats", "--help").output.replace("│", " ").split())
    assert "default: (CACHEGRAPH_DIR, or the user's cache directory)" in shown


def test_times_and_counts_are_said_as_people_say_them(cache_directory: Path) -> None:
    cache = Cache(Settings(cache_directory, "readwrite", "compile"))
    for _ in range(2):
        cache.get_or_build(key_of("a"), lambda: Artifact(b"a"), bytes)
    cache.flush()
    shown = run("show", key_of("a").hex).stdout
    assert "created  just now by cachegraph" in shown
    assert "used     1 time, last just now" in shown
    assert "would remove 1 entry, 0 blobs, 0 leftovers" in run("prune", "--max-size", "0", "--dry-run").stdout
    assert (format_ago(300), format_ago(-5), format_count(2, "entry", "entries")) == (
        "5 min ago",
        "just now",
        "2 entries",
    )


def test_what_is_printable_is_left_alone() -> None:
    assert one_line("x[0] é 漢 …") == "x[0] é 漢 …"


def test_list_shows_as_many_as_asked_for_in_the_order_asked_for(cache_directory: Path) -> None:
    store = LocalStore(cache_directory)
    for name, size, seconds in (("a", 10, 3.0), ("b", 30_000, 1.0), ("c", 200, 2.0)):
        store.put(key_of(name), Artifact(b"x" * size, seconds={"compile": seconds}))
        time.sleep(0.01)
    store.close()

    def order(*arguments: object, directory: Path = cache_directory) -> list[str]:
        listed = json.loads(run("list", "--json", *arguments, "--dir", directory).stdout)
        return [{key_of(name).hex: name for name in "abc"}[entry["key"]] for entry in listed]

    assert order() == order("--sort", "created") == ["c", "b", "a"]
    assert order("--sort", "size", "--limit", 2) == ["b", "c"]
    assert order("--sort", "build", "--limit", 1) == ["a"]
    assert order("--sort", "key") == sorted("abc", key=lambda name: key_of(name).digest)
    assert order("--limit", 0) == []
    assert order("--limit", 10**30) == order()
    assert run("list", "--sort", "nonsense").exit_code == 2


def test_a_shared_directory_is_listed_in_order_too(peers: SharedStore) -> None:
    where = ["--json", "--dir", peers.layout.directory]
    assert len(json.loads(run("list", *where).stdout)) == 2
    [dearest] = json.loads(run("list", "--sort", "size", "--limit", 1, *where).stdout)
    assert dearest["key"] == key_of("hostile").hex


def test_show_opens_the_one_file_of_a_shared_directory(
    peers: SharedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for i in range(20):
        peers.put(key_of(str(i)), Artifact(b"a"))
    looked_at: list[str] = []
    read_entry = SharedStore.read_entry

    def counted(self: SharedStore, name: str, path: Path) -> Any:
        looked_at.append(name)
        return read_entry(self, name, path)

    monkeypatch.setattr(SharedStore, "read_entry", counted)
    for digits in (32, 8):
        assert run("show", key_of("sound").hex[:digits], "--dir", peers.layout.directory).exit_code == 0
    assert looked_at == [key_of("sound").hex] * 2


@pytest.mark.parametrize("digits", [33, 34, 1000])
def test_more_digits_than_a_key_has_are_those_of_none(digits: int, cache_directory: Path) -> None:
    LocalStore(cache_directory).put(key_of("a"), Artifact(b"a"))
    result = run("show", key_of("a").hex.ljust(digits, "0"))
    assert (result.exit_code, "no key in" in result.output) == (1, True)


def test_the_cost_of_a_level_without_entries_is_not_looked_for_among_all(cache_directory: Path) -> None:
    store = LocalStore(cache_directory)
    store.put(key_of("a"), Artifact(b"a"))
    from cachegraph.store.local.index import _COST_OF_LEVEL

    explained = store.database.select_all(f"EXPLAIN QUERY PLAN {_COST_OF_LEVEL}", ("op",))
    assert any("INDEX entry_by_level (level=?)" in row[-1] for row in explained)
    assert not any("SCAN entry" in row[-1] for row in explained)
    store.close()
