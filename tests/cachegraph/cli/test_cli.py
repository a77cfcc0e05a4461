"""The command line: output for people and for programs, and exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cachegraph.cache import Artifact, Cache, Hit
from cachegraph.cli.app import app
from cachegraph.key import LEVELS, CacheKey
from cachegraph.settings import Settings
from cachegraph.store.local.store import LocalStore
from tests.terminals import run_on_terminal

ROOT = Path(__file__).resolve().parents[3]

LISTING = ["stats", "list", "prune", "verify", "clear"]


class Output:
    """The output of one command, and its exit code."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def json(self) -> Any:
        assert self.code == 0, self.err
        return json.loads(self.out)


@pytest.fixture
def run(cache_directory: Path) -> Callable[..., Output]:
    """Return a function that runs a command on this test's directory."""

    def command(name: str, *arguments: str, directory: Path | None = None) -> Output:
        place = [] if directory is None else ["--dir", str(directory)]
        result = CliRunner().invoke(app, [name, *arguments, *place], env={"COLUMNS": "80"})
        return Output(result.exit_code, result.stdout, result.stderr)

    return command


Run = Callable[..., Output]


def key_of(text: str, level: str = "kernel") -> CacheKey:
    return CacheKey.build(level, {"scheme": b"test", "graph": text.encode()})


@pytest.fixture
def filled(cache_directory: Path) -> dict[str, CacheKey]:
    """Store three entries of two levels, use one of them twice, and count a bypass."""
    keys = {"add": key_of("add"), "mul": key_of("mul"), "model": key_of("model", "function")}
    cache = Cache(Settings(cache_directory, "readwrite", "compile"))
    cost = {"rewrite": 0.5, "compile": 1.5}
    for name, key in keys.items():
        artifact = Artifact(name.encode() * 30_000, {"graph": b"g" * 10}, cost, f"{name} of two vectors")
        cache.get_or_build(key, lambda artifact=artifact: artifact, len)  # type: ignore[misc]
    cache.get_or_build(keys["add"], lambda: Artifact(b""), len)
    cache.get_or_build(keys["add"], lambda: Artifact(b""), len)
    cache.note_bypass("function", "profiling")
    cache.flush()
    cache._store.close()
    return keys


@pytest.mark.parametrize("start", [["-m", "cachegraph"], ["-c", "from cachegraph.cli import main; main()"]])
def test_it_runs_as_a_module_and_as_a_script(start: list[str], cache_directory: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, *start, "dir"], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{cache_directory}\n"


def test_dir_prints_the_directory(run: Run, tmp_path: Path) -> None:
    assert run("dir", directory=tmp_path / "x").out == f"{tmp_path / 'x'}\n"
    assert run("dir", "--json", directory=tmp_path / "x").json == {"directory": str(tmp_path / "x")}
    assert not (tmp_path / "x").exists()


