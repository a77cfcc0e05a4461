"""The commands export and import: which entries they take, what they refuse, and how they end."""

from __future__ import annotations

import json
import os
import signal
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
from cachegraph.key import CacheKey
from cachegraph.settings import Settings
from cachegraph.store.local.store import LocalStore
from cachegraph.store.signing import public_key_text
from tests.cachegraph.store.signers import signing_key

ROOT = Path(__file__).resolve().parents[3]
LONG = bytes(70_000)
Run = Callable[..., Any]


def key_of(text: str, level: str = "kernel") -> CacheKey:
    return CacheKey.build(level, {"scheme": b"test", "graph": text.encode()})


KERNELS = [key_of("add"), key_of("mul")]
MODEL = key_of("model", "function")


@pytest.fixture
def run() -> Run:
    """Return a function that runs a command, checks its exit code and returns its document."""

    def command(*arguments: object, code: int = 0) -> Any:
        result = CliRunner().invoke(app, [*map(str, arguments), "--json"])
        assert result.exit_code == code, result.output
        return json.loads(result.stdout) if result.stdout else result.stderr

    return command


@pytest.fixture
def filled(cache_directory: Path) -> Path:
    """Fill this test's directory with a function, its kernels, and another kernel."""
    signing_key()
    store = LocalStore(cache_directory)
    for kernel in KERNELS:
        store.put(kernel, Artifact(b"code", {"long": LONG}, {"compile": 1.0}, "a kernel"))
    store.put(MODEL, Artifact(LONG, references=[kernel.digest for kernel in KERNELS]))
    store.put(key_of("other"), Artifact(b"other"))
    store.close()
    return cache_directory


def test_everything_is_exported_and_imported_once(run: Run, filled: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "all.bundle"
    told = run("export", bundle)
    assert (told["entries"], told["left_out"], told["missing"]) == (4, [], [])
    first = run("import", bundle, "--dir", tmp_path / "new")
    assert (len(first["taken"]), first["present"], first["refused"]) == (4, [], [])
    again = run("import", bundle, "--dir", tmp_path / "new")
    assert (again["taken"], len(again["present"])) == ([], 4)
    store = LocalStore(tmp_path / "new")
    found = store.get(KERNELS[0])
    assert isinstance(found, Hit)
    assert store.read_blob(found.blobs["long"]) == LONG
    assert run("show", MODEL.hex, "--dir", tmp_path / "new")["references"] == sorted(
        kernel.hex for kernel in KERNELS
    )
    assert {entry.summary for entry in store.scan()} == {"a kernel", ""}


def test_an_entry_is_exported_with_what_it_refers_to(run: Run, filled: Path, tmp_path: Path) -> None:
    assert run("export", tmp_path / "one", "--key", MODEL.hex[:12])["entries"] == 3
    LocalStore(filled).delete([KERNELS[0].digest])
    told = run("export", tmp_path / "one", "--key", MODEL.hex, code=1)
    assert (told["entries"], told["missing"]) == (2, [KERNELS[0].hex])


def test_entries_used_by_the_last_run_or_since_a_time_are_exported(
    run: Run, filled: Path, tmp_path: Path
) -> None:
    bundle = tmp_path / "some"
    assert "no process has used" in run("export", bundle, "--used-by-last-run", code=1)
    middle = time.time()
    cache = Cache(Settings(filled, "readwrite", "compile"))
    cache.get_or_build(key_of("other"), lambda: Artifact(b"other"), bytes)
    cache.get_or_build(key_of("newest"), lambda: Artifact(b"newest"), bytes)
    cache.flush()
    assert run("export", bundle, "--used-by-last-run")["entries"] == 2
    assert run("export", bundle, "--since", "1h")["entries"] == 5
    told = CliRunner().invoke(app, ["export", str(bundle), "--since", "yesterday"])
    assert (told.exit_code, "neither an age" in told.stderr) == (2, True)
    assert time.time() > middle


@pytest.mark.parametrize(
    ("options", "code", "why"),
    [
        (["--all", "--since", "1h"], 2, "give one of"),
        (["--key", "zz"], 2, "keys are hexadecimal"),
        (["--key", "00000000"], 1, "no key starts with 00000000"),
        (["--dir", "/nowhere"], 2, "there is no cache in /nowhere"),
    ],
)
def test_a_wrong_choice_is_told_and_writes_nothing(
    options: list[str], code: int, why: str, filled: Path, tmp_path: Path
) -> None:
    result = CliRunner().invoke(app, ["export", str(tmp_path / "file"), *options], env={"COLUMNS": "200"})
    assert (result.exit_code, why in result.stderr) == (code, True), result.output
    assert list(tmp_path.glob("*file*")) == []


def test_nobody_exports_without_a_key(
    run: Run, filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "empty"))
    assert "there is no key to sign with" in run("export", tmp_path / "file", code=1)


def test_a_bundle_of_a_stranger_is_refused_by_entry_and_taken_if_his_key_is_listed(
    run: Run, filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle, new = tmp_path / "strange", tmp_path / "new"
    run("export", bundle)
    writer = public_key_text(signing_key())
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "empty"))
    told = run("import", bundle, "--dir", new, code=1)
    assert (told["taken"], len(told["refused"])) == ([], 4)
    assert all("untrusted" in one["why"] and writer in one["why"] for one in told["refused"])
    monkeypatch.setenv("CACHEGRAPH_TRUST", f"signed:{writer}")
    assert len(run("import", bundle, "--dir", new)["taken"]) == 4


def test_damaged_entries_are_refused_and_the_others_taken(run: Run, filled: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "damaged"
    run("export", bundle)
    content = bundle.read_bytes()
    bundle.write_bytes(content.replace(b"\x05other", b"\x05OTHER").replace(b"other", b"OTHER"))
    told = run("import", bundle, "--dir", tmp_path / "new", code=1)
    assert (len(told["taken"]), [one["key"] for one in told["refused"]]) == (3, [key_of("other").hex])
    assert "damaged" in told["refused"][0]["why"]


def test_a_file_that_is_no_whole_bundle_is_refused(run: Run, filled: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "cut"
    run("export", bundle)
    bundle.write_bytes(bundle.read_bytes()[:-7])
    assert "it is cut short" in run("import", bundle, code=1)
    assert "No such file" in run("import", tmp_path / "none", code=1)


def test_people_are_told_how_much_was_moved(filled: Path, tmp_path: Path) -> None:
    told = CliRunner().invoke(app, ["export", str(tmp_path / "file")])
    assert told.stdout.startswith("exported 4 entries, ")
    told = CliRunner().invoke(app, ["import", str(tmp_path / "file")])
    assert told.stdout.rstrip().endswith("4 were there, 0 refused")


KILLED = """
import os, signal, sys
from cachegraph.cli.app import app
from cachegraph.store.remote import bundle_format

def die(self):
    os.kill(os.getpid(), signal.SIGKILL)

bundle_format.BundleWriter._write_index = die
app(["export", sys.argv[1]])
"""


def test_a_killed_export_leaves_the_bundle_that_was_there(run: Run, filled: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "file"
    run("export", bundle, "--key", KERNELS[0].hex)
    before = bundle.read_bytes()
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", KILLED, str(bundle)], env=environment, timeout=60)
    assert done.returncode == -signal.SIGKILL
    assert bundle.read_bytes() == before
