"""The commands of `cachegraph key`: a key is made once, and a key that is trusted is believed."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cachegraph.cli.app import app
from cachegraph.settings import current_settings
from cachegraph.store.revocation.kept import keep, kept_directory
from cachegraph.store.revocation.list_file import Revoked, read_list, write_list
from cachegraph.store.signing import key_path, own_public_key, public_key_text
from cachegraph.store.trust import Trust
from cachegraph.store.trusted_signers import trust_list_path, trusted_signers

Run = Callable[..., str]
OTHER = b"o" * 32


@pytest.fixture(autouse=True)
def configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give each test a configuration directory of its own."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config" / "cachegraph"


@pytest.fixture
def run() -> Run:
    """Return a function that runs `cachegraph key` with arguments, and returns what it prints."""

    def command(*arguments: object, code: int = 0) -> str:
        result = CliRunner().invoke(app, ["key", *map(str, arguments)])
        assert result.exit_code == code, result.output
        return result.stdout if code == 0 else result.stderr

    return command


def test_a_new_key_is_printed_and_for_its_user_alone_and_never_replaced(run: Run) -> None:
    printed = run("new").strip()
    made = own_public_key()
    assert made is not None
    assert printed == public_key_text(made)
    assert stat.S_IMODE(key_path().stat().st_mode) == 0o600
    assert f"there is one in {key_path()}" in run("new", code=1)
    assert own_public_key() == made


def test_show_prints_the_own_key_and_the_trusted_ones(run: Run) -> None:
    assert json.loads(run("show", "--json"))["public_key"] is None
    own = run("new").strip()
    run("trust", public_key_text(OTHER), "--name", "CI of the models")
    shown: dict[str, Any] = json.loads(run("show", "--json"))
    assert shown["public_key"] == own
    assert shown["trusted"] == [{"public_key": public_key_text(OTHER), "name": "CI of the models"}]
    table = run("show")
    assert own in table
    assert "CI of the models" in table


@pytest.mark.parametrize("form", ["text", "hexadecimal", "file"])
def test_a_key_is_trusted_in_each_form_once(run: Run, form: str, tmp_path: Path) -> None:
    file = tmp_path / "other.key"
    file.write_text(f"# from the CI\n{public_key_text(OTHER)} ci\n")
    given = {"text": public_key_text(OTHER), "hexadecimal": OTHER.hex(), "file": file}[form]
    assert "trusting ed25519:" in run("trust", given)
    assert "is trusted already" in run("trust", given)
    assert [signer.key for signer in trusted_signers()] == [OTHER]
    assert current_settings({"CACHEGRAPH_DIR": "/a", "CACHEGRAPH_TRUST": "signed"}).trust == "signed"
    assert Trust.of("signed").signers == {OTHER}
    assert Trust.on_servers("signed").signers == {OTHER}
    assert Trust.on_servers("private").signers == frozenset()
    assert not Trust.of("signed").may_write


def test_the_own_key_is_trusted_beside_the_list(run: Run) -> None:
    run("new")
    run("trust", OTHER.hex())
    trust = Trust.of("signed")
    assert trust.signers == {OTHER, own_public_key()}
    assert trust.may_write


@pytest.mark.parametrize("given", ["ed25519:short", "00" * 31 + "0", "no-such-file", "two keys", "a\nname"])
def test_something_else_than_a_key_is_refused(run: Run, given: str, tmp_path: Path) -> None:
    if given == "two keys":
        (tmp_path / "two").write_text(f"{public_key_text(OTHER)}\n{public_key_text(b'p' * 32)}\n")
        assert "found 2 public keys" in run("trust", tmp_path / "two", code=2)
    elif given == "a\nname":
        run("trust", OTHER.hex(), "--name", given, code=2)
    else:
        run("trust", given, code=1 if os.sep not in given and not given.startswith("ed") else 2)
    assert trusted_signers() == []


@pytest.mark.parametrize("change", ["mode", "content", "link", "directory"])
def test_a_trust_list_that_others_can_have_written_trusts_nobody(run: Run, change: str) -> None:
    run("trust", OTHER.hex())
    path = trust_list_path()
    if change == "mode":
        path.chmod(0o666)
    elif change == "content":
        path.write_text(f"{public_key_text(OTHER)}\ned25519:cut\n")
    elif change == "link":
        path.rename(path.with_name("aside"))
        path.symlink_to(path.with_name("aside"))
    else:
        path.unlink()
        path.mkdir()
    assert Trust.of("signed").signers == frozenset()
    assert str(path) in run("show", code=1)
    run("trust", (b"p" * 32).hex(), code=1)


def test_lines_written_by_hand_are_kept_and_added_to(run: Run) -> None:
    run("trust", OTHER.hex())
    path = trust_list_path()
    path.write_text(f"# our CI\n\n{public_key_text(OTHER)} ci of {'x' * 10}")
    run("trust", (b"p" * 32).hex(), "--name", "ünïcode")
    assert [(signer.key[:1], signer.name) for signer in trusted_signers()] == [
        (b"o", "ci of xxxxxxxxxx"),
        (b"p", "ünïcode"),
    ]


@pytest.mark.parametrize("command", [["new"], ["show"], ["trust", "6f" * 32]])
def test_without_a_home_each_command_says_so(
    run: Run, command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cachegraph.user_directories._directory_of_user", lambda *_: "")
    assert "set HOME or XDG_CONFIG_HOME" in run(*command, code=1)
    assert Trust.of("signed").signers == frozenset()


@pytest.mark.parametrize("command", [["new"], ["trust", "6f" * 32]])
def test_a_configuration_directory_that_cannot_be_written_is_an_error_and_no_trace(
    run: Run, command: list[str], configuration: Path
) -> None:
    configuration.parent.mkdir(parents=True)
    configuration.write_text("a file where the directory should be")
    assert str(configuration) in run(*command, code=1)


def doctor(trust: str) -> tuple[int, dict[str, list[tuple[str, str]]]]:
    """Return the exit code of the doctor, and what it found and advised of signatures."""
    result = CliRunner().invoke(app, ["doctor", "--json"], env={"CACHEGRAPH_TRUST": trust})
    found: dict[str, list[tuple[str, str]]] = {}
    for tier in json.loads(result.stdout)["tiers"]:
        for finding in tier["findings"] if tier["tier"] == "signatures" else ():
            found.setdefault(finding["what"], []).append((finding["found"], finding["advice"]))
    return result.exit_code, found


def test_the_doctor_names_the_policy_and_the_signers(run: Run) -> None:
    assert doctor("private") == (0, {})
    code, found = doctor("signed")
    assert (code, found["signer"][0][0]) == (1, "nobody")
    own = run("new").strip()
    run("trust", public_key_text(OTHER), "--name", "CI")
    code, found = doctor("signed")
    assert code == 0
    assert {text for text, _ in found["signer"]} == {f"{own} you", f"{public_key_text(OTHER)} CI"}
    assert found["trust list"] == [(str(trust_list_path()), "")]
    code, found = doctor(f"signed:{public_key_text(b'p' * 32)}")
    assert {text for text, _ in found["signer"]} == {f"{own} you", public_key_text(b"p" * 32)}


def test_the_doctor_shows_what_was_revoked_and_which_lists_cannot_be_read(run: Run) -> None:
    run("new")
    own = own_public_key()
    assert own is not None
    revoked = Revoked(signers=frozenset((OTHER.hex(),)), writers=frozenset(("1@host",)))
    content = write_list(3, revoked)
    keep(content, read_list(content, own))
    run("trust", OTHER.hex())
    code, found = doctor("signed")
    assert code == 1
    assert found["revocations"] == [("2 revocations, in list 3 of you", "")]
    assert [advice != "" for text, advice in found["signer"] if public_key_text(OTHER) in text] == [True]
    [kept] = kept_directory().iterdir()
    kept.write_bytes(b"damaged")
    code, found = doctor("signed")
    assert "a list that cannot be read" in found["revocations"][0][0]
    trust_list_path().chmod(0o666)
    code, found = doctor("signed")
    assert "others can have written it" in found["configuration"][0][0]
