"""Pruning a server: which files go, which stay while nodes use it, and whose."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from cachegraph.cli.app import app
from cachegraph.key import CacheKey
from cachegraph.store.activity import Activity
from cachegraph.store.entry import INLINE_LIMIT, Artifact, Hit
from cachegraph.store.maintenance.planning import Criteria, Plan
from cachegraph.store.maintenance.pruning import SHARED_GRACE_SECONDS, USE_LOG_SECONDS
from cachegraph.store.maintenance.remote_pruning import carry_out_remote, plan_remote
from cachegraph.store.paths import blob_place, entry_place, lease_place
from cachegraph.store.remote.files import RemoteError, RemoteFiles
from cachegraph.store.remote.store import RemoteStore
from cachegraph.store.trust import Trust
from cachegraph.store.use_log.blocks import encode_block
from cachegraph.store.use_log.writing import report_name
from tests.cachegraph.store.remote.servers import Server, web
from tests.cachegraph.store.signers import User

Key = Callable[..., CacheKey]
OpenRemote = Callable[..., RemoteFiles]
DAY = 86400.0


@pytest.fixture
def remote(open_remote: OpenRemote) -> RemoteStore:
    """Return the store on an empty server, as this user sees it."""
    files = open_remote()
    for file in list(files.listed("")):
        files.remove(file.name)
    return RemoteStore(files, Trust.on_servers("private"))


def artifact(name: str, graph: bytes = b"") -> Artifact:
    """Return an artifact with two blobs: its code, and its graph."""
    blobs = {"code": name.encode() * INLINE_LIMIT, "graph": graph + bytes(INLINE_LIMIT)}
    return Artifact(name.encode(), blobs, {"compile": 1.0})


def names(store: RemoteStore) -> set[str]:
    return {file.name for file in store.files.listed("")}


def is_empty(plan: Plan) -> bool:
    return not (plan.entries or plan.blobs or plan.leftovers)


def report(store: RemoteStore, key: CacheKey, when: float) -> str:
    """Report a use of `key` at `when`; return the name of the report."""
    activity = Activity()
    activity.use(key.digest, None)
    batch = activity.take()
    batch.uses[key.digest].last_used = when
    store.files.write(report_name(when), encode_block(batch, when))
    return report_name(when).rpartition("/")[0]


def test_nothing_is_removed_without_a_reason(remote: RemoteStore, key: Key) -> None:
    remote.put(key("a"), artifact("a"))
    chosen = plan_remote(remote, time.time() + 50 * DAY)
    assert is_empty(chosen)
    assert chosen.bytes_before == chosen.bytes_after > 2 * INLINE_LIMIT


def test_what_no_node_used_for_long_goes_with_the_blobs_that_nothing_else_needs(
    remote: RemoteStore, key: Key
) -> None:
    for name in "abc":
        remote.put(key(name), artifact(name, b"shared by all"))
    report(remote, key("c"), time.time() + 19 * DAY)
    before = names(remote)
    chosen = plan_remote(remote, time.time() + 20 * DAY, Criteria(unused_for=10 * DAY))
    assert {entry.digest for entry in chosen.entries} == {key("a").digest, key("b").digest}
    assert names(remote) == before, "a plan removes nothing"
    assert carry_out_remote(remote, chosen) > 2 * INLINE_LIMIT
    found = remote.get(key("c"))
    assert isinstance(found, Hit)
    assert all(remote.read_blob(digest) is not None for digest in found.blobs.values())
    assert len(names(remote)) == 4, "an entry, two blobs and a report"


def test_a_limit_keeps_what_nodes_use_most(remote: RemoteStore, key: Key) -> None:
    for name in "abc":
        remote.put(key(name), artifact(name, name.encode()))
    report(remote, key("b"), time.time())
    chosen = plan_remote(remote, time.time(), Criteria(max_size=3 * INLINE_LIMIT))
    assert {entry.digest for entry in chosen.entries} == {key("a").digest, key("c").digest}


def test_blobs_of_a_killed_writer_and_old_reports_and_leases_go(remote: RemoteStore, key: Key) -> None:
    remote.put(key("a"), artifact("a"))
    kept = names(remote)
    blobs = [name for name in kept if name.startswith("v1/b/")]
    remote.put(key("b"), artifact("b"))
    remote.files.remove(entry_place(key("b").hex))  # its blobs were written, the entry never
    remote.files.write(f"{lease_place(key('c').hex)}.1", b"a holder that was killed")
    report(remote, key("a"), time.time())
    assert is_empty(plan_remote(remote, time.time())), "a writer may be about to refer to them"
    chosen = plan_remote(remote, time.time() + 2 * SHARED_GRACE_SECONDS)
    assert len(chosen.blobs) == 1
    assert blob_place(chosen.blobs[0].digest) not in blobs
    assert [str(left.path) for left in chosen.leftovers] == [f"{lease_place(key('c').hex)}.1"]
    carry_out_remote(remote, plan_remote(remote, time.time() + USE_LOG_SECONDS + DAY))
    assert names(remote) == kept


def test_entries_of_others_stay_with_their_blobs(
    remote: RemoteStore, key: Key, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = User(tmp_path / "other", monkeypatch)
    theirs = other.do(lambda: RemoteStore(remote.files, Trust.on_servers("private")))
    other.do(lambda: theirs.put(key("theirs"), artifact("theirs", b"shared")))
    remote.put(key("own"), artifact("own", b"shared"))
    chosen = plan_remote(remote, time.time() + 50 * DAY, Criteria(older_than=DAY))
    assert [entry.digest for entry in chosen.entries] == [key("own").digest]
    carry_out_remote(remote, chosen)
    found = theirs.get(key("theirs"))
    assert isinstance(found, Hit)
    assert all(theirs.read_blob(digest) is not None for digest in found.blobs.values())
    assert len(names(remote)) == 3


def test_a_damaged_entry_keeps_nothing_and_stops_nothing(remote: RemoteStore, key: Key) -> None:
    remote.put(key("a"), artifact("a"))
    remote.files.write(entry_place(key("a").hex), b"nothing that was an entry")
    chosen = plan_remote(remote, time.time() + 2 * SHARED_GRACE_SECONDS)
    assert len(chosen.blobs) == 2


def test_if_an_entry_cannot_be_read_nothing_is_planned(
    remote: RemoteStore, key: Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote.put(key("a"), artifact("a"))

    def refuse(name: str, most: int) -> bytes:
        raise RemoteError(remote.location, "it is busy")

    monkeypatch.setattr(remote.files, "read", refuse)
    with pytest.raises(RemoteError, match="it is busy"):
        plan_remote(remote, time.time() + 50 * DAY)


def test_the_command_says_what_goes_and_removes_it(remote: RemoteStore, server: Server, key: Key) -> None:
    remote.put(key("a"), artifact("a"))
    command = ["prune", "--remote", server.url, "--older-than", "0s"]
    planned = CliRunner().invoke(app, [*command, "--dry-run", "--json"])
    assert planned.exit_code == 0, planned.output
    document = json.loads(planned.stdout)
    assert [entry["key"] for entry in document["entries"]] == [key("a").hex]
    assert len(names(remote)) == 3
    done = CliRunner().invoke(app, command)
    assert "removed 1 entry, 2 blobs, 0 leftovers" in done.stdout, done.output
    assert names(remote) == set()


def test_a_server_that_is_only_read_is_not_pruned(server: Server) -> None:
    refused = CliRunner().invoke(app, ["prune", "--remote", f"{server.url}?write=no"])
    assert (refused.exit_code, "this user only reads there" in refused.stderr) == (1, True)
    asked = CliRunner().invoke(app, ["prune", "--remote", server.url, "--what-if", "--max-size", "1GB"])
    assert asked.exit_code == 2


def test_a_web_server_and_what_is_no_url_are_refused(tmp_path: Path) -> None:
    with web(tmp_path) as server:
        assert CliRunner().invoke(app, ["prune", "--remote", server.url]).exit_code == 1
    assert CliRunner().invoke(app, ["prune", "--remote", "nowhere"]).exit_code == 2