def test_a_relative_directory_is_made_absolute(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("dir", directory=Path("here")).out == f"{tmp_path / 'here'}\n"


@pytest.mark.parametrize("exists", [False, True])
@pytest.mark.parametrize("name", LISTING)
@pytest.mark.parametrize("as_json", [[], ["--json"]])
def test_an_empty_or_absent_directory_is_fine_and_stays_so(
    name: str, as_json: list[str], exists: bool, run: Run, cache_directory: Path
) -> None:
    if exists:
        cache_directory.mkdir()
    output = run(name, *as_json)
    assert output.code == 0, output.err
    assert cache_directory.exists() == exists
    assert not exists or list(cache_directory.iterdir()) == []


def test_stats_of_nothing_has_all_four_levels(run: Run, cache_directory: Path) -> None:
    counts: dict[str, float | None] = dict.fromkeys(("entries", "bytes", "hits", "misses"), 0)
    nothing = counts | {"seconds_saved": 0.0, "seconds_spent": 0.0, "hit_rate": None}
    assert run("stats", "--json").json == {
        "directory": str(cache_directory),
        "bytes": 0,
        "bytes_on_disk": 0,
        "levels": dict.fromkeys(LEVELS, nothing),
        "misses": {},
        "bypasses": {},
        "seconds_saved": 0.0,
        "seconds_spent": 0.0,
        "days": [],
        "unprofitable": [],
        "entries_of_strangers": 0,
    }


def test_stats_adds_up(run: Run, filled: dict[str, CacheKey]) -> None:
    stats = run("stats", "--json").json
    counts = ("entries", "hits", "misses")
    assert {level: [held[name] for name in counts] for level, held in stats["levels"].items()} == {
        "function": [1, 0, 1],
        "op": [0, 0, 0],
        "kernel": [2, 2, 2],
        "numba": [0, 0, 0],
    }
    listed = {entry["key"]: entry["bytes"] for entry in run("list", "--json").json}
    assert stats["levels"]["function"]["bytes"] == listed[filled["model"].hex] > 150_010
    assert stats["levels"]["kernel"]["bytes"] == listed[filled["add"].hex] + listed[filled["mul"].hex]
    assert stats["bytes"] == sum(listed.values()) - 2 * 10, "all three have one blob, which is there once"
    assert (stats["misses"], stats["bypasses"]) == ({"never-seen": 3}, {"profiling": 1})
    assert stats["seconds_spent"] == 6.0
    assert stats["levels"]["kernel"]["seconds_spent"] == 4.0
    assert 3.9 < stats["levels"]["kernel"]["seconds_saved"] == stats["seconds_saved"] < 4.0
    assert stats["bytes_on_disk"] > stats["bytes"] > 330_000
    assert stats["unprofitable"] == []


def test_stats_tells_the_last_days_apart(
    run: Run, filled: dict[str, CacheKey], cache_directory: Path
) -> None:
    import sqlite3

    connection = sqlite3.connect(cache_directory / "v1" / "index.sqlite")
    (today,) = connection.execute("SELECT day FROM activity").fetchone()
    for day in (1, 3, 20):
        row = (today - day, "op", "miss", "evicted", 10 + day, 0.5)
        connection.execute("INSERT INTO activity VALUES (?, ?, ?, ?, ?, ?)", row)
    connection.commit()
    connection.close()
    days = run("stats", "--json").json["days"]
    assert [(day["hits"], day["misses"], day["bypasses"]) for day in days] == [
        (2, 3, 1),
        (0, 11, 0),
        (0, 13, 0),
    ]
    assert days[0]["day"] == time.strftime("%Y-%m-%d", time.gmtime(today * 86400))
    assert days[1]["seconds_spent"] == 0.5
    assert len(run("stats", "--days", "2", "--json").json["days"]) == 2
    assert len(run("stats", "--days", "30", "--json").json["days"]) == 4
    assert run("stats", "--json").json["misses"]["evicted"] == 54, "reasons are of all days"
    assert days[1]["day"] in run("stats").out
    assert run("stats", "--days", "0").code == 2


def test_stats_shows_hit_rates_in_percent(run: Run, filled: dict[str, CacheKey]) -> None:
    assert run("stats", "--json").json["levels"]["kernel"]["hit_rate"] == 0.5
    assert run("stats", "--json").json["levels"]["op"]["hit_rate"] is None
    assert run("stats", "--json").json["days"][0]["hit_rate"] == 0.4
    lines = {line.split()[0]: line for line in run("stats").out.splitlines() if line}
    assert "50.0 %" in lines["kernel"]
    assert "%" not in lines["op"]
    assert "40.0 %" in lines[time.strftime("%Y-%m-%d", time.gmtime())]


def test_reset_forgets_counts_and_keeps_entries_and_their_uses(run: Run, filled: dict[str, CacheKey]) -> None:
    uses = [entry["uses"] for entry in run("list", "--json").json]
    assert run("stats", "--reset").code == 0
    stats = run("stats", "--json").json
    assert (stats["levels"]["kernel"]["hits"], stats["levels"]["kernel"]["misses"]) == (0, 0)
    assert (stats["misses"], stats["bypasses"], stats["days"]) == ({}, {}, [])
    assert stats["levels"]["kernel"]["entries"] == 2
    assert [entry["uses"] for entry in run("list", "--json").json] == uses


def test_reset_of_a_namespace_keeps_the_counts_of_others(run: Run, filled: dict[str, CacheKey]) -> None:
    assert run("stats", "--reset", "--namespace", "toyc").code == 0
    assert run("stats", "--json").json["levels"]["kernel"]["hits"] == 2


def test_reset_makes_no_cache_and_refuses_counts_of_others(run: Run, cache_directory: Path) -> None:
    assert run("stats", "--reset").code == 0
    assert not cache_directory.exists()
    assert run("stats", "--reset", "--remote", "https://localhost/x").code == 2


def test_a_filter_selects_by_text_before_the_limit(run: Run, filled: dict[str, CacheKey]) -> None:
    def listed(*arguments: str) -> list[str]:
        return [entry["summary"].split()[0] for entry in run("list", "--json", *arguments).json]

    assert listed("--filter", "ADD of") == ["add"]
    assert listed("--filter", "of two", "--limit", "1", "--sort", "key") == listed("--sort", "key")[:1]
    assert listed("--filter", "mul", "--limit", "1") == ["mul"]
    assert listed("--filter", "mul", "--level", "function") == []
    assert "no entries" in run("list", "--filter", "nothing like it").out


def test_stats_shows_hits_that_do_not_pay(run: Run, cache_directory: Path) -> None:
    cache = Cache(Settings(cache_directory, "readwrite", "compile"))

    def load(payload: bytes) -> bytes:
        time.sleep(0.01)
        return payload

    for _ in range(3):
        cache.get_or_build(
            key_of("slow"), lambda: Artifact(b"", {}, {"compile": 0.001}, "slow to load"), load
        )
        cache.get_or_build(key_of("fine"), lambda: Artifact(b"", {}, {"compile": 1.0}), load)
        cache.get_or_build(key_of("a note"), lambda: Artifact(b"", {}, {"compile": 0.0}), len)
    cache.flush()
    cache._store.close()
    (entry,) = run("stats", "--json").json["unprofitable"]
    assert (entry["key"], entry["uses"]) == (key_of("slow").hex, 2)
    assert "slow to load" in run("stats").out


def test_stats_is_readable(run: Run, filled: dict[str, CacheKey]) -> None:
    lines = run("stats").out.splitlines()
    assert [line.split() for line in lines if line.startswith("kernel")] == [
        ["kernel", "2", "182.1", "kB", "2", "2", "50.0", "%", "4", "s", "4", "s"]
    ]
    assert "never-seen       3" in lines
    assert "profiling       1" in lines
    assert lines[-1] == "saved 4 s, spent 6 s"


@pytest.mark.parametrize("name", ["stats", "list", "prune"])
def test_tables_fit_on_80_columns(name: str, run: Run, filled: dict[str, CacheKey]) -> None:
    arguments = ["--max-size", "0", "--dry-run"] if name == "prune" else []
    lines = run(name, *arguments, directory=None).out.splitlines()
    assert max(len(line) for line in lines if str(filled) not in line and "/" not in line) <= 80


def test_list_has_the_last_used_first(run: Run, filled: dict[str, CacheKey]) -> None:
    entries = run("list", "--json").json
    assert [entry["key"] for entry in entries] == [filled[name].hex for name in ("add", "model", "mul")]
    first = entries[0]
    assert (first["level"], first["uses"]) == ("kernel", 2)
    assert 90_010 < first["bytes"] < 91_500
    assert (first["seconds"], first["build_seconds"]) == ({"compile": 1.5, "rewrite": 0.5}, 2.0)
    assert first["summary"] == "add of two vectors"


def test_list_is_readable(run: Run, filled: dict[str, CacheKey]) -> None:
    rows = run("list").out.splitlines()[2:]
    assert [row.split()[0] for row in rows] == [filled[name].hex[:12] for name in ("add", "model", "mul")]
    assert "add of two vectors" in rows[0]


def test_list_shortens_what_does_not_fit(run: Run, cache_directory: Path) -> None:
    store = LocalStore(cache_directory)
    store.put(key_of("a"), Artifact(b"", summary="a very long summary " * 10))
    store.close()
    (row,) = run("list").out.splitlines()[2:]
    assert len(row) == 80
    assert row.endswith("…")
    size = json.loads(run("list", "--json").out)[0]["bytes"]
    begin = [key_of("a").hex[:12], "kernel", str(size), "B"]
    assert row.split()[:4] == begin, "only the summary is shortened"


def test_square_brackets_in_a_summary_are_no_markup(run: Run, cache_directory: Path) -> None:
    store = LocalStore(cache_directory)
    store.put(key_of("a"), Artifact(b"", summary="x[0] [bold]y[/]"))
    store.close()
    assert "x[0] [bold]y[/]" in run("list").out


@pytest.mark.parametrize("digits", [4, 12, 32])
def test_show_takes_the_first_digits_of_a_key(digits: int, run: Run, filled: dict[str, CacheKey]) -> None:
    key = filled["add"]
    shown = run("show", key.hex[:digits].upper(), "--json").json
    assert shown["key"] == key.hex
    parts = [(part["name"], part["bytes"], bytes.fromhex(part["digest"])) for part in shown["parts"]]
    assert parts == [(name, len(part), key.part_digests[name]) for name, part in key.parts]
    assert [(blob["name"], blob["bytes"]) for blob in shown["blobs"]] == [("", 90_000), ("graph", 10)]
    assert shown["uses"] == 2


def test_show_is_readable(run: Run, filled: dict[str, CacheKey]) -> None:
    output = run("show", filled["add"].hex).out
    for piece in (
        "add of two vectors",
        "used     2 times",
        "rewrite   500 ms",
        "compile    1.5 s",
        "total        2 s",
    ):
        assert piece in output
    assert filled["add"].part_digests["graph"].hex() in output
    assert "(payload)" in output


def test_show_of_an_unknown_key_is_a_problem(run: Run, filled: dict[str, CacheKey]) -> None:
    output = run("show", "00000000")
    assert output.code == 1
    assert "no key in" in output.err
    assert run("show", "00", directory=Path("/nonexistent/cachegraph")).code == 2


def test_show_of_an_ambiguous_key_is_a_problem(run: Run, cache_directory: Path) -> None:
    store = LocalStore(cache_directory)
    for i in range(17):
        store.put(key_of(str(i)), Artifact(b""))
    firsts = [entry.hex[0] for entry in store.scan()]
    store.close()
    output = run("show", max(firsts, key=firsts.count))
    assert output.code == 1
    assert "give more digits" in output.err


def test_show_lists_the_entries_that_one_refers_to(run: Run, cache_directory: Path) -> None:
    store = LocalStore(cache_directory)
    store.put(key_of("model", "function"), Artifact(b"", references=[key_of("add").digest]))
    store.put(key_of("add"), Artifact(b""))
    store.close()
    assert run("show", key_of("model", "function").hex, "--json").json["references"] == [key_of("add").hex]
    assert run("show", key_of("model", "function").hex).out.splitlines()[-1].strip() == key_of("add").hex
    assert run("show", key_of("add").hex, "--json").json["references"] == []


@pytest.mark.parametrize("key", ["", "xyz", "%", "__"])
def test_show_of_what_is_no_key_is_wrong_usage(key: str, run: Run) -> None:
    assert run("show", key).code == 2


def test_show_of_a_damaged_encoding_is_a_problem(
    run: Run, filled: dict[str, CacheKey], cache_directory: Path
) -> None:
    import sqlite3

    connection = sqlite3.connect(cache_directory / "v1" / "index.sqlite")
    connection.execute("UPDATE encoding SET content = x'00'")
    connection.commit()
    connection.close()
    output = run("show", filled["add"].hex)
    assert output.code == 1
    assert "is damaged" in output.err


@pytest.mark.parametrize(
    "arguments", [["--max-size", "much"], ["--older-than", "90"], ["--max-size"], ["--nonsense"]]
)
def test_prune_with_wrong_arguments_is_wrong_usage(arguments: list[str], run: Run) -> None:
    assert run("prune", *arguments).code == 2


def test_a_dry_run_removes_nothing(run: Run, filled: dict[str, CacheKey]) -> None:
    output = run("prune", "--max-size", "0", "--dry-run")
    assert "would remove 3 entries, 4 blobs, 0 leftovers" in output.out
    plan = run("prune", "--max-size", "0", "--dry-run", "--json").json
    assert plan["dry_run"]
    assert {entry["key"] for entry in plan["entries"]} == {key.hex for key in filled.values()}
    assert plan["bytes_after"] < 120_000 < 300_000 < plan["bytes_before"]
    assert len(run("list", "--json").json) == 3


def test_prune_by_size_keeps_what_saves_the_most_a_byte(run: Run, filled: dict[str, CacheKey]) -> None:
    before = run("prune", "--dry-run", "--json").json["bytes_before"]
    pruned = run("prune", "--max-size", str(before - 80_000), "--json").json
    assert [entry["key"] for entry in pruned["entries"]] == [
        filled["model"].hex
    ]  # takes as long as mul to build, and is larger
    assert pruned["entries"][0]["why"].startswith("pruned: to keep ")
    assert {entry["key"] for entry in run("list", "--json").json} == {filled["add"].hex, filled["mul"].hex}


def test_prune_by_age(run: Run, filled: dict[str, CacheKey]) -> None:
    for option in ("--older-than", "--unused-for"):
        assert run("prune", option, "1h", "--json").json["entries"] == []
    time.sleep(0.15)
    assert "removed 3 entries, 4 blobs" in run("prune", "--older-than", "0.1s").out
    assert run("list", "--json").json == []


def test_prune_by_level_alone_removes_all_of_it(run: Run, filled: dict[str, CacheKey]) -> None:
    assert run("prune", "--level", "kernel", "--older-than", "1h", "--json").json["entries"] == []
    pruned = run("prune", "--level", "kernel", "--json").json["entries"]
    assert {(entry["level"], entry["why"]) for entry in pruned} == {("kernel", "pruned: level kernel")}
    assert [entry["level"] for entry in run("list", "--json").json] == ["function"]


def test_prune_of_stale_entries_keeps_those_of_this_release(
    run: Run, filled: dict[str, CacheKey], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("prune", "--stale", "--json").json["entries"] == []
    monkeypatch.setattr("cachegraph.store.maintenance.staleness.RECORD_FORMAT", 99)
    assert len(run("prune", "--stale", "--json").json["entries"]) == 3


LONG_WORK = """
import time
import cachegraph.cli.output as output
output._LONG = 0.0
with output.progress("checking", 3) as advance:
    time.sleep(0.3)
    advance(1)
    advance(1)
    time.sleep(0.6)
"""


def test_long_work_shows_its_progress_on_a_terminal_alone() -> None:
    command, environment = [sys.executable, "-c", LONG_WORK], {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = run_on_terminal(command, environment, only_errors=True)
    shown = ran.shown.decode()
    assert (ran.code, ran.output) == (0, b"")
    assert shown.index("checking, ") < shown.index("checking: 2 of 3, ")
    assert shown.endswith("\r")
    done = subprocess.run(command, env=environment, capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")


def test_verify_of_what_is_sound(run: Run, filled: dict[str, CacheKey], cache_directory: Path) -> None:
    assert run("verify").out == f"{cache_directory}: all is as it was written\n"
    assert run("verify", "--json").json == {"directory": str(cache_directory), "problems": []}


def test_verify_of_what_is_damaged_says_so_removes_it_and_ends_with_1(
    run: Run, filled: dict[str, CacheKey], cache_directory: Path
) -> None:
    blob = max((cache_directory / "v1" / "blobs").glob("*/*"), key=lambda path: path.stat().st_size)
    blob.write_bytes(b"damaged")
    output = run("verify", "--json")
    assert output.code == 1
    problems = json.loads(output.out)["problems"]
    assert [(one["what"], one["done"]) for one in problems] == [("blob", "removed"), ("entry", "removed")]
    assert problems[0]["name"] == blob.name
    assert problems[1]["name"] == filled["model"].hex
    assert len(list((cache_directory / "v1" / "damaged").iterdir())) == 2
    assert run("verify").code == 0


def test_verify_quarantines_a_damaged_index(run: Run, cache_directory: Path) -> None:
    index = cache_directory / "v1" / "index.sqlite"
    index.parent.mkdir(parents=True)
    index.write_bytes(b"not a database at all" * 1000)
    output = run("verify")
    assert output.code == 1
    assert "quarantined" in output.out
    assert not index.exists()
    assert run("verify").code == 0


def test_clear_without_a_terminal_wants_yes(run: Run, filled: dict[str, CacheKey]) -> None:
    output = run("clear")
    assert output.code == 2
    assert "give --yes" in output.err
    assert len(run("list", "--json").json) == 3


def test_clear_removes_everything(run: Run, filled: dict[str, CacheKey], cache_directory: Path) -> None:
    assert run("clear", "--yes", "--json").json["bytes"] > 300_000
    assert list(cache_directory.iterdir()) == []
    assert run("clear", "--yes").out.startswith("nothing in")


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals here")
@pytest.mark.parametrize(("answer", "code", "left"), [("y\n", 0, 0), ("n\n", 1, 3)])
def test_clear_asks_on_a_terminal(
    answer: str, code: int, left: int, run: Run, filled: dict[str, CacheKey], cache_directory: Path
) -> None:
    import pty

    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "cachegraph", "clear", "--dir", str(cache_directory)],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    os.write(ours, answer.encode())
    process.communicate(timeout=60)
    os.close(ours)
    os.close(theirs)
    assert process.returncode == code
    assert len(run("list", "--json").json) == left


@pytest.mark.parametrize("name", ["stats", "list", "prune", "show"])
def test_a_damaged_index_is_a_problem_and_stays_as_it_is(name: str, run: Run, cache_directory: Path) -> None:
    index = cache_directory / "v1" / "index.sqlite"
    index.parent.mkdir(parents=True)
    index.write_bytes(b"not a database at all" * 1000)
    output = run(name, *(["00"] if name == "show" else []))
    assert output.code == 1
    assert "is damaged: file is not a database" in output.err
    assert index.read_bytes() == b"not a database at all" * 1000


def test_clear_removes_a_damaged_index(run: Run, cache_directory: Path) -> None:
    index = cache_directory / "v1" / "index.sqlite"
    index.parent.mkdir(parents=True)
    index.write_bytes(b"not a database at all" * 1000)
    assert run("clear", "--yes").code == 0
    assert run("stats").code == 0
    assert not index.exists()


def test_a_wrong_setting_is_wrong_usage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CACHEGRAPH_MODE", "sometimes")
    result = CliRunner().invoke(app, ["stats"])
    assert result.exit_code == 2
    assert "CACHEGRAPH_MODE" in result.stderr


def test_no_command_is_wrong_usage() -> None:
    assert CliRunner().invoke(app, []).exit_code == 2
    assert CliRunner().invoke(app, ["nonsense"]).exit_code == 2


def test_jobs_hit_after_the_command_line_was_used(
    run: Run, filled: dict[str, CacheKey], cache_directory: Path
) -> None:
    for name in ("stats", "list", "prune"):
        assert run(name).code == 0
    cache = Cache(Settings(cache_directory, "readonly", "compile"))
    assert isinstance(cache.lookup(filled["add"]), Hit)
    cache._store.close()
