"""tools/set-up: an environment is made once, and made anew when what it was made from changed or it is
broken.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / "tools"
INTERPRETER = """#!/bin/sh
case "$*" in
    *python_version*) echo 3.12.1 ;;
    "-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
    "-m pip "*) echo installed >>"{log}"; exit "$(cat "{exit_code}")" ;;
esac
"""


class Checkout:
    """A checkout whose interpreter writes down each installation instead of making it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.log = root / "log"
        self.exit_code = root / "exit-code"
        (root / "tools").mkdir()
        shutil.copy(TOOLS / "set-up", root / "tools" / "set-up")
        for name in ("pyproject.toml", "constraints.txt", "log"):
            (root / name).touch()
        self.exit_code.write_text("0")
        self.program("python", INTERPRETER.format(log=self.log, exit_code=self.exit_code))
        self.program("tools/find-python", f"#!/bin/sh\necho {root}/python\n")

    def program(self, name: str, text: str) -> None:
        (self.root / name).write_text(text)
        (self.root / name).chmod(0o755)

    def set_up(self, *options: str) -> subprocess.CompletedProcess[str]:
        words = [str(self.root / "tools" / "set-up"), ".venv", *options]
        return subprocess.run(words, capture_output=True, text=True, check=False, cwd=self.root)

    @property
    def installations(self) -> int:
        return len(self.log.read_text().split())


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_the_first_set_up_installs_and_the_second_does_nothing(checkout: Checkout) -> None:
    first, second = checkout.set_up(), checkout.set_up()
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert "Python 3.12.1" in first.stdout
    assert second.stdout == ""
    assert checkout.installations == 1


@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt"])
def test_what_it_was_made_from_changed_so_it_is_made_anew(checkout: Checkout, name: str) -> None:
    checkout.set_up()
    (checkout.root / name).write_text("changed")
    checkout.set_up()
    assert checkout.installations == 2


def test_pins_take_the_place_of_those_of_the_same_packages(checkout: Checkout) -> None:
    (checkout.root / "constraints.txt").write_text("# all\na==1\nb==2\nba==3\n")
    pins = checkout.root / "older.txt"
    pins.write_text("# older\nb==1\n")
    assert checkout.set_up("--pins", "older.txt").returncode == 0
    assert (checkout.root / ".venv" / "constraints.txt").read_text() == "# older\nb==1\n# all\na==1\nba==3\n"
    pins.write_text("b==0\n")
    checkout.set_up("--pins", "older.txt")
    assert checkout.installations == 2


def test_a_set_up_that_failed_is_done_again(checkout: Checkout) -> None:
    checkout.exit_code.write_text("1")
    assert checkout.set_up().returncode == 1
    checkout.exit_code.write_text("0")
    assert checkout.set_up().returncode == 0
    assert checkout.installations == 2


def test_an_environment_whose_interpreter_is_gone_is_made_anew(checkout: Checkout) -> None:
    checkout.set_up()
    (checkout.root / ".venv" / "bin" / "python").unlink()
    assert checkout.set_up().returncode == 0
    assert checkout.installations == 2


def test_a_checkout_that_moved_is_set_up_anew(checkout: Checkout) -> None:
    checkout.set_up()
    moved = checkout.root / "elsewhere"
    shutil.copytree(checkout.root, moved)
    assert subprocess.run([str(moved / "tools" / "set-up"), ".venv"], check=False).returncode == 0
    assert checkout.installations == 2


def test_without_a_python_nothing_is_made(checkout: Checkout) -> None:
    checkout.program("tools/find-python", "#!/bin/sh\necho nothing usable >&2\nexit 1\n")
    done = checkout.set_up()
    assert (done.returncode, done.stderr) == (1, "nothing usable\n")
    assert not (checkout.root / ".venv").exists()
