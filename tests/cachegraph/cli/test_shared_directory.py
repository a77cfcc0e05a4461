"""The commands on a shared directory list the entries of every host."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cachegraph.cache import Artifact, Cache
from cachegraph.cli.app import app
from cachegraph.key import CacheKey
from cachegraph.settings import Settings
from cachegraph.store.local.store import LocalStore
from cachegraph.store.shared.store import SharedStore

KEYS = {name: CacheKey.build("kernel", {"graph": name.encode()}) for name in ("here", "there", "both")}


@pytest.fixture
def shared(tmp_path: Path) -> SharedStore:
    """Return a directory that another host has filled."""
    store = SharedStore(tmp_path / "shared", network=False)
    for name in ("there", "both"):
        artifact = Artifact(
            name.encode() * 30_000, {"graph": b"g"}, {"compile": 2.0}, f"{name} of two vectors"
        )
        store.put(KEYS[name], artifact)
    return store


@pytest.fixture
def run(shared: SharedStore) -> Callable[..., Any]:
    def command(name: str, *arguments: str, code: int = 0) -> Any:
        where = ["--dir", str(shared.layout.directory), "--json"]
        result = CliRunner().invoke(app, [name, *arguments, *where])
        assert result.exit_code == code, result.output
        return json.loads(result.stdout)

    return command


def test_what_others_wrote_is_listed_and_shown(run: Callable[..., Any], shared: SharedStore) -> None:
    assert {entry["key"] for entry in run("list")} == {KEYS["there"].hex, KEYS["both"].hex}
    shown = run("show", KEYS["there"].hex[:10])
    assert shown["summary"] == "there of two vectors"
    assert [(part["name"], part["bytes"]) for part in shown["parts"]] == [("graph", 5)]
    assert [(blob["name"], blob["bytes"]) for blob in shown["blobs"]] == [("", 150_000), ("graph", 1)]
    stats = run("stats")
    assert stats["directory"] == str(shared.layout.directory)
    assert stats["bytes"] > 270_000
    held = stats["levels"]["kernel"]
    assert held["entries"] == 2
    assert held["bytes"] == sum(entry["bytes"] for entry in run("list")) > 270_002


def test_hits_of_every_node_are_counted(run: Callable[..., Any], shared: SharedStore, tmp_path: Path) -> None:
    for node in ("first", "second"):
        cache = Cache(Settings(tmp_path / node, "readwrite", "compile", shared.layout.directory))
        cache.lookup(KEYS["there"])
        cache.lookup(KEYS["there"])
        cache.lookup(KEYS["here"])
        cache.flush()
    seen = run("stats")
    assert (seen["levels"]["kernel"]["hits"], seen["levels"]["kernel"]["misses"]) == (4, 2)
    assert seen["misses"] == {"never-seen": 2}
    [day] = seen["days"]
    assert (day["hits"], day["misses"]) == (4, 2)
    assert seen["seconds_saved"] == 8.0
    listed = {entry["key"]: entry["uses"] for entry in run("list", "--sort", "uses")}
    assert listed == {KEYS["there"].hex: 4, KEYS["both"].hex: 0}


def test_what_a_limit_would_have_cost_is_shown_for_the_uses_of_every_node(
    run: Callable[..., Any], shared: SharedStore, tmp_path: Path
) -> None:
    assert "no uses are recorded" in said(shared, "--what-if")
    for node in ("first", "second", "third"):
        cache = Cache(Settings(tmp_path / node, "readwrite", "compile", shared.layout.directory))
        cache.lookup(KEYS["there"])
        cache.flush()
    shown = run("prune", "--what-if", "--max-size", "1kB", "--max-size", "1GB")
    assert shown["limits"] == [
        {"max_size": 1000, "misses": 2, "seconds": 4.0},
        {"max_size": 1_000_000_000, "misses": 0, "seconds": 0.0},
    ]
    assert (shown["first_uses"], shown["reuses"]) == (1, 2)
    assert "2   100.0 %              4 s" in said(shared, "--what-if", "--max-size", "1kB")
    assert len(said(shared, "--what-if").splitlines()) == 9, "without limits, parts of what is held"


@pytest.mark.parametrize("arguments", [("--max-size", "1kB", "--max-size", "2kB"), ("--what-if", "--stale")])
def test_sizes_and_criteria_that_make_no_sense_together_are_refused(
    arguments: tuple[str, ...], shared: SharedStore
) -> None:
    refused = CliRunner().invoke(app, ["prune", *arguments, "--dir", str(shared.layout.directory)])
    assert refused.exit_code == 2
    assert "--what-if" in refused.stderr


def said(shared: SharedStore, *arguments: str) -> str:
    result = CliRunner().invoke(app, ["prune", *arguments, "--dir", str(shared.layout.directory)])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_what_is_in_the_index_and_in_files_is_listed_once(
    run: Callable[..., Any], shared: SharedStore
) -> None:
    local = LocalStore(shared.layout.directory)
    for name in ("here", "both"):
        local.put(KEYS[name], Artifact(name.encode(), seconds={"compile": 2.0}))
    local.close()
    assert len(run("list")) == 3
    assert run("stats")["levels"]["kernel"]["entries"] == 3


def test_a_user_of_the_directory_is_seen_beside_those_who_share_it(
    run: Callable[..., Any], shared: SharedStore, cache_directory: Path
) -> None:
    settings = Settings(cache_directory, "readwrite", "compile", shared.layout.directory)
    cache = Cache(settings)
    cache.get_or_build(KEYS["here"], lambda: Artifact(b"here", seconds={"compile": 1.0}), bytes)
    cache.flush()
    cache._store.close()
    assert len(run("list")) == 3


def test_where_an_entry_is_not_believed_nothing_is_removed_and_stats_say_so(
    run: Callable[..., Any], shared: SharedStore
) -> None:
    shared.layout.entry(KEYS["both"].hex).chmod(0o666)
    files = [path for path in shared.layout.root.rglob("*") if path.is_file()]
    for path in files:
        os.utime(path, (0, 0))  # blobs without an entry are spared for a day
    where = ["--dir", str(shared.layout.directory)]
    refused = CliRunner().invoke(app, ["prune", "--older-than", "1d", *where])
    assert (refused.exit_code, "nothing is removed" in refused.stderr) == (1, True)
    assert all(path.exists() for path in files)
    shown = CliRunner().invoke(app, ["stats", *where])
    assert "1 entry of" in shown.stderr
    assert "chmod 600" in shown.stderr
    assert run("stats")["entries_of_strangers"] == 1


def test_who_may_not_remove_files_is_told_who_may(
    run: Callable[..., Any], shared: SharedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cachegraph.cli.prune.os.access", lambda path, mode: False)
    where = ["--dir", str(shared.layout.directory)]
    refused = CliRunner().invoke(app, ["prune", "--dry-run", *where])
    assert refused.exit_code == 1
    assert f"prune as user {os.getuid()}" in refused.stderr
    assert CliRunner().invoke(app, ["prune", "--what-if", *where]).exit_code == 0


def test_it_is_pruned_and_verified(run: Callable[..., Any], shared: SharedStore) -> None:
    planned = run("prune", "--max-size", "140kB", "--dry-run")
    assert [entry["key"] for entry in planned["entries"]] == [KEYS["there"].hex]
    assert len(run("list")) == 2
    pruned = run("prune", "--max-size", "140kB")
    assert (pruned["bytes_before"] > 270_000, pruned["bytes_after"] < 140_000) == (True, True)
    assert [entry["key"] for entry in run("list")] == [KEYS["both"].hex]
    path = shared.layout.entry(KEYS["both"].hex)
    path.write_bytes(path.read_bytes()[:-1])
    (problem,) = run("verify", code=1)["problems"]
    assert (problem["what"], problem["name"]) == ("entry", KEYS["both"].hex)
    assert run("list") == run("verify")["problems"] == []
