"""PyTensor's own tests with the adapter and without: what is recorded, how runs go on, and what counts
as a difference.
"""

import json
import subprocess
import sys

import pytest

from tests.tools.programs import TOOLS, load_program

TOOL = TOOLS / "pytensor_suite"

TESTS = """
import os
import pytest
from pytensor.compile.mode import Mode

def test_passes():
    pass

def test_fails():
    assert 1 == 2

def test_does_not_like_the_adapter():
    assert "cachegraph" not in Mode.__dict__["function_maker"].fget.__module__

@pytest.mark.skip
def test_is_skipped():
    pass

@pytest.mark.xfail
def test_is_known_to_fail():
    assert False

def test_dies():
    os._exit(3)

def test_after_it():
    pass
"""

MODE_TESTS = """
import pytensor
from pytensor.compile.mode import get_default_mode

def test_the_engine_is_the_default():
    from engine.pytensor.linker import EngineLinker

    assert isinstance(get_default_mode().linker, EngineLinker)
    assert isinstance(pytensor.compile.mode.get_mode("FAST_RUN").linker, EngineLinker)

def test_passes():
    pass

def test_fails():
    assert 1 == 2

def test_numba_is_the_default():
    assert type(get_default_mode().linker).__name__ == "NumbaLinker"
"""


@pytest.fixture(scope="module")
def differences():
    """Return the module of the tool that compares runs."""
    return load_program("pytensor_suite/differences.py")


@pytest.fixture(scope="module")
def outcomes():
    """Return the module that reads what was recorded."""
    return load_program("pytensor_tests/outcomes.py")


@pytest.fixture
def checkout(tmp_path):
    """A repository with one file of tests, whose own package must not be what is tested."""
    folder = tmp_path / "checkout"
    (folder / "tests").mkdir(parents=True)
    (folder / "tests" / "test_one.py").write_text(TESTS)
    (folder / "conftest.py").write_text("")
    (folder / "pyproject.toml").write_text("[tool.pytest.ini_options]\nxfail_strict = true\n")
    (folder / "pytensor").mkdir()
    (folder / "pytensor" / "__init__.py").write_text("raise RuntimeError('the checkout was imported')")
    return folder


def run_tool(checkout, directory, *options):
    """The exit code, the report, and the processes that were started."""
    command = [
        sys.executable,
        str(TOOL),
        str(checkout),
        "--directory",
        str(directory),
        "--tests",
        "tests",
        "--json",
    ]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout), done.stderr.splitlines()


@pytest.mark.slow
def test_a_test_that_fails_with_the_adapter_alone_is_a_difference_and_runs_go_on(checkout, tmp_path):
    pytest.importorskip("pytensor", reason="PyTensor is not installed")
    code, report, _ = run_tool(checkout, tmp_path / "runs", "--run", "plain", "--run", "cold")
    assert code == 1
    assert report["runs"]["plain"]["outcomes"] == {
        "passed": 3,
        "failed": 1,
        "skipped": 1,
        "xfailed": 1,
        "never ended": 1,
    }
    assert report["runs"]["plain"]["stopped"] == ["tests/test_one.py::test_dies"]
    assert report["runs"]["plain"]["counters"] == {}
    assert report["runs"]["cold"]["counters"]["levels"]["function"] == {"hits": 0, "misses": 0}
    assert report["runs"]["warm"]["not_run"] == 7
    [found] = report["differences"]
    assert (found["test"], found["run"]) == ("tests/test_one.py::test_does_not_like_the_adapter", "cold")
    assert (found["plain"], found["outcome"], found["explanation"]) == ("passed", "failed", "")
    _, again, started = run_tool(checkout, tmp_path / "runs", "--run", "plain", "--run", "cold")
    assert (again, started) == (report, [])


def test_the_files_of_all_shards_are_all_files(checkout, tmp_path):
    for number in range(5):
        (checkout / "tests" / f"test_{number}.py").write_text("def test_nothing():\n    pass\n")
    _, _, first = run_tool(checkout, tmp_path / "runs", "--shard", "1/2", "--seconds", "0")
    assert first == []
    tool = load_program("pytensor_suite/__main__.py")
    files = tool.test_files(checkout, ["tests"])
    assert len(files) == 6
    shards = [tool.shard(files, f"{number}/3") for number in (1, 2, 3)]
    assert sorted(file for shard in shards for file in shard) == files
    with pytest.raises(SystemExit, match="4/3"):
        tool.shard(files, "4/3")


