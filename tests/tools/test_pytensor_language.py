"""PyTensor's tests on the engine: how names are found, and how tests are counted."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import engine.tensor as pt
from tests.tools.programs import TOOLS, load_program

TOOL = TOOLS / "pytensor_language"

TESTS = """
import os
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.tensor.nonsense import a_class, a_decorator, a_value
from pytensor.tensor.shape import shape

class Subclass(a_class):
    pass

MADE = Subclass(a_value[2] + 1)

@a_decorator(3)
def decorated():
    pass

def test_passes():
    assert shape(pt.vector("x")).type.shape == (1,)

@pytest.mark.parametrize("value", [a_value.part, 1])
def test_needs_what_is_missing_in_one_case(value):
    assert value == 1

def test_makes_a_subclass_of_a_missing_class():
    with pytest.raises(Exception):
        Subclass()

def test_gives_something_missing_to_the_engine():
    pt.zeros(a_value)

def test_asks_for_a_missing_attribute():
    pt.vector("x").nonsense

def test_asks_for_a_missing_parameter():
    pytensor.function([], [], nonsense=1)

def test_after_a_missing_name():
    assert pytensor.config.floatX == "float64"

@pytensor.config.change_flags(int_division="raise")
def test_changes_a_flag():
    pass

@pytensor.config.change_flags(floatX="float32")
def test_changes_the_flag_that_the_engine_has():
    assert pytensor.config.floatX == pt.vector().dtype == "float32"

@pytest.mark.xfail(strict=True)
def test_is_complete_where_pytensor_is_not():
    assert pt.vector().dtype == "float64"

def test_differs():
    assert str(pt.vector("x")) == "y"

@pytest.mark.skip
def test_is_skipped():
    pass

def test_hangs():
    while True:
        pass

def test_dies():
    os._exit(3)

def test_after_it():
    pass
