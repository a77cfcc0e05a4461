"""tools/find-python: which of the interpreters on a machine runs the project."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "tools" / "find-python"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


class Machine:
    """A machine with nothing in PATH and no pyenv version but those that a test puts there."""

    def __init__(self, root: Path) -> None:
        self.path = root / "bin"
        self.pyenv = root / "pyenv"
        self.path.mkdir()

    def install(self, place: Path, answer: str, exit_code: int = 0) -> Path:
        """Put an interpreter at `place` that answers the probe with `answer`."""
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"#!/bin/sh\necho '{answer}'\nexit {exit_code}\n")
        place.chmod(0o755)
        return place

    def find(self, *options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["/bin/sh", str(PROGRAM), *options],
            env={"PATH": str(self.path), "HOME": "/nonexistent", "PYENV_ROOT": str(self.pyenv)},
            capture_output=True,
            text=True,
            check=False,
        )


def test_the_newest_is_found_whatever_its_name(machine: Machine) -> None:
    machine.install(machine.path / "python3.11", "311 9 /a/python3.11")
    machine.install(machine.path / "python3", "313 1 /a/python3.13")
    assert machine.find().stdout == "/a/python3.13\n"


def test_the_oldest_is_found_on_request(machine: Machine) -> None:
    machine.install(machine.path / "python3.12", "312 0 /a/python3.12")
    machine.install(machine.path / "python3.11", "311 2 /a/python3.11")
    assert machine.find("--oldest").stdout == "/a/python3.11\n"


def test_a_version_is_found_on_request(machine: Machine) -> None:
    machine.install(machine.path / "python3.11", "311 2 /a/python3.11")
    machine.install(machine.path / "python3.12", "312 0 /a/python3.12")
    machine.install(machine.path / "python3", "313 1 /a/python3.13")
    assert machine.find("--version", "3.12").stdout == "/a/python3.12\n"


def test_a_requested_version_that_is_missing_is_named(machine: Machine) -> None:
    machine.install(machine.path / "python3", "313 1 /a/python3.13")
    found = machine.find("--version", "3.14")
    assert (found.returncode, found.stdout) == (1, "")
    assert "no usable Python from 3.14 to 3.14" in found.stderr


def test_a_pyenv_version_that_is_not_in_path_is_found(machine: Machine) -> None:
    machine.install(machine.path / "python3", "311 2 /a/python3")
    machine.install(machine.pyenv / "versions" / "3.13.0" / "bin" / "python3", "313 0 /pyenv/3.13.0")
    assert machine.find().stdout == "/pyenv/3.13.0\n"


def test_a_later_patch_release_is_preferred(machine: Machine) -> None:
    machine.install(machine.path / "python3", "313 0 /a/python3")
    machine.install(machine.path / "python3.13", "313 10 /b/python3")
    assert machine.find().stdout == "/b/python3\n"
    assert machine.find("--oldest").stdout == "/b/python3\n"


def test_a_shim_that_does_not_run_is_passed_over(machine: Machine) -> None:
    machine.install(machine.path / "python3.13", "pyenv: python3.13: command not found", exit_code=127)
    machine.install(machine.path / "python3.11", "311 2 /a/python3.11")
    assert machine.find().stdout == "/a/python3.11\n"


def test_an_interpreter_without_ensurepip_is_skipped_with_a_message(machine: Machine) -> None:
    broken = machine.install(machine.path / "python3.13", "- it has no usable ensurepip")
    machine.install(machine.path / "python3.11", "311 2 /a/python3.11")
    found = machine.find()
    assert found.stdout == "/a/python3.11\n"
    assert f"skipped {broken}: it has no usable ensurepip" in found.stderr


def test_a_version_that_was_never_tested_is_skipped_with_a_message(machine: Machine) -> None:
    machine.install(machine.path / "python3", "315 0 /a/python3.15")
    machine.install(machine.path / "python3.12", "312 1 /a/python3.12")
    found = machine.find()
    assert found.stdout == "/a/python3.12\n"
    assert "Python 3.15 is newer" in found.stderr


def test_too_old_is_as_good_as_none_and_the_message_says_what_to_do(machine: Machine) -> None:
    machine.install(machine.path / "python3", "310 13 /a/python3.10")
    found = machine.find()
    assert (found.returncode, found.stdout) == (1, "")
    assert "python3-venv" in found.stderr


def test_a_directory_with_spaces_is_looked_through(machine: Machine) -> None:
    machine.path = machine.path / "with spaces"
    machine.install(machine.path / "python3", "312 1 /a b/python3")
    assert machine.find().stdout == "/a b/python3\n"


def test_a_real_interpreter_answers_with_the_base_of_its_environment(machine: Machine) -> None:
    place = machine.path / "python3"
    place.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    place.chmod(0o755)
    found = machine.find()
    assert found.stdout == f"{getattr(sys, '_base_executable', sys.executable)}\n", found.stderr


def test_an_unknown_option_is_wrong_usage(machine: Machine) -> None:
    assert machine.find("--best").returncode == 2
