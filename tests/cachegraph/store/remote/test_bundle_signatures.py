"""Who signed an entry stays known in caches and bundles, and what he takes back leaves them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cachegraph.cli.app import app
from cachegraph.fingerprint.primitives import digest
from cachegraph.key import CacheKey
from cachegraph.remote_url import RemoteURL
from cachegraph.store.entry import INLINE_LIMIT, Artifact, Hit, Miss
from cachegraph.store.local.store import LocalStore
from cachegraph.store.maintenance.importing import import_entries
from cachegraph.store.paths import entry_place, revocation_place
from cachegraph.store.remote.bundle_files import BundleFiles
from cachegraph.store.remote.bundle_format import BundleWriter
from cachegraph.store.remote.store import RemoteStore
from cachegraph.store.revocation.kept import keep
from cachegraph.store.revocation.list_file import Revoked, read_list, write_list
from cachegraph.store.shared.entry_file import signer_of
from cachegraph.store.shared.store import SharedStore
from cachegraph.store.shared.without_index import StoredFile
from cachegraph.store.signing import public_key_text
from cachegraph.store.trust import Trust
from tests.cachegraph.store.signers import User

Key = Callable[..., CacheKey]
LONG = bytes(range(256)) * (INLINE_LIMIT // 256 + 1)
MOST = 10**7


class Chain:
    """A CI, whose bundle a colleague imports and exports again for a node without a network."""

    def __init__(self, directory: Path, patch: pytest.MonkeyPatch) -> None:
        self.directory = directory
        names = ("ci", "colleague", "node")
        self.ci, self.colleague, self.node = (User(directory / f"{name}-config", patch) for name in names)

    def trusting(self, *users: User) -> str:
        return f"signed:{','.join(public_key_text(user.key) for user in users)}"

    def run(self, user: User, *arguments: object, trust: str = "private", code: int = 0) -> Any:
        given = [*map(str, arguments), "--json"]
        result = user.do(lambda: CliRunner().invoke(app, given, env={"CACHEGRAPH_TRUST": trust}))
        assert result.exit_code == code, result.output
        return json.loads(result.stdout) if result.stdout else result.stderr

    def exported(self, user: User, cache: str, bundle: str, trust: str = "private", code: int = 0) -> Any:
        arguments = ("export", self.directory / bundle, "--dir", self.directory / cache)
        return self.run(user, *arguments, trust=trust, code=code)

    def imported(self, user: User, cache: str, bundle: str, trust: str, code: int = 0) -> Any:
        arguments = ("import", self.directory / bundle, "--dir", self.directory / cache)
        return self.run(user, *arguments, trust=trust, code=code)

    def get(self, user: User, bundle: str, trust: str, key: CacheKey) -> str:
        """Return the reason why the mounted bundle has no hit, empty for a hit."""
        found = user.do(lambda: RemoteStore(self.files(bundle), Trust.on_servers(trust)).get(key))
        return "" if isinstance(found, Hit) else f"{found.reason}: {found.detail}"

    def files(self, bundle: str) -> BundleFiles:
        return BundleFiles(RemoteURL.of(f"bundle:{self.directory / bundle}"))

    def revoke(self, user: User, revoked: Revoked, number: int = 1) -> bytes:
        """Return a list of `user`, which he keeps."""

        def write() -> bytes:
            content = write_list(number, revoked)
            keep(content, read_list(content, user.key))
            return content

        return user.do(write)


@pytest.fixture
def chain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: Key) -> Chain:
    """Return a chain in which the CI has built `a` and `b`, and the colleague has imported them and built `c`."""
    made = Chain(tmp_path, monkeypatch)
    store = LocalStore(tmp_path / "ci")
    store.put(key("a"), Artifact(b"a", {"code": LONG}, {"compile": 1.0, "link": 0.5}, "what it is"))
    store.put(key("b"), Artifact(LONG, references=(key("a").digest,)))
    store.close()
    made.exported(made.ci, "ci", "ci.bundle")
    assert len(made.imported(made.colleague, "colleague", "ci.bundle", made.trusting(made.ci))["taken"]) == 2
    store = LocalStore(tmp_path / "colleague")
    store.put(key("c"), Artifact(b"c"))
    store.close()
    made.exported(made.colleague, "colleague", "again.bundle", made.trusting(made.ci))
    return made


def test_an_entry_keeps_the_signature_of_who_built_it(chain: Chain, key: Key) -> None:
    first, again = chain.files("ci.bundle"), chain.files("again.bundle")
    for name in "ab":
        place = entry_place(key(name).hex)
        assert again.read(place, MOST) == first.read(place, MOST)
        assert signer_of(again.read(place, MOST)) == chain.ci.key
    assert signer_of(again.read(entry_place(key("c").hex), MOST)) == chain.colleague.key


def test_each_reader_believes_the_signers_that_he_trusts_whoever_exported(chain: Chain, key: Key) -> None:
    for trusted, believed in (((chain.ci,), "ab"), ((chain.colleague,), "c")):
        trust = chain.trusting(*trusted)
        for name in "abc":
            refused = chain.get(chain.node, "again.bundle", trust, key(name))
            assert (refused == "") is (name in believed), refused
            assert name in believed or "who is not listed" in refused
    told = chain.imported(chain.node, "node", "again.bundle", chain.trusting(chain.colleague), code=1)
    assert (told["taken"], len(told["refused"])) == ([key("c").hex], 2)


def test_a_copy_that_was_changed_is_not_passed_on_under_the_old_name(chain: Chain, key: Key) -> None:
    """Nor under the name of who exports: he did not build it."""
    with sqlite3.connect(LocalStore(chain.directory / "colleague").layout.index) as index:
        [(content,)] = index.execute(
            "SELECT content FROM record JOIN entry ON entry_id = id WHERE digest = ?", (key("a").digest,)
        )
        changed = content[:20] + content[20:-1] + b"x"
        changed = changed[:4] + digest(changed[20:]) + changed[20:]
        index.execute(
            "UPDATE record SET content = ? WHERE entry_id = (SELECT id FROM entry WHERE digest = ?)",
            (changed, key("a").digest),
        )
    told = chain.exported(chain.colleague, "colleague", "changed.bundle", chain.trusting(chain.ci), code=1)
    assert [one["key"] for one in told["left_out"]] == [key("a").hex]
    assert "it is not what" in told["left_out"][0]["why"]


def test_what_is_built_here_again_is_signed_here(chain: Chain, key: Key) -> None:
    LocalStore(chain.directory / "colleague").put(key("a"), Artifact(b"own"))
    chain.exported(chain.colleague, "colleague", "own.bundle")
    assert signer_of(chain.files("own.bundle").read(entry_place(key("a").hex), MOST)) == chain.colleague.key


def test_an_import_into_a_signed_directory_keeps_the_signature(
    chain: Chain, key: Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared, trust = chain.directory / "shared", chain.trusting(chain.ci)
    monkeypatch.setenv("CACHEGRAPH_SHARED_DIR", str(shared))
    monkeypatch.setenv("CACHEGRAPH_DIR", str(chain.directory / "fresh"))
    chain.run(chain.colleague, "import", chain.directory / "ci.bundle", trust=trust)
    store = chain.node.do(lambda: SharedStore(shared, trust=Trust.of(trust)))
    found = chain.node.do(lambda: store.get(key("a")))
    assert isinstance(found, Hit)
    assert store.read_blob(found.blobs["code"]) == LONG
    assert signer_of(store.layout.entry(key("a").hex).read_bytes()) == chain.ci.key


def test_a_bundle_carries_the_lists_and_not_what_they_revoke(chain: Chain, key: Key) -> None:
    trust = chain.trusting(chain.ci, chain.colleague)
    assert chain.get(chain.node, "ci.bundle", trust, key("a")) == ""
    chain.imported(chain.node, "node", "ci.bundle", trust)
    chain.revoke(chain.colleague, Revoked(signers=frozenset((chain.ci.key.hex(),))))
    told = chain.exported(chain.colleague, "colleague", "clean.bundle", trust, code=1)
    assert sorted(one["key"] for one in told["left_out"]) == sorted((key("a").hex, key("b").hex))
    assert all("a key that was revoked" in one["why"] for one in told["left_out"])
    files = chain.files("clean.bundle")
    assert [file.name for file in files.listed("v1/r/")] == [revocation_place(chain.colleague.key)]
    assert [file.name for file in files.listed("v1/b/")] == [], "blobs of what was left out"

    assert chain.get(chain.node, "clean.bundle", trust, key("c")) == ""
    assert "a key that was revoked" in chain.get(chain.node, "ci.bundle", trust, key("a")), "the old bundle"
    told = chain.imported(chain.node, "node", "clean.bundle", trust)
    assert len(told["taken"]) == 1
    for name in "ab":
        assert isinstance(LocalStore(chain.directory / "node").get(key(name)), Miss), "swept"


def test_what_a_list_of_a_lower_number_revokes_is_not_exported_either(chain: Chain, key: Key) -> None:
    """Its signer lost his list and began anew; a bundle carries one list of each signer."""
    trust = chain.trusting(chain.ci, chain.colleague)
    last = chain.revoke(chain.colleague, Revoked(releases=frozenset(("0.0.1",))), number=5)
    chain.revoke(chain.colleague, Revoked(signers=frozenset((chain.ci.key.hex(),))), number=1)
    told = chain.exported(chain.colleague, "colleague", "clean.bundle", trust, code=1)
    assert sorted(one["key"] for one in told["left_out"]) == sorted((key("a").hex, key("b").hex))
    assert chain.files("clean.bundle").read(revocation_place(chain.colleague.key), MOST) == last


def test_a_damaged_list_in_a_bundle_refuses_its_signer_alone(chain: Chain, key: Key) -> None:
    trust = chain.trusting(chain.ci, chain.colleague)
    content = chain.revoke(chain.colleague, Revoked(releases=frozenset(("0.0.1",))))
    chain.exported(chain.colleague, "colleague", "listed.bundle", trust)
    whole = (chain.directory / "listed.bundle").read_bytes()
    start = whole.index(content)
    for place in range(start, start + len(content), 9):
        changed = whole[:place] + bytes((whole[place] ^ 1,)) + whole[place + 1 :]
        (chain.directory / "bad.bundle").write_bytes(changed)
        assert "whose revocation list" in chain.get(chain.node, "bad.bundle", trust, key("c")), place
        assert chain.get(chain.node, "bad.bundle", trust, key("a")) == ""


def test_a_replayed_entry_in_a_bundle_is_refused_under_another_key_only(chain: Chain, key: Key) -> None:
    older = chain.files("ci.bundle").read(entry_place(key("a").hex), MOST)
    with BundleWriter(str(chain.directory / "replayed.bundle")) as writer:
        writer.write(LONG)
        writer.add_entry(key("a").hex, older)
        writer.add_entry(key("b").hex, older)
    trust = chain.trusting(chain.ci)
    assert chain.get(chain.node, "replayed.bundle", trust, key("a")) == ""
    assert "did not publish here" in chain.get(chain.node, "replayed.bundle", trust, key("b"))


def test_an_entry_that_is_exchanged_while_it_is_imported_is_refused(chain: Chain, key: Key) -> None:
    """Else what one signer wrote would be on record as what another did."""
    local = LocalStore(chain.directory / "colleague")
    local.put(key("a"), Artifact(b"by the colleague", {"code": LONG}))
    trust = chain.trusting(chain.ci, chain.colleague)
    chain.exported(chain.colleague, "colleague", "own.bundle", trust)
    path = chain.directory / "ci.bundle"

    class Exchanging(RemoteStore):
        def read_entry(self, key_hex: str) -> StoredFile | Miss:
            found = super().read_entry(key_hex)
            if key_hex == key("a").hex:
                path.write_bytes((chain.directory / "own.bundle").read_bytes())
            return found

    bundle = chain.node.do(lambda: Exchanging(chain.files("ci.bundle"), Trust.on_servers(trust)))
    told = chain.node.do(lambda: import_entries(bundle, LocalStore(chain.directory / "node")))
    assert [key("a").hex] == [one.key for one in told.refused if "exchanged" in one.why]
    assert isinstance(LocalStore(chain.directory / "node").get(key("a")), Miss)


def test_a_salvaged_index_still_knows_who_signed(chain: Chain, key: Key) -> None:
    """An index is set aside when it is damaged; its readable rows go to a new one."""
    from cachegraph.store.local.salvage import replace_index
    from cachegraph.store.paths import identity

    store = LocalStore(chain.directory / "colleague")
    damaged = identity(store.layout.index)
    assert damaged is not None
    replaced = replace_index(store.layout.index, damaged, "a test says so")
    assert replaced is not None
    assert replaced.kept == 3
    fresh = LocalStore(chain.directory / "colleague")
    origin = fresh.origin(key("a").digest)
    assert origin is not None
    assert origin.signer == chain.ci.key
    assert fresh.origin(key("c").digest) is None
