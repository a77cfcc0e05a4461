"""The examination of servers: who answers, who may write, and that silence is no failure."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cachegraph.cli.app import app
from cachegraph.remote_url import RemoteURL
from cachegraph.store.maintenance.diagnosis import Finding
from cachegraph.store.maintenance.remote_diagnosis import examine_remote
from cachegraph.store.remote.files import RemoteFiles
from cachegraph.store.trust import Trust
from tests.cachegraph.store.remote.servers import Server, free_port, web

OpenRemote = Callable[..., RemoteFiles]


def examined(url: str, setting: str = "private") -> dict[str, Finding]:
    found = examine_remote(RemoteURL.of(url), Trust.on_servers(setting))
    return {finding.what: finding for finding in found}


def test_a_server_that_answers_is_read_and_written_and_nothing_is_left_there(
    server: Server, open_remote: OpenRemote
) -> None:
    found = examined(server.url)
    assert "ms" in found["a get"].found
    assert found["writing"].found == "a file was written, read back and removed"
    assert not any(finding.advice for finding in found.values())
    assert list(open_remote().listed("")) == []


def test_a_url_that_only_reads_is_not_written(server: Server, open_remote: OpenRemote) -> None:
    assert "write=no" in examined(f"{server.url}?write=no")["writing"].found
    assert list(open_remote().listed("")) == []


def test_a_paused_server_is_silent_within_its_time_and_needs_no_change(server: Server) -> None:
    server.pause()
    try:
        found = examined(f"{server.url}?timeout=0.5")
    finally:
        server.resume()
    assert list(found) == ["no answer"]
    assert found["no answer"].advice == ""


def test_a_web_server_is_only_read(tmp_path: Path) -> None:
    with web(tmp_path) as server:
        found = examined(server.url)
    assert "ms" in found["a get"].found
    assert found["writing"] == Finding("writing", "http is only read")


def test_a_missing_library_is_named_with_the_way_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    monkeypatch.delitem(sys.modules, "cachegraph.store.remote.s3_client", raising=False)
    found = examined("s3://bucket/prefix")
    assert found["library"].advice == "pip install 'cachegraph[s3]'"
    assert "boto3" in found["library"].found


def test_a_server_that_refuses_to_write_should_be_changed(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not server.url.startswith("redis"):
        pytest.skip("Redis alone is told here to refuse")
    import redis

    client = redis.Redis.from_url(server.url)
    client.config_set("min-replicas-to-write", 1)
    try:
        assert "write=no" in examined(server.url)["writing"].advice
    finally:
        client.config_set("min-replicas-to-write", 0)


def test_doctor_says_that_nobody_answers_and_does_not_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from click.testing import CliRunner

    monkeypatch.setenv("CACHEGRAPH_DIR", os.fspath(tmp_path / "none"))
    missing = f"bundle:{tmp_path}/missing.bundle"
    monkeypatch.setenv("CACHEGRAPH_REMOTE", f"redis://:secret@127.0.0.1:{free_port()}/0 {missing}")
    done = CliRunner().invoke(app, ["doctor"])
    assert done.exit_code == 0, done.output
    assert done.output.count("no answer") == 2
    assert "server: redis://127.0.0.1" in done.output
    assert "secret" not in done.output
