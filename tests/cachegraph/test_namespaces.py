"""A namespace has the entries of one application: its keys, statistics and pruning are its own."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cachegraph import Artifact, Cache, CacheKey, CacheMissError, Unfingerprintable
from cachegraph.cli.app import app
from cachegraph.fingerprint import encode
from cachegraph.store.local.store import LocalStore
from cachegraph.store.maintenance import staleness


@pytest.fixture
def toyc(cache_directory: Path) -> Cache:
    return Cache(cache_directory, namespace="toyc")


def entries(*arguments: str) -> list[str]:
    """Return the levels of the entries that `cachegraph list` shows."""
    result = CliRunner().invoke(app, ["list", "--json", *arguments])
    assert result.exit_code == 0, result.output
    return sorted(entry["level"] for entry in json.loads(result.stdout))


def never() -> bytes:
    raise AssertionError("built although there is an entry")


def test_a_cache_in_a_directory_keeps_what_parts_describe_for_other_processes(
    toyc: Cache, cache_directory: Path
) -> None:
    parts = {"source": "x + 1", "version": (1, 0)}
    first = toyc.get_or_build(parts, lambda: b"code", bytes.decode)
    again = toyc.get_or_build(dict(reversed(parts.items())), never, bytes.decode)
    assert [(found.value, found.outcome) for found in (first, again)] == [("code", "miss"), ("code", "hit")]
    program = (
        "import sys, cachegraph; parts = {'version': (1, 0), 'source': 'x + 1'};"
        "cache = cachegraph.Cache(sys.argv[1], namespace='toyc');"
        "print(cache.get_or_build(parts, lambda: b'other', bytes.decode).value)"
    )
    done = subprocess.run([sys.executable, "-c", program, cache_directory], capture_output=True, text=True)
    assert done.stdout == "code\n", done.stderr


def test_equal_parts_of_two_namespaces_or_levels_are_two_entries(toyc: Cache) -> None:
    parts = {"source": "x"}
    other = Cache(toyc.settings, namespace="tools")
    keys = {toyc.key(parts), other.key(parts), toyc.key(parts, "tokens")}
    assert {key.level for key in keys} == {"toyc/entry", "tools/entry", "toyc/tokens"}
    assert len({key.digest for key in keys}) == 3


def test_parts_without_a_key_are_built_and_the_reason_is_told(toyc: Cache) -> None:
    found = toyc.get_or_build({"source": object()}, lambda: Artifact(b"built"), len)
    assert (found.value, found.outcome) == (5, "bypass")
    assert "part 'source'" in found.reason
    with pytest.raises(Unfingerprintable, match="part 'source'"):
        toyc.key({"source": object()})
    strict = Cache(toyc.settings._replace(on_miss="error"), namespace="toyc")
    with pytest.raises(CacheMissError, match="part 'source'"):
        strict.get_or_build({"source": object()}, never, len)


def test_a_key_of_parts_needs_a_namespace_and_words(cache_directory: Path, toyc: Cache) -> None:
    with pytest.raises(ValueError, match="no namespace"):
        Cache(cache_directory).key({})
    with pytest.raises(ValueError, match="naming a namespace or a level: found 'a/b'"):
        Cache(cache_directory, namespace="a/b")
    with pytest.raises(ValueError, match="found 3; use"):
        Cache(cache_directory, namespace=3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"found 'a{79}; use"):
        Cache(cache_directory, namespace="a" * 5000)
    with pytest.raises(ValueError, match="found ''"):
        toyc.key({}, "")


@pytest.mark.parametrize(
    ("parts", "found"),
    [([("a", 1)], "list"), ("text", "str"), (None, "NoneType"), ({1: 2}, "a name that is int")],
)
def test_parts_without_names_are_refused(parts: Any, found: str, toyc: Cache) -> None:
    with pytest.raises(TypeError, match=f"found {found}; give a dict"):
        toyc.get_or_build(parts, never, len)


@pytest.mark.parametrize(
    "built",
    ["text", None, bytearray(b"x"), Artifact(b"x", {"large": "text"})],  # type: ignore[dict-item]
)
def test_what_is_no_bytes_is_refused_when_it_was_built(built: Any, toyc: Cache) -> None:
    with pytest.raises(TypeError, match=r"found (str|NoneType|bytearray); return bytes"):
        toyc.get_or_build({"source": 1}, lambda: built, len)


@pytest.mark.parametrize(
    ("seconds", "summary", "found"),
    [
        ({"parse": "1"}, "", "the seconds 'parse': '1'"),
        ({1: 1.0}, "", "the seconds 1: 1.0"),
        ({"parse": math.nan}, "", "the seconds 'parse': nan"),
        (3.0, "", "the seconds None: 3.0"),
        ({}, None, "the summary None"),
        ({}, b"x", "the summary b'x'"),
    ],
)
def test_what_describes_an_artifact_is_refused_unless_it_is_seconds_and_a_text(
    seconds: Any, summary: Any, found: str, toyc: Cache
) -> None:
    with pytest.raises(TypeError, match=f"storing what build returned: found {found}"):
        toyc.get_or_build({"source": 1}, lambda: Artifact(b"x", {}, seconds, summary), len)


def test_a_summary_with_the_name_of_any_file_is_stored(toyc: Cache) -> None:
    name = os.fsdecode(b"caf\xe9.toy")
    outcomes = [
        toyc.get_or_build({"source": 1}, lambda: Artifact(b"x", summary=name), len).outcome for _ in range(2)
    ]
    assert outcomes == ["miss", "hit"]
    assert [entry.summary for entry in LocalStore(toyc.settings.directory).scan()] == ["caf\\udce9.toy"]


def test_a_path_that_no_system_has_is_a_cache_that_is_off(caplog: pytest.LogCaptureFixture) -> None:
    cache = Cache("/tmp/a\0b", namespace="toyc")
    assert cache.get_or_build({"source": 1}, lambda: b"x", len).outcome == "miss"
    assert cache.absent is not None
    assert "CACHEGRAPH_DIR" in cache.absent.detail
    assert "nothing is cached in this process" in caplog.text


def test_a_directory_is_any_path(tmp_path: Path) -> None:
    paths = [tmp_path, str(tmp_path), bytes(tmp_path)]
    outcomes = [
        Cache(path, namespace="toyc").get_or_build({"a": 1}, lambda: b"x", len).outcome for path in paths
    ]
    assert outcomes == ["miss", "hit", "hit"]


@pytest.mark.parametrize(
    "level", ["toyc/a/b", "toyc/", "/a", "toyc/ä", "Function", "toyc/" + 41 * "x", "toyc\n/x"]
)
def test_a_key_of_no_level_is_neither_built_nor_read(level: str) -> None:
    with pytest.raises(ValueError, match="a level of a namespace"):
        CacheKey.build(level, {})


def test_the_environment_names_the_mode_of_a_cache_in_a_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CACHEGRAPH_MODE", "off")
    off = Cache(tmp_path / "x", namespace="toyc")
    assert off.get_or_build({"a": 1}, lambda: b"x", len).outcome == "miss"
    assert off.absent is not None
    assert not (tmp_path / "x").exists()


@pytest.fixture
def filled(toyc: Cache) -> Cache:
    """Store entries of two namespaces, and one of cachegraph itself."""
    own = CacheKey.build("kernel", {"graph": b"g"})
    assert toyc.store(own, Artifact(b"kernel"))
    for namespace in ("toyc", "toyc-2"):
        cache = Cache(toyc.settings, namespace=namespace)
        for number in range(2):
            cache.get_or_build({"source": number, "version": 1}, lambda: b"x", len)
        cache.get_or_build({"source": 0, "version": 1}, never, len)
        cache.flush()
    return toyc


def test_commands_take_one_namespace_or_level(filled: Cache) -> None:
    assert entries() == ["kernel", "toyc-2/entry", "toyc-2/entry", "toyc/entry", "toyc/entry"]
    assert entries("--namespace", "toyc") == ["toyc/entry"] * 2
    assert entries("--namespace", "toyc", "--level", "tokens") == []
    assert entries("--level", "kernel") == ["kernel"]
    assert entries("--level", "toyc-2/entry") == ["toyc-2/entry"] * 2
    for wrong in (["--level", "loops"], ["--namespace", "*"], ["--namespace", "toyc", "--level", "a/b"]):
        assert CliRunner().invoke(app, ["list", *wrong]).exit_code == 2


def test_the_statistics_of_a_namespace_are_its_own(filled: Cache) -> None:
    stats = json.loads(CliRunner().invoke(app, ["stats", "--json", "--namespace", "toyc"]).stdout)
    assert list(stats["levels"]) == ["toyc/entry"]
    counts = {name: stats["levels"]["toyc/entry"][name] for name in ("entries", "hits", "misses")}
    assert counts == {"entries": 2, "hits": 1, "misses": 2}
    assert [(day["hits"], day["misses"]) for day in stats["days"]] == [(1, 2)]
    whole = json.loads(CliRunner().invoke(app, ["stats", "--json"]).stdout)
    assert list(whole["levels"]) == ["function", "op", "kernel", "numba", "toyc-2/entry", "toyc/entry"]


def test_pruning_a_namespace_spares_all_others(filled: Cache) -> None:
    assert CliRunner().invoke(app, ["prune", "--namespace", "toyc"]).exit_code == 0
    assert entries() == ["kernel", "toyc-2/entry", "toyc-2/entry"]
    assert CliRunner().invoke(app, ["prune", "--namespace", "toyc-2", "--max-size", "0"]).exit_code == 0
    assert entries() == ["kernel"]


class Points:
    """Stands for the entry points that packages declare."""

    def __init__(self, *points: EntryPoint) -> None:
        self.points = points

    def __call__(self, group: str, name: str) -> list[EntryPoint]:
        return [point for point in self.points if (point.group, point.name) == (group, name)]


def is_current(level: str, parts: dict[str, bytes]) -> bool:
    """Stand for an application of release 1 whose first source is gone."""
    return level == "entry" and parts["version"] == encode(1) and parts["source"] != encode(0)


@pytest.fixture
def declared(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    def declare(value: str) -> None:
        staleness._revalidator_of.cache_clear()
        point = EntryPoint("toyc", value, staleness.ENTRY_POINTS)
        monkeypatch.setattr("importlib.metadata.entry_points", Points(point))

    staleness._revalidator_of.cache_clear()
    return declare


def test_entries_of_an_application_are_stale_only_if_it_says_so(
    filled: Cache, declared: Callable[[str], None]
) -> None:
    def stale() -> list[str]:
        shown = CliRunner().invoke(app, ["prune", "--stale", "--dry-run", "--json"])
        return [entry["level"] for entry in json.loads(shown.stdout)["entries"]]

    assert stale() == []
    declared(f"{__name__}:missing")
    assert stale() == []
    declared(f"{__name__}:is_current")
    assert stale() == ["toyc/entry"]
