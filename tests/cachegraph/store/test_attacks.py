"""Every attack on every store whose entries are signed: what is not proven is refused before it is decoded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cachegraph.fingerprint.primitives import content_name, digest
from cachegraph.key import CacheKey
from cachegraph.store.activity import Activity
from cachegraph.store.entry import INLINE_LIMIT, Artifact, Hit, Miss
from cachegraph.store.local.store import LocalStore
from cachegraph.store.paths import blob_place, entry_place, revocation_place
from cachegraph.store.protocol import Store
from cachegraph.store.revocation.list_file import Revoked, write_list
from cachegraph.store.shared import entry_file
from cachegraph.store.shared.entry_file import Pieces, split_file
from cachegraph.store.signing import public_key_text, sign
from cachegraph.store.tiers import TieredStore
from tests.cachegraph.store.attacked import KINDS, Directory, Make, OnServer, Storage, running_storage
from tests.cachegraph.store.remote.servers import missing
from tests.cachegraph.store.signers import User

PARTS = {"scheme": b"test", "graph": b"a"}
A = CacheKey.build("kernel", PARTS)
B = CacheKey.build("kernel", {**PARTS, "graph": b"b"})
ELSEWHERE = CacheKey.build("another-compiler/kernel", PARTS)
LONG = bytes(range(256)) * (INLINE_LIMIT // 256 + 1)
SIGNER, SIGNATURE, SIGNED = 20, 52, 116
"""Where the signer, the signature and what is signed begin in the file of an entry."""


class Site:
    """Two signers whom a reader trusts, a stranger, and a storage that all of them write to.

    The entries of A and B are there.
    """

    def __init__(self, storage: Storage, directory: Path, patch: pytest.MonkeyPatch) -> None:
        names = ("publisher", "colleague", "stranger", "reader")
        self.publisher, self.colleague, self.stranger, self.reader = (
            User(directory / name, patch) for name in names
        )
        self.storage = storage
        trusted = (self.publisher, self.colleague)
        self.trust = f"signed:{','.join(public_key_text(user.key) for user in trusted)}"
        for key, fill in ((A, b"a"), (B, b"b")):
            self.put(key, fill)

    def put(self, key: CacheKey, fill: bytes, by: User | None = None) -> None:
        artifact = Artifact(fill * 9, {"code": fill + LONG}, {"compile": 1.0}, "what it is")
        user = by or self.publisher
        trust = self.trust if user is not self.stranger else f"signed:{public_key_text(user.key)}"
        user.do(lambda: self.storage.published(trust).put(key, artifact))

    def file(self, key: CacheKey) -> bytes:
        return self.storage.read(entry_place(key.hex))

    def plant(self, key: CacheKey, content: bytes) -> None:
        """Write the file of an entry with the checksum that it should have: anybody can compute that."""
        sound = content[:4] + digest(content[SIGNER:]) + content[SIGNER:]
        self.storage.write(entry_place(key.hex), sound)

    def revoke(self, revoked: Revoked, by: User) -> None:
        content = by.do(lambda: write_list(1, revoked))
        self.storage.write(revocation_place(by.key), content)

    def open(self) -> Store:
        return self.reader.do(lambda: self.storage.opened(self.trust))

    def get(self, key: CacheKey) -> Hit | Miss:
        """Return what a new process of the reader finds."""
        return self.reader.do(lambda: self.open().get(key))


@pytest.fixture(scope="module", params=KINDS)
def make(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Make]:
    lacking = missing(request.param)
    if lacking:
        pytest.skip(f"{lacking} is not installed")
    directory = tmp_path_factory.mktemp("attacked")
    for one in (directory, *directory.parents[:2]):
        one.chmod(0o755)  # nginx's workers pass
    with (
        pytest.MonkeyPatch.context() as patch,
        running_storage(request.param, directory, patch.setenv) as made,
    ):
        yield made


@pytest.fixture
def site(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    storage = make(tmp_path / "store")
    yield Site(storage, tmp_path, monkeypatch)
    if isinstance(storage, OnServer):
        storage.empty()


def pieces(content: bytes) -> Pieces:
    found = split_file(content)
    assert isinstance(found, Pieces)
    return found


def with_record(content: bytes, record: bytes) -> bytes:
    """Return the file of an entry with another record, and the head that it had."""
    old = pieces(content)
    return content[:SIGNED] + entry_file._signed_part(record, old.description, old.encoding)


def flipped(content: bytes, place: int) -> bytes:
    return content[:place] + bytes((content[place] ^ 1,)) + content[place + 1 :]


def tampered_signature(site: Site) -> None:
    site.plant(A, flipped(site.file(A), SIGNATURE + 5))


def tampered_record(site: Site) -> None:
    site.plant(A, flipped(site.file(A), SIGNED + 8 + len(pieces(site.file(A)).record) - 1))


def tampered_description(site: Site) -> None:
    site.plant(A, site.file(A).replace(b"what it is", b"what it was"[:10]))


def tampered_encoding(site: Site) -> None:
    site.plant(A, flipped(site.file(A), len(site.file(A)) - 1))


def cut_within_the_signature(site: Site) -> None:
    site.plant(A, site.file(A)[: SIGNATURE + 40])


def signature_that_ends_in_zeros(site: Site) -> None:
    content = site.file(A)
    site.plant(A, content[: SIGNATURE + 32] + bytes(32) + content[SIGNED:])


def signature_without_a_signer(site: Site) -> None:
    content = site.file(A)
    site.plant(A, content[:SIGNER] + bytes(32) + content[SIGNATURE:])


def cut_at_the_end(site: Site) -> None:
    site.plant(A, site.file(A)[:-5])


def lengthened(site: Site) -> None:
    site.plant(A, site.file(A) + b"more")


def unsigned(site: Site) -> None:
    content = site.file(A)
    site.plant(A, content[:SIGNER] + bytes(96) + content[SIGNED:])


def of_a_stranger(site: Site) -> None:
    site.put(A, b"s", by=site.stranger)


def of_a_stranger_under_a_trusted_name(site: Site) -> None:
    signer = site.file(A)[SIGNER:SIGNATURE]
    site.put(A, b"s", by=site.stranger)
    content = site.file(A)
    site.plant(A, content[:SIGNER] + signer + content[SIGNATURE:])


def under_the_name_of_another_trusted_signer(site: Site) -> None:
    content = site.file(A)
    site.plant(A, content[:SIGNER] + site.colleague.key + content[SIGNATURE:])


def record_of_another_entry(site: Site) -> None:
    site.plant(A, with_record(site.file(A), pieces(site.file(B)).record))


def payload_of_another_entry(site: Site) -> None:
    record = pieces(site.file(A)).record[20:-9] + b"b" * 9
    site.plant(A, with_record(site.file(A), b"CGR\2" + digest(record) + record))


def blob_name_of_another_entry(site: Site) -> None:
    record = pieces(site.file(A)).record[20:]
    record = record.replace(*(bytes.fromhex(content_name(fill + LONG)) for fill in (b"a", b"b")))
    site.plant(A, with_record(site.file(A), b"CGR\2" + digest(record) + record))


def head_of_one_and_content_of_another(site: Site) -> None:
    site.plant(A, site.file(A)[:SIGNED] + site.file(B)[SIGNED:])


def head_of_another(site: Site) -> None:
    site.plant(A, site.file(B)[:SIGNED] + site.file(A)[SIGNED:])


def moved(site: Site) -> None:
    site.plant(A, site.file(B))


def of_another_namespace(site: Site) -> None:
    site.put(ELSEWHERE, b"n")
    site.plant(A, site.file(ELSEWHERE))


def in_the_format_before_signatures(site: Site) -> None:
    content = site.file(A)
    site.plant(A, b"CGE\1" + content[4:SIGNER] + content[SIGNED:])


def with_a_signature_for_the_older_format(site: Site) -> None:
    content = site.file(A)
    message = entry_file._message(A.hex, b"CGE\1", content[SIGNED:])
    made = site.publisher.do(lambda: sign(message))
    site.plant(A, content[:SIGNATURE] + made.signature + content[SIGNED:])


def in_a_later_format(site: Site) -> None:
    site.plant(A, b"CGE\3" + site.file(A)[4:])


def with_the_signature_of_a_revocation_list(site: Site) -> None:
    made = site.publisher.do(lambda: write_list(1, Revoked()))
    content = site.file(A)
    site.plant(A, content[:SIGNATURE] + made[4:68] + content[SIGNED:])


def revocation_list_as_an_entry(site: Site) -> None:
    site.plant(A, site.publisher.do(lambda: write_list(1, Revoked())))


def of_a_key_that_was_revoked(site: Site) -> None:
    site.revoke(Revoked(signers=frozenset((site.publisher.key.hex(),))), by=site.colleague)


def of_a_key_that_revoked_itself(site: Site) -> None:
    site.revoke(Revoked(signers=frozenset((site.publisher.key.hex(),))), by=site.publisher)


def replayed_after_its_revocation(site: Site) -> None:
    """A new build is believed; then somebody puts the revoked one back, and removes the list."""
    content = site.file(A)
    entries = frozenset(((A.hex, content_name(pieces(content).record)),))
    site.revoke(Revoked(entries=entries), by=site.publisher)
    site.put(A, b"2")
    assert isinstance(site.get(A), Hit)
    site.plant(A, content)
    site.revoke(Revoked(), by=site.publisher)


ATTACKS: dict[Callable[[Site], None], str] = {
    tampered_signature: "did not publish here",
    tampered_record: "did not publish here",
    tampered_description: "did not publish here",
    tampered_encoding: "did not publish here",
    cut_within_the_signature: "cut short",
    signature_that_ends_in_zeros: "did not publish here",
    signature_without_a_signer: "who is not listed",
    cut_at_the_end: "did not publish here",
    lengthened: "did not publish here",
    unsigned: "nobody signed",
    of_a_stranger: "who is not listed",
    of_a_stranger_under_a_trusted_name: "did not publish here",
    under_the_name_of_another_trusted_signer: "did not publish here",
    record_of_another_entry: "did not publish here",
    payload_of_another_entry: "did not publish here",
    blob_name_of_another_entry: "did not publish here",
    head_of_one_and_content_of_another: "did not publish here",
    head_of_another: "did not publish here",
    moved: "did not publish here",
    of_another_namespace: "did not publish here",
    in_the_format_before_signatures: "an older release, which did not sign",
    with_a_signature_for_the_older_format: "did not publish here",
    in_a_later_format: "starts with 43474503",
    with_the_signature_of_a_revocation_list: "did not publish here",
    revocation_list_as_an_entry: "starts with 43475601",
    of_a_key_that_was_revoked: "a key that was revoked",
    of_a_key_that_revoked_itself: "a key that was revoked",
    replayed_after_its_revocation: "an entry that was revoked",
}


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_an_attack_on_an_entry_is_a_miss_before_its_record_is_decoded(
    site: Site, attack: Callable[[Site], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    attack(site)
    decoded: list[object] = []
    for name in ("decode", "decode_by_digest"):
        monkeypatch.setattr(entry_file, name, lambda content, _: decoded.append(content))
    found = site.get(A)
    assert isinstance(found, Miss)
    assert ATTACKS[attack] in found.detail
    assert found.reason in ("untrusted", "damaged", "foreign-format")
    assert not decoded
    monkeypatch.undo()
    site.put(A, b"3", by=site.colleague)
    assert isinstance(site.get(A), Hit), "what is put in its place is believed"


def test_an_exchanged_blob_is_no_content_of_its_entry(site: Site) -> None:
    found = site.get(A)
    assert isinstance(found, Hit)
    assert site.open().read_blob(found.blobs["code"]) == b"a" + LONG
    site.storage.write(blob_place(found.blobs["code"]), b"b" + LONG)
    assert site.open().read_blob(found.blobs["code"]) is None


def test_an_exchanged_blob_is_no_payload(site: Site) -> None:
    site.publisher.do(lambda: site.storage.published(site.trust).put(A, Artifact(LONG)))
    site.storage.write(blob_place(content_name(LONG)), bytes(len(LONG)))
    found = site.get(A)
    assert isinstance(found, Miss)
    assert (found.reason, "does not match its name" in found.detail) == ("damaged", True)


def test_what_is_exchanged_between_its_look_up_and_its_copy_has_its_own_signer_on_record(
    site: Site, tmp_path: Path
) -> None:
    """Else it would be on record as that of the other signer, and stay when its own is revoked."""
    site.put(B, b"b", by=site.colleague)
    site.put(A, b"c", by=site.colleague)
    of_colleague = site.file(A)
    site.put(A, b"a")
    local = LocalStore(tmp_path / "node")

    def process() -> None:
        tiers = TieredStore(local, [site.open()])  # type: ignore[list-item]
        assert isinstance(tiers.get(A), Hit)
        assert isinstance(tiers.get(B), Hit)
        site.plant(A, of_colleague)
        site.open()  # packs a bundle again
        tiers.add_counts(Activity().take())

    site.reader.do(process)
    copy = local.get(A)
    if isinstance(
        copy, Hit
    ):  # directories are read again, and nothing is copied; servers are not asked twice
        assert set(copy.payload) == set(b"a")
        assert signer_of(local, A) == site.publisher.key
    assert isinstance(local.get(B), Hit), "others are copied"
    assert signer_of(local, B) == site.colleague.key


def signer_of(local: LocalStore, key: CacheKey) -> bytes:
    """Return who signed what is copied in `local`."""
    origin = local.origin(key.digest)
    assert origin is not None
    assert origin.signer is not None
    return origin.signer


@pytest.mark.parametrize("what", ["entry", "blob", "list"])
def test_links_lead_to_nothing_that_is_believed_elsewhere(site: Site, tmp_path: Path, what: str) -> None:
    """Whoever publishes a directory can have links in it; also one to what its place may hold is refused."""
    if not isinstance(site.storage, Directory):
        pytest.skip("servers have no links")
    found = site.get(A)
    assert isinstance(found, Hit)
    name = found.blobs["code"]
    places = {
        "entry": entry_place(A.hex),
        "blob": blob_place(name),
        "list": revocation_place(site.colleague.key),
    }
    if what == "list":
        site.revoke(Revoked(signers=frozenset((site.publisher.key.hex(),))), by=site.colleague)
    path, secret = site.storage.directory / places[what], tmp_path / "secret"
    for content in (b"what only this user reads", site.file(B)):
        secret.write_bytes(content)
        path.unlink()
        path.symlink_to(secret)
        if what == "blob":
            assert site.open().read_blob(name) is None
        elif what == "entry":
            assert isinstance(site.get(A), Miss)
        else:
            site.put(B, b"b", by=site.colleague)
            missed = site.get(B)
            assert isinstance(missed, Miss)
            assert "whose revocation list" in missed.detail
