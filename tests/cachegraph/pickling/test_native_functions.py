"""Native functions of every binding generator: pickled in one process, the identical object in another, and called."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cachegraph import pickling
from tests.extensions.building import SUFFIX, Extensions, build_c_api
from tests.extensions.cases import CASES, EXPRESSIONS, Case

ROOT = Path(__file__).parents[3]
PROGRAM = ROOT / "tests" / "extensions" / "process.py"

pytestmark = pytest.mark.slow


def process(*arguments: object) -> Any:
    """What tests/extensions/process.py prints in a process of its own."""
    done = subprocess.run(
        [sys.executable, PROGRAM, *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def pickled(extensions: Extensions) -> dict[str, Any]:
    extensions.require_any()
    return process("pickle", extensions.directory, *extensions.built)


@pytest.fixture(scope="module")
def loaded(
    extensions: Extensions, pickled: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """What a process makes of them that has imported none of the modules."""
    file = tmp_path_factory.mktemp("pickled") / "functions.json"
    file.write_text(json.dumps(pickled))
    return process("load", extensions.directory, file)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_process_that_had_not_imported_the_module_gets_the_identical_function(
    case: Case, extensions: Extensions, loaded: dict[str, Any]
) -> None:
    extensions.require(case.module)
    assert loaded[str(case)] == {"identical": True, "result": 3.0}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_reader_that_does_not_declare_the_function_refuses_it(
    case: Case, extensions: Extensions, pickled: dict[str, Any]
) -> None:
    extensions.require(case.module)
    path, content = pickled[str(case)]
    with pytest.raises(pickling.UntrustedPickle) as caught:
        pickling.loads(bytes.fromhex(content), ("engine",), declared=[("posix", "system")])
    assert [caught.value.module, caught.value.name] == path
    assert case.module not in sys.modules


def test_functions_are_found_where_they_are_whatever_they_say_of_themselves(
    extensions: Extensions, pickled: dict[str, Any]
) -> None:
    extensions.require("reexported")
    assert pickled["reexported: renamed"][0] == ["reexported._ext", "scaled"]
    assert pickled["reexported: moved"][0] == ["reexported", "moved"]


REFUSED = {
    "with_pybind11_2": ("make_lambda()", "Scale(1.0).apply"),
    "with_pybind11_3": ("make_lambda()", "Scale(1.0).apply"),
    "with_nanobind": ("make_lambda()", "Scale(1.0).apply"),
    "with_swig": ("Scale().apply",),
    "with_cython": ("make_local()", "Scale().apply"),
    "with_c_api": ("Scale().apply",),
}
SHOW_REFUSED = """
import functools, importlib, json, sys, types
sys.path.insert(0, sys.argv[1])
from cachegraph import pickling
from cachegraph.errors import CachegraphError

def refusal(function):
    try:
        pickling.dumps({"f": functools.partial(max, function)})
    except pickling.Unpicklable as error:
        return [error.path, error.found, str(error)]

rows = {}
for name, expressions in json.loads(sys.argv[2]).items():
    module = importlib.import_module(name)
    for expression in expressions:
        rows[f"{name}: {expression}"] = refusal(eval(expression, vars(module)))
if "with_pybind11_3" in sys.modules:  # a function that only a module made by hand has
    made = types.ModuleType("made_by_hand")
    made.function = sys.modules["with_pybind11_3"].make_lambda()
    sys.modules["made_by_hand"] = made
    rows["in a module made by hand"] = refusal(made.function)
print(json.dumps(rows))
"""


def test_functions_that_no_import_gives_are_refused_with_the_way_to_them(extensions: Extensions) -> None:
    extensions.require_any()
    wanted = {name: expressions for name, expressions in REFUSED.items() if name in extensions.built}
    done = subprocess.run(
        [sys.executable, "-c", SHOW_REFUSED, str(extensions.directory), json.dumps(wanted)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert len(rows) >= sum(map(len, wanted.values()))
    for name, row in rows.items():
        assert row is not None, name
        path, found, message = row
        assert path == ["['f']", "args[0]"], name
        assert "which no name imports" in found, name
        assert message.startswith("cannot pickle value -> ['f'] -> args[0]: found "), message
        assert "make it an attribute of a module" in message or "top level of a module" in message, message


# Fingerprints


REBUILT = [
    name for name in EXPRESSIONS if name != "with_pybind11_2"
]  # it takes as long as version 3, and says the same


@pytest.fixture(scope="module")
def fingerprints(extensions: Extensions) -> dict[str, str]:
    extensions.require_any()
    return process("fingerprint", extensions.directory, *extensions.built)


def test_every_function_has_a_fingerprint_of_its_own(fingerprints: dict[str, str]) -> None:
    assert len(set(fingerprints.values())) == len(fingerprints) >= 1


def test_where_an_extension_lies_is_not_identity(
    extensions: Extensions, fingerprints: dict[str, str], tmp_path: Path
) -> None:
    copy = shutil.copytree(extensions.directory, tmp_path / "elsewhere")
    assert process("fingerprint", copy, *extensions.built) == fingerprints


def test_a_rebuilt_extension_gives_other_fingerprints(
    extensions: Extensions, fingerprints: dict[str, str]
) -> None:
    names = [name for name in REBUILT if name in extensions.built]
    directories = os.pathsep.join(str(extensions.rebuilt(name)) for name in names)
    changed = process("fingerprint", directories, *names)
    assert len(changed) >= len(names)
    assert not set(changed.values()) & set(fingerprints.values())


def test_a_build_of_the_same_bytes_gives_the_same_fingerprints(
    extensions: Extensions, tmp_path: Path
) -> None:
    extensions.require("with_c_api")
    build_c_api(tmp_path, 2.0)
    name = f"with_c_api{SUFFIX}"
    assert (tmp_path / name).read_bytes() == (extensions.directory / name).read_bytes()
    both = [process("fingerprint", place, "with_c_api") for place in (extensions.directory, tmp_path)]
    assert both[0] == both[1]
