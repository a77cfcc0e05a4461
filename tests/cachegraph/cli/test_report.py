"""`cachegraph report`: a page also of a damaged, a read-only, an empty and somebody else's cache."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cachegraph import Artifact, Cache
from cachegraph.cli.app import app
from cachegraph.key import CacheKey
from cachegraph.report import timeline
from cachegraph.report.decision_lines import timeline_of_log
from cachegraph.report.timeline import timeline_of_index
from cachegraph.store.maintenance.directory import CacheDirectory
from cachegraph.store.shared.store import SharedStore
from cachegraph.store.tiers import place
from cachegraph.units import format_seconds
from tests.cachegraph.cli.test_strangers import as_nobody, reachable

__all__ = ["reachable"]


def report(path: Path, *arguments: object) -> Any:
    return CliRunner().invoke(app, ["report", str(path), *map(str, arguments)], env={"COLUMNS": "200"})


def data_of(path: Path) -> Any:
    (text,) = re.findall(r'type="application/json">(.*?)</script>', path.read_text(), re.DOTALL)
    return json.loads(text)


@pytest.fixture
def filled(cache_directory: Path) -> Path:
    """Store three entries, use them once, and return the directory."""
    with_entries(cache_directory, "a", "b", "c")
    return cache_directory


def with_entries(directory: Path, *sources: str) -> None:
    cache = Cache(directory, namespace="toyc")
    for source in sources * 2:
        artifact = Artifact(b"code", {}, {"emit": 2.0}, f"program {source}")
        cache.get_or_build({"source": source}, lambda artifact=artifact: artifact, len)  # type: ignore[misc]
    cache.flush()


def test_the_page_has_what_other_commands_count(filled: Path, tmp_path: Path) -> None:
    done = report(tmp_path / "r.html")
    assert done.exit_code == 0, done.output
    stats = json.loads(CliRunner().invoke(app, ["stats", "--json"]).stdout)
    data = data_of(tmp_path / "r.html")
    of_toyc = next(level for level in data["levels"] if level["level"] == "toyc/entry")
    assert (of_toyc["hits"], of_toyc["misses"], of_toyc["namespace"]) == (3, 3, "toyc")
    counted = stats["levels"]["toyc/entry"]
    for name in ("entries", "bytes", "hits", "misses", "seconds_saved", "seconds_spent"):
        assert of_toyc[name] == counted[name]
    assert data["totals"] == {"held": stats["bytes"], "disk": stats["bytes_on_disk"]}
    (day,) = data["days"]
    assert (day["hits"], day["misses"]) == (3, {"never-seen": 3})
    assert sorted(row["what"] for row in data["costliest"]) == ["program a", "program b", "program c"]


def test_the_last_run_is_that_of_the_process_that_ended_last(filled: Path, tmp_path: Path) -> None:
    program = (
        "import sys, cachegraph; cache = cachegraph.Cache(sys.argv[1], namespace='toyc');"
        "[cache.get_or_build({'source': s}, lambda: b'', len) for s in 'ad']"
    )
    Cache(filled).flush()
    subprocess.run([sys.executable, "-c", "import time; time.sleep(0.05)"], check=True)
    subprocess.run([sys.executable, "-c", program, filled], check=True)
    report(tmp_path / "r.html")
    decisions = data_of(tmp_path / "r.html")["timeline"]["decisions"]
    outcomes = sorted((each["outcome"], each["what"], each["reason"]) for each in decisions)
    assert outcomes == [("hit", "program a", ""), ("miss", "", "never-seen")]


def test_of_a_long_run_the_longest_are_shown_and_the_others_counted(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = CacheDirectory(place(filled, None, "private"))
    assert [each.outcome for each in timeline_of_index(cache).decisions] == ["miss"] * 3 + ["hit"] * 3
    monkeypatch.setattr(timeline, "MOST_DECISIONS", 2)
    found = timeline_of_index(cache)
    assert [(each.outcome, each.seconds) for each in found.decisions] == [("miss", 2.0)] * 2
    assert found.left_out == 4


def test_a_log_tells_every_decision_of_its_last_run(
    cache_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    log.write_text(
        "2020-01-01T00:00:00.000Z [7] hit kernel 0123456789ab: old; loaded in 1 ms; saved 1 s; 4 B\n"
        "no line of ours\n9999-99-99T00:00:00Z [1] hit kernel 01: x\n"
    )
    monkeypatch.setenv("CACHEGRAPH_LOG", str(log))
    with_entries(cache_directory, "a; b")
    done = report(tmp_path / "r.html", "--log", log)
    assert done.exit_code == 0, done.output
    timeline = data_of(tmp_path / "r.html")["timeline"]
    assert timeline["source"] == str(log)
    assert [each["outcome"] for each in timeline["decisions"]] == ["miss", "hit"]
    miss, hit = timeline["decisions"]
    assert (miss["what"], miss["reason"], miss["process"]) == ("program a; b", "never-seen", os.getpid())
    assert miss["level"] == hit["level"] == "toyc/entry"
    assert miss["key"] == hit["key"]
    assert hit["saved"] == pytest.approx(2.0, rel=0.01)
    assert miss["at"] <= hit["at"]


def test_a_log_that_is_missing_is_a_problem_and_the_page_has_the_rest(filled: Path, tmp_path: Path) -> None:
    done = report(tmp_path / "r.html", "--log", tmp_path / "none")
    assert done.exit_code == 1
    assert "reading the last run" in done.stderr
    data = data_of(tmp_path / "r.html")
    assert len(data["problems"]) == 1
    assert len(data["costliest"]) == 3


def test_of_an_empty_cache_the_page_is_empty(tmp_path: Path) -> None:
    done = report(tmp_path / "r.html")
    assert done.exit_code == 0, done.output
    data = data_of(tmp_path / "r.html")
    assert (data["days"], data["costliest"], data["problems"]) == ([], [], [])


@pytest.mark.parametrize("content", [b"not a database at all" * 1000, b""])
def test_a_damaged_index_is_told_on_the_page_and_stays_as_it_is(
    content: bytes, cache_directory: Path, tmp_path: Path
) -> None:
    index = cache_directory / "v1" / "index.sqlite"
    index.parent.mkdir(parents=True)
    index.write_bytes(content)
    done = report(tmp_path / "r.html")
    assert done.exit_code == (1 if content else done.exit_code)
    assert done.exception is None or isinstance(done.exception, SystemExit)
    assert bool(data_of(tmp_path / "r.html")["problems"]) == (done.exit_code == 1)
    assert index.read_bytes() == content


def test_a_row_that_nobody_wrote_costs_one_section(filled: Path, tmp_path: Path) -> None:
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(filled / "v1" / "index.sqlite")) as connection, connection:
        connection.execute("UPDATE activity SET seconds = 9e999")
        connection.execute("UPDATE entry SET seconds = 'none' WHERE summary = 'program a'")
    done = report(tmp_path / "r.html")
    assert done.exit_code == 1
    data = data_of(tmp_path / "r.html")
    assert [row["what"] for row in data["costliest"] if row["what"] != "program a"]
    assert any("1 row of the index passed over" in problem for problem in data["problems"])


def test_entries_that_only_files_of_a_shared_directory_have_are_on_the_page(tmp_path: Path) -> None:
    store = SharedStore(tmp_path / "shared", network=False)
    store.put(CacheKey.build("kernel", {"graph": b"x"}), Artifact(b"code", {}, {"emit": 3.0}, "in a file"))
    store.close()
    done = report(tmp_path / "r.html", "--dir", tmp_path / "shared")
    assert done.exit_code == 0, done.output
    data = data_of(tmp_path / "r.html")
    assert [(row["what"], row["build"]) for row in data["costliest"]] == [("in a file", 3.0)]
    assert next(level for level in data["levels"] if level["level"] == "kernel")["entries"] == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("is_readable", [True, False])
def test_the_cache_of_another_user_is_shown_as_far_as_it_can_be_read_and_not_changed(
    is_readable: bool, reachable: Path
) -> None:
    cache, mine = reachable / "cache", reachable / "mine"
    with_entries(cache, "a", "b", "c")
    for path in (cache, *cache.rglob("*")):
        path.chmod((0o755 if path.is_dir() else 0o644) if is_readable else 0o700)
    mine.mkdir()
    mine.chmod(0o777)
    before = {path: path.read_bytes() for path in cache.rglob("*") if path.is_file()}
    report(reachable / "first.html", "--dir", cache)  # imports modules that the other user cannot read

    def outcome() -> list[object]:
        done = report(mine / "r.html", "--dir", cache)
        return [done.exit_code, done.output, repr(done.exception)]

    code, output, exception = as_nobody(outcome)
    after = {path: path.read_bytes() for path in cache.rglob("*") if path.is_file()}
    assert {path: content for path, content in after.items() if path in before} == before
    if is_readable:
        assert code == 0, (output, exception)
        assert len(data_of(mine / "r.html")["costliest"]) == 3
    else:
        assert code == 1, (output, exception)
        assert "Permission denied" in output
        assert not (mine / "r.html").exists()


@pytest.mark.parametrize("place", ["folder", "none/r.html"])
def test_a_place_that_cannot_be_written_is_a_problem(place: str, filled: Path, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    done = report(tmp_path / place)
    assert done.exit_code == 1
    assert f"writing the report {tmp_path / place}" in done.stderr
    assert list(tmp_path.iterdir()) == [tmp_path / "folder"]


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.sampled_from(
            ["2026-01-01T00:00:00.000Z", "[1]", "hit", "miss", "kernel", "0123456789ab:", "bypass", "x:", ";"]
            + [
                "saved",
                "1.2.3",
                "s;",
                "9e99",
                "h",
                "loaded in",
                "found;",
                "evicted;",
                "-1",
                "us",
                "\u0663",
                "\n",
            ]
        )
    )
)
def test_a_log_may_say_anything(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "log").write_text(" ".join(words), encoding="utf-8")
    json.dumps(timeline_of_log(tmp_path / "log"), allow_nan=False)


@pytest.mark.parametrize("seconds", [0.0, 5e-6, 0.0123, 4.56, 600.0, 9000.0, -0.25])
def test_seconds_of_a_log_are_read_as_they_were_written(seconds: float, tmp_path: Path) -> None:
    log = tmp_path / "log"
    line = f"hit kernel 0123456789ab: loaded in 1 ms; saved {format_seconds(seconds)}; 4 B"
    log.write_text(f"2026-01-01T00:00:00.000Z [7] {line}\n")
    (decision,) = timeline_of_log(log).decisions
    assert decision.saved == pytest.approx(seconds, rel=0.01)
    assert (decision.seconds, decision.what) == (pytest.approx(0.001), "")
