"""The examination of signatures: whose entries are believed, and what these signers have revoked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cachegraph.errors import NoDirectoryError
from cachegraph.store.configuration import UnusableFile
from cachegraph.store.maintenance.diagnosis import Finding
from cachegraph.store.revocation.kept import kept_lists
from cachegraph.store.revocation.list_file import RevocationList, Revoked
from cachegraph.store.signing import own_public_key, public_key_text
from cachegraph.store.trust import Trust
from cachegraph.store.trusted_signers import trust_list_path, trusted_signers
from cachegraph.units import format_count

_UNTRUST = "its entries are refused: remove it from CACHEGRAPH_TRUST, or from the trust list"
_RENEW = "readers refuse what you sign: move the file of your key away, and run `cachegraph key new`"


def examine_signatures(setting: str) -> list[Finding]:
    """Return whose signatures are believed under a valid value of CACHEGRAPH_TRUST, and what they revoked.

    Never raises: a failed check is a finding.
    """
    signers = Trust.on_servers(setting).signers or frozenset()
    lists: dict[str, RevocationList | UnusableFile] = {}
    findings: list[Finding] = []
    try:
        lists = kept_lists(signers)
        names = {signer.key: signer.name for signer in trusted_signers()}
        own = own_public_key()
        findings += [Finding("trust list", str(trust_list_path()))] if setting == "signed" else []
    except (OSError, NoDirectoryError) as error:
        return [
            *findings,
            Finding("configuration", str(error), "without it, signed entries are not believed"),
        ]
    names |= {} if own is None else {own: "you"}
    revoked = Revoked.union(found.revoked for found in lists.values() if isinstance(found, RevocationList))
    findings += [
        _signer(signer, names, revoked, _RENEW if signer == own else _UNTRUST) for signer in sorted(signers)
    ]
    if not signers:
        findings.append(Finding("signer", "nobody", "`cachegraph key trust KEY`, or `cachegraph key new`"))
    return [*findings, *_revocations(lists, names)]


def _signer(signer: bytes, names: Mapping[bytes, str], revoked: Revoked, advice: str) -> Finding:
    text = f"{public_key_text(signer)} {names.get(signer, '')}".rstrip()
    return Finding("signer", text, advice if signer.hex() in revoked.signers else "")


def _revocations(
    lists: Mapping[str, RevocationList | UnusableFile], names: Mapping[bytes, str]
) -> Iterator[Finding]:
    for found in lists.values():
        if isinstance(found, UnusableFile):
            yield Finding("revocations", str(found), "until then, no entry of that signer is believed")
            continue
        count = format_count(sum(map(len, found.revoked)), "revocation")
        whose = names.get(found.signer) or public_key_text(found.signer)
        yield Finding("revocations", f"{count}, in list {found.number} of {whose}")
