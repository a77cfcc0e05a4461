"""The application: what it imports, its help, its version, and completion in a shell."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from cachegraph.cli.app import COMMANDS, app
from cachegraph.version import __version__

ROOT = Path(__file__).resolve().parents[3]
HEAVY = {"sqlalchemy", "numpy", "rich", "cryptography", "asyncio", "numba"}


def commands() -> list[list[str]]:
    """Return the words of every command, those of groups included."""
    found = []
    for name in COMMANDS:
        command = app.get_command(click.Context(app), name)
        nested = list(command.commands) if isinstance(command, click.Group) else []
        found += [[name], *([name, inner] for inner in nested)]
    return found


def run_process(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    given = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run([sys.executable, "-c", code], env=given, capture_output=True, text=True)


@pytest.mark.parametrize("name", ["--version", "--help", "dir", "stats", "list", "prune"])
def test_a_command_imports_no_other_and_nothing_heavy(name: str, cache_directory: Path) -> None:
    done = run_process(
        f"import sys; sys.argv = ['cachegraph', {name!r}]\n"
        "from cachegraph.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(*sys.modules, sep=' ', file=sys.stderr)"
    )
    loaded = set(done.stderr.split())
    assert not loaded & HEAVY, done.stderr
    assert name == "--help" or "cachegraph.cli.verify" not in loaded


def test_why_miss_reads_the_graphs_of_the_engine_and_imports_nothing_heavy(cache_directory: Path) -> None:
    compiling = "import engine, engine.tensor as pt; x = pt.vector('x'); engine.function([x], [x * {}])"
    for factor in (2, 3):
        assert run_process(compiling.format(factor)).returncode == 0
    done = run_process(
        "import sys; sys.argv = ['cachegraph', 'why-miss']\n"
        "from cachegraph.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(*sys.modules, sep=' ', file=sys.stderr)",
        COLUMNS="200",
    )
    assert "graph: node 0: Elemwise{mul}, input 1: constant 3.0 float64 (1,)" in done.stdout
    assert not set(done.stderr.split()) & HEAVY, done.stderr


def test_an_interrupt_is_no_traceback_and_has_the_exit_code_of_shells(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("cachegraph.cli.list.open_directory", interrupt)
    assert CliRunner().invoke(app, ["list"]).exit_code == 130
    while_importing = run_process(
        "import sys\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'cachegraph.cli.app': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "from cachegraph.cli import main\n"
        "main()"
    )
    assert (while_importing.returncode, while_importing.stderr) == (130, "")


@pytest.mark.parametrize("words", commands(), ids=" ".join)
@pytest.mark.parametrize("option", ["-h", "--help"])
def test_every_command_has_help_with_the_exit_codes(words: list[str], option: str) -> None:
    done = CliRunner().invoke(app, [*words, option])
    assert done.exit_code == 0
    assert "Exit codes: 0 fine, 1 found a problem, 2 wrong usage, 130 interrupted." in done.stdout


def test_the_help_lists_every_command_with_its_whole_summary() -> None:
    shown = " ".join(CliRunner().invoke(app, ["--help"], terminal_width=80).stdout.split())
    for name in COMMANDS:
        command = app.get_command(click.Context(app), name)
        assert command is not None
        assert f"{name} {' '.join((command.help or '').partition(chr(10) * 2)[0].split())}" in shown


def test_the_version_is_printed() -> None:
    assert CliRunner().invoke(app, ["--version"]).stdout.endswith(f" {__version__}\n")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_for_the_shell(shell: str) -> None:
    done = CliRunner().invoke(app, ["completion", shell])
    assert done.exit_code == 0
    assert f"_CACHEGRAPH_COMPLETE={shell}_complete" in done.stdout


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("cachegraph st", "plain,stats"),
        ("cachegraph key tr", "plain,trust"),
        ("cachegraph list --so", "plain,--sort"),
    ],
)
def test_a_shell_is_answered_with_commands_and_options(words: str, expected: str) -> None:
    done = run_process(
        "import sys; sys.argv = ['cachegraph']; from cachegraph.cli import main; main()",
        _CACHEGRAPH_COMPLETE="bash_complete",
        COMP_WORDS=words,
        COMP_CWORD=str(len(words.split()) - 1),
    )
    assert done.stdout.split() == [expected], done.stderr


SHELLS = {
    "bash": """eval "$(cachegraph completion bash)"
        COMP_WORDS=({typed}); COMP_CWORD={place}; COMPREPLY=()
        _cachegraph_completion cachegraph; printf '%s\\n' "${{COMPREPLY[@]}}" """,
    "fish": "cachegraph completion fish | source; complete -C '{typed}'",
    "zsh": """autoload -Uz compinit; compinit -u -D; eval "$(cachegraph completion zsh)"
        _arguments() {{ }}; _path_files() {{ }}; _describe() {{ print -l ${{(P)3:-${{(P)2}}}}; }}
        compadd() {{ print -l ${{(P)@[-1]}}; }}
        words=({typed}); CURRENT={current}; _cachegraph_completion""",
}


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("cachegraph st", ["stats"]),
        ("cachegraph key tr", ["trust"]),
        ("cachegraph list --sort cr", ["created"]),
        ("cachegraph completion z", ["zsh"]),
    ],
)
def test_a_real_shell_completes(shell: str, typed: str, expected: list[str], tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    command = tmp_path / "cachegraph"
    program = "import sys; sys.argv[0] = 'cachegraph'; from cachegraph.cli import main; main()"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{program}" "$@"\n')
    command.chmod(0o755)
    count = len(typed.split())
    script = SHELLS[shell].format(typed=typed, place=count - 1, current=count)
    own = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)}
    options = ["-f"] if shell == "zsh" else []
    done = subprocess.run(
        [shell, *options, "-c", script], env={**os.environ, **own}, capture_output=True, text=True, check=True
    )
    assert [line.split("\t")[0].split(":")[0] for line in done.stdout.splitlines() if line] == expected
