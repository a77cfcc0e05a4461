"""Every program in tools/stress runs for a moment and finds nothing; the loop that they share reports
what they find.
"""

import subprocess
import sys

import pytest

from tests.tools.programs import TOOLS, load_program

STRESS = TOOLS / "stress"
PROGRAMS = sorted(path.stem for path in STRESS.glob("*.py") if path.stem != "rounds")
ARGUMENTS = {"remotes": ["--processes", "4"]}
rounds = load_program("stress/rounds.py")


def run_rounds(monkeypatch, attack, *arguments):
    monkeypatch.setattr(sys, "argv", ["attack.py", *arguments])
    return rounds.run("An attack.", attack)


def test_a_fault_is_printed_with_the_command_that_repeats_its_round(monkeypatch, capsys):
    def attack(random, directory):
        return "a wrong byte" if random.random() < 0.5 else None

    assert run_rounds(monkeypatch, attack, "--rounds", "20", "--seed", "fixed") == 1
    first = capsys.readouterr().out.splitlines()[1].split()
    again = first[first.index("--seed") :]
    assert run_rounds(monkeypatch, attack, *again) == 1
    assert "a wrong byte" in capsys.readouterr().out


def test_rounds_without_a_fault_end_with_exit_code_0(monkeypatch, tmp_path):
    seen = []

    def attack(random, directory):
        seen.append(directory)
        (directory / "left behind").write_text("x")

    assert run_rounds(monkeypatch, attack, "--rounds", "3") == 0
    assert len(set(seen)) == 3
    assert not any(directory.exists() for directory in seen)


@pytest.mark.stress
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_program_finds_no_fault_in_a_few_seconds(program):
    done = subprocess.run(
        [sys.executable, STRESS / f"{program}.py", "--seconds", "3", *ARGUMENTS.get(program, [])],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_choosing_no_case_of_remotes_is_an_error(monkeypatch, capsys):
    remotes = load_program("stress/remotes.py")
    monkeypatch.setattr(remotes, "run", lambda case, count: remotes.Outcome(1, 0.0, ""))
    monkeypatch.setattr(sys, "argv", ["remotes.py", "--only", "redis"])
    assert remotes.main() == 0
    monkeypatch.setattr(sys, "argv", ["remotes.py", "--only", "no such server"])
    with pytest.raises(SystemExit):
        remotes.main()
    assert "no case's line contains 'no such server'" in capsys.readouterr().err