"""

NAMES = {
    "pytensor.tensor.nonsense.a_value.part": 1,
    "pytensor.tensor.nonsense.a_class": 1,
    "pytensor.tensor.nonsense.a_value": 1,
    "TensorVariable.nonsense": 1,
    "function(nonsense=)": 1,
    "pytensor.config.int_division=raise": 1,
}


@pytest.fixture
def checkout(tmp_path):
    """A repository with two files of tests, one of which cannot be collected; its package has a module."""
    folder = tmp_path / "checkout"
    (folder / "tests").mkdir(parents=True)
    (folder / "tests" / "test_one.py").write_text(TESTS)
    (folder / "tests" / "test_two.py").write_text("import pytensor.tensor.never\n")
    (folder / "conftest.py").write_text("import pytensor\n")
    (folder / "pyproject.toml").write_text("[tool.pytest.ini_options]\nxfail_strict = true\n")
    for module in ("__init__", "tensor/__init__", "tensor/shape", "tensor/nonsense"):
        path = folder / "pytensor" / f"{module}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text("raise RuntimeError('the checkout was imported')")
    return folder


def run_tool(checkout, directory, *options):
    """The exit code, what was printed, and the processes that were started."""
    command = [sys.executable, str(TOOL), str(checkout), "--directory", str(directory), "--tests", "tests"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    return done.returncode, done.stdout, done.stderr.splitlines()


@pytest.mark.slow
def test_each_test_is_counted_once_and_missing_names_are_counted(checkout, tmp_path):
    code, printed, _ = run_tool(checkout, tmp_path / "runs", "--json", "--test-seconds", "2")
    report = json.loads(printed)
    assert code == 1
    assert report["files"]["tests/test_one.py"] == {
        "tests": 16,
        "passed": 6,
        "skipped": 1,
        "not covered": 6,
        "differs": 1,
        "crashed": 2,
    }
    assert report["files"]["tests/test_two.py"] == {"tests": 1, "differs": 1}
    assert report["total"]["tests"] == 17
    assert report["names"] == NAMES
    assert set(report["differences"]) == {
        *(f"tests/test_one.py::test_{name}" for name in ("differs", "hangs", "dies")),
        "tests/test_two.py",
    }
    assert "No module named 'pytensor.tensor.never'" in report["differences"]["tests/test_two.py"]
    again, table, started = run_tool(checkout, tmp_path / "runs", "--report")
    assert (again, started) == (1, [])
    [total] = [line.split()[1:] for line in table.splitlines() if line.startswith("all ")]
    assert total == ["17", "6", "1", "0", "6", "2", "0", "2"]
    assert "passed: 6 of 16, 37.5%" in table


@pytest.fixture
def missing():
    """Return the module of what stands for missing names."""
    return load_program("pytensor_language/missing.py")


def test_a_missing_name_is_harmless_while_tests_are_collected_and_refused_while_one_runs(missing):
    name = missing.Missing("pytensor.some.name")
    assert [*name, len(name), bool(name), name == 1, 3 in name, isinstance(1, name)] == [0, *[False] * 4]
    assert repr(name(1)[2].part + 3) == "<not covered: pytensor.some.name.part>"
    missing.Phase.running = True
    for use in (name, lambda: name.part, lambda: name[0], lambda: isinstance(1, name), lambda: 1 + name):
        with pytest.raises(missing.NotCovered, match=r"^pytensor\.some\.name$"):
            use()


def test_an_error_is_put_down_to_a_missing_name_that_a_call_was_given(missing):
    def fails(value):
        raise ValueError(1)

    with pytest.raises(ValueError) as known:
        fails(2)
    assert missing.name_not_covered(known.value, __file__) == ""
    with pytest.raises(ValueError) as unknown:
        fails([missing.Missing("pytensor.name")])
    assert missing.name_not_covered(unknown.value, __file__) == "pytensor.name"


def test_only_what_tests_ask_for_themselves_is_missing(missing):
    with pytest.raises(AttributeError) as asked:
        pt.vector("x").nonsense  # noqa: B018
    assert missing.name_not_covered(asked.value, __file__) == "TensorVariable.nonsense"
    assert missing.name_not_covered(asked.value, "/another/folder") == ""
    with pytest.raises(AttributeError) as other:
        Path("x").nonsense  # noqa: B018
    assert missing.name_not_covered(other.value, __file__) == ""


def test_names_are_looked_for_where_they_mean_the_same():
    shim = load_program("pytensor_language/shim.py")
    assert shim.engine_name("pytensor.tensor.math", "gamma") is pt.gamma
    assert shim.engine_name("pytensor.tensor.random.basic", "gamma") is not pt.gamma
    assert shim.engine_name("pytensor", "tensor") is None
    assert shim.engine_name("pytensor.tensor", "fft") is None
    assert shim.engine_name("pytensor.tensor", "shape") is pt.shape
    assert shim.engine_name("pytensor.link.c.basic", "CLinker") is None


def test_files_that_are_no_measure_of_the_language_are_left_out_with_a_reason():
    files = load_program("pytensor_language/explanations/left_out.py")
    assert "C code" in files.left_out("tests/compile/debug/test_profiling.py")
    assert files.left_out("tests/tensor/test_math.py") == ""


def test_the_page_lists_every_reason():
    printed = subprocess.run(
        [sys.executable, TOOL / "page.py"], capture_output=True, text=True, check=True
    ).stdout
    assert printed == (TOOLS.parent / "docs" / "language.md").read_text()


def test_a_reason_for_another_form_hides_neither_other_numbers_nor_a_missing_name(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOL))
    monkeypatch.syspath_prepend(str(TOOLS))
    form = load_program("pytensor_language/explanations/difference.py").OtherForm("language", "t*", "", "why")
    assert form.explains("language", "test", "assert 1 == 2")
    assert not form.explains("language", "other", "assert 1 == 2")
    assert not form.explains("language", "test", "AssertionError: Not equal to tolerance rtol=1e-7")
    assert not form.explains("language", "test", "pytensor.tensor.nonsense")