def test_shards_may_begin_at_once(checkout, tmp_path):
    command = [
        sys.executable,
        str(TOOL),
        str(checkout),
        "--directory",
        str(tmp_path / "runs"),
        "--seconds",
        "0",
    ]
    shards = [
        subprocess.Popen([*command, "--shard", f"{number}/4"], stdout=subprocess.DEVNULL)
        for number in range(1, 5)
    ]
    assert [shard.wait(timeout=120) for shard in shards] == [0] * 4
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["suite"]
    assert (tmp_path / "runs" / "suite" / "tests" / "test_one.py").read_text() == TESTS


def test_counts_of_processes_are_added_and_a_test_that_never_ended_is_said(outcomes):
    run = outcomes.run_of(
        [
            {"start": "a"},
            {"test": "a", "outcome": "passed", "seconds": 1.0, "message": ""},
            {"end": 0, "counters": {"levels": {"function": {"hits": 1}}, "seconds_saved": 0.5}},
            {"start": "b"},
            {
                "end": 0,
                "counters": {"levels": {"function": {"hits": 2}, "op": {"hits": 1}}, "seconds_saved": 1},
            },
        ]
    )
    assert run.outcomes == {"a": "passed", "b": outcomes.NEVER_ENDED}
    assert run.counters == {"levels": {"function": {"hits": 3}, "op": {"hits": 1}}, "seconds_saved": 1.5}


def test_a_difference_is_explained_if_run_test_and_message_fit():
    explained = load_program("pytensor_tests/explained.py")
    fitting = explained.ExplainedDifference(
        "warm", "tests/one.py::test_a*", "1 == 2", "they look at the cache"
    )
    found = [
        explained.explanation_of([fitting], run, f"tests/one.py::{test}", message)
        for run, test, message in (
            ("warm", "test_ab", "assert 1 == 2"),
            ("cold", "test_ab", "assert 1 == 2"),
            ("warm", "test_b", "assert 1 == 2"),
            ("warm", "test_ab", "assert 1 == 3"),
        )
    ]
    assert found == ["they look at the cache", "", "", ""]


def test_differences_carry_their_message_and_equal_outcomes_are_none(differences, outcomes):
    plain, other = (
        outcomes.Run({f"tests/one.py::test_{name}": outcome for name in "ab"}, messages, 0.0, {})
        for outcome, messages in (("passed", {}), ("failed", {"tests/one.py::test_a": "assert 1 == 2"}))
    )
    found = differences.differences(plain, "warm", other)
    assert [(each.message, each.explanation) for each in found] == [("assert 1 == 2", ""), ("", "")]
    assert differences.differences(plain, "warm", plain) == []


def test_with_a_mode_a_failure_that_was_not_compared_is_a_difference(differences, outcomes):
    numba = outcomes.Run({"b": "failed"}, {}, 0.0, {})
    engine = outcomes.Run({"a": "failed", "b": "failed", "c": "passed"}, {}, 0.0, {})
    plain = differences.with_tests_not_run(numba, engine)
    [found] = differences.differences(plain, "engine", engine)
    assert (found.test, found.plain, found.outcome) == ("a", "not run", "failed")


@pytest.mark.slow
def test_with_a_mode_only_tests_that_do_not_pass_in_it_are_run_in_the_default_one(checkout, tmp_path):
    pytest.importorskip("pytensor", reason="PyTensor is not installed")
    (checkout / "tests" / "test_one.py").write_text(MODE_TESTS)
    code, report, _ = run_tool(checkout, tmp_path / "runs", "--mode", "ENGINE")
    assert code == 1
    assert report["runs"]["engine"]["outcomes"] == {"passed": 2, "failed": 2}
    assert report["runs"]["numba"]["outcomes"] == {"passed": 1, "failed": 1}
    [found] = report["differences"]
    assert (found["test"], found["run"]) == ("tests/test_one.py::test_numba_is_the_default", "engine")
    assert (found["plain"], found["outcome"], found["explanation"]) == ("passed", "failed", "")
