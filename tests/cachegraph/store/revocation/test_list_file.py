"""Revocation lists: nobody but their signer writes one, and nothing damaged is read as one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachegraph.store.revocation.list_file import (
    RevocationFault,
    RevocationList,
    Revoked,
    _message,
    read_list,
    write_list,
)
from cachegraph.store.signing import sign
from tests.cachegraph.store.signers import signing_key

SOME = Revoked(
    frozenset(("aa" * 32,)),
    frozenset(("1000@node-1", "0@ünï")),
    frozenset(("0.1.0",)),
    frozenset((("ab" * 16, "cd" * 40),)),
)


@pytest.fixture(autouse=True)
def signer(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """Return the key of this test's user."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
    return signing_key()


def test_what_is_written_is_read(signer: bytes) -> None:
    assert read_list(write_list(7, SOME), signer) == RevocationList(signer, 7, SOME)
    assert read_list(write_list(1, Revoked()), signer).revoked == Revoked()


def test_the_union_has_what_one_of_several_revokes() -> None:
    other = Revoked(releases=frozenset(("0.2.0",)))
    assert Revoked.union((SOME, other)).releases == {"0.1.0", "0.2.0"}
    assert Revoked.union((SOME, other)).signers == SOME.signers
    assert Revoked.union(()) == Revoked()


def test_every_flipped_bit_and_every_cut_is_refused(signer: bytes) -> None:
    whole = write_list(7, SOME)
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 0x04
        with pytest.raises(RevocationFault):
            read_list(bytes(changed), signer)
        with pytest.raises(RevocationFault):
            read_list(whole[:place], signer)
    with pytest.raises(RevocationFault):
        read_list(whole + b"\n", signer)


def test_the_list_of_one_signer_is_none_of_another(
    signer: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    signing_key()
    with pytest.raises(RevocationFault, match="its signer did not write it"):
        read_list(write_list(1, SOME), signer)


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_no_list(content: bytes) -> None:
    with pytest.raises(RevocationFault):
        read_list(content, b"s" * 32)


@pytest.mark.parametrize(
    "document",
    [
        {},
        [],
        7,
        {"number": 0},
        {"number": True},
        {"number": 1.5},
        {"number": 1 << 60},
        {"signers": ["short"]},
        {"signers": [7]},
        {"signers": {}},
        {"writers": ["\x1b[31m"]},
        {"writers": [""]},
        {"writers": ["x" * 101]},
        {"releases": None},
        {"entries": [["ab" * 16]]},
        {"entries": ["ab"]},
        {"entries": [[["ab"], "cd" * 40]]},
        {"later": []},
    ],
)
def test_even_its_signer_cannot_write_something_else(document: object, signer: bytes) -> None:
    """A release with another format has another version; so what this one does not know is refused."""
    if isinstance(document, dict) and document:
        kinds = {name: [] for name in Revoked._fields}
        document = {"number": 1, **kinds, **document}
    content = json.dumps(document).encode()
    whole = b"CGV\1" + sign(_message(signer, content)).signature + content
    with pytest.raises(RevocationFault, match="list of this release"):
        read_list(whole, signer)


@pytest.mark.parametrize("writer", ["", "two\nlines", "x" * 101])
def test_what_could_not_be_read_is_not_written(writer: str) -> None:
    with pytest.raises(ValueError, match="list of this release"):
        write_list(1, Revoked(writers=frozenset((writer,))))
