"""Functions are pickled by their import paths; what may be resolved, called and changed is for the reader to say."""

from __future__ import annotations

import collections
import functools
import math
import operator
import os
import pickle
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.special

from cachegraph import pickling
from cachegraph.errors import Unfingerprintable
from cachegraph.fingerprint import fingerprint
from cachegraph.pickling import InvalidPickle, Unpicklable, UnresolvedFunction, UntrustedPickle

ROOT = Path(__file__).parents[3]
FUNCTIONS = {
    "a built-in function": len,
    "of the system": os.system,
    "of an extension": math.sin,
    "a ufunc": np.sin,
    "a ufunc of SciPy": scipy.special.expit,
    "a method of a ufunc": np.add.reduce,
    "a function that dispatches": np.dot,
    "one in Python that dispatches": np.linalg.norm,
    "a method of a module's own object": np.random.normal,
    "a method of a type": str.upper,
    "a class method": dict.fromkeys,
    "a function in Python": functools.reduce,
    "a method in Python": collections.Counter.most_common,
}


def both(function: Any) -> tuple[frozenset[tuple[str, str]], bytes]:
    return pickling.import_paths(function), pickling.dumps([function])


@pytest.mark.parametrize("what", FUNCTIONS)
def test_a_declared_function_comes_back(what: str) -> None:
    function = FUNCTIONS[what]
    paths, content = both(function)
    found = pickling.loads(content, (), declared=paths)[0]
    assert found is function or (found == function and found.__self__ is function.__self__)


@pytest.mark.parametrize("what", FUNCTIONS)
@pytest.mark.parametrize("declared", [(), [("math", "cos")], [("posix", "popen"), ("os", "system")]])
def test_any_other_function_is_refused_whoever_is_trusted(what: str, declared: Any) -> None:
    (path,), content = both(FUNCTIONS[what])
    trusted = ("numpy", "engine", "scipy", "posix", "builtins", "math", "functools", "collections")
    with pytest.raises(UntrustedPickle) as caught:
        pickling.loads(content, trusted, declared=declared)
    assert (caught.value.module, caught.value.name) == path


def test_a_function_is_imported_where_it_is_loaded() -> None:
    content = pickling.dumps(scipy.special.expit).hex()
    (path,) = pickling.import_paths(scipy.special.expit)
    program = (
        "import sys; from cachegraph import pickling; assert 'scipy.special' not in sys.modules\n"
        f"found = pickling.loads(bytes.fromhex({content!r}), (), declared=[{path!r}])\n"
        "import scipy.special; assert found is scipy.special.expit"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)


def test_a_partial_of_a_native_function_comes_back() -> None:
    value = {"f": functools.partial(math.pow, 2.0), "g": [functools.partial(sorted, key=abs)]}
    found = pickling.loads(pickling.dumps(value), (), declared=pickling.import_paths(value))
    assert found["f"](3.0) == 8.0
    assert found["g"][0]([-3, 1]) == [1, -3]


def test_a_function_that_is_also_called_by_the_pickle_is_still_named_by_it() -> None:
    value = [np.arange(3.0)[::2].T, np.float64(2.0)]
    assert pickling.import_paths(value) == frozenset()
    assert pickling.loads(pickling.dumps(value), ())[1] == 2.0


def test_a_function_that_is_not_installed_says_so() -> None:
    content = pickling.dumps(math.sin).replace(b"math", b"mass").replace(b"sin", b"tin")
    with pytest.raises(
        UnresolvedFunction, match=r"mass\.tin: importing its module raised ModuleNotFoundError"
    ):
        pickling.loads(content, (), declared=[("mass", "tin")])
    content = pickling.dumps(math.sin).replace(b"sin", b"tin")
    with pytest.raises(UnresolvedFunction, match=r"math\.tin: its module has no such place"):
        pickling.loads(content, (), declared=[("math", "tin")])


# Refused when it is pickled


class Held:
    def __init__(self, function: Any) -> None:
        self.function = function

    def method(self) -> None:
        """A method of an object that this process has made."""


def _in_a_module_made_by_hand() -> Any:
    module = types.ModuleType("made_by_hand")
    function = types.FunctionType((lambda: 1).__code__, vars(module), "function")
    function.__module__, function.__qualname__ = "made_by_hand", "function"
    module.function = function  # type: ignore[attr-defined]
    sys.modules["made_by_hand"] = module
    return function


@pytest.mark.parametrize(
    ("function", "found"),
    [
        (lambda x: x, "function"),
        ("text".join, "builtin_function_or_method str.join"),
        ({}.get, "builtin_function_or_method dict.get"),
        (np.random.default_rng(1).normal, "Generator.normal"),
        (np.frompyfunc(math.sin, 1, 1), "ufunc"),
        (Held(1).method, "method Held.method"),
        (_in_a_module_made_by_hand(), "function function of made_by_hand"),
    ],
    ids=["lambda", "str", "dict", "generator", "made ufunc", "method", "module made by hand"],
)
def test_what_no_import_gives_is_refused_with_the_way_to_it(function: Any, found: str) -> None:
    value = {"f": functools.partial(max, Held([0, function]))}
    with pytest.raises(Unpicklable) as caught:
        pickling.dumps(value)
    assert caught.value.path == ("['f']", "args[0]", ".function", "[1]")
    assert found in caught.value.found
    assert "module" in caught.value.advice


def test_what_pickle_refuses_is_refused_with_the_way_to_it(tmp_path: Path) -> None:
    with open(tmp_path / "log", "w") as log, pytest.raises(Unpicklable) as caught:
        pickling.dumps([1, {"log": log}])
    assert caught.value.path == ("[1]", "['log']")
    assert str(caught.value).startswith("cannot pickle value -> [1] -> ['log']: found _io.TextIOWrapper")
    with pytest.raises(Unpicklable, match=r"\[0\]: found builtins.module .* refer to what is needed"):
        pickling.dumps([math])


def test_a_class_that_no_name_imports_is_refused() -> None:
    class Local:
        pass

    with pytest.raises(Unpicklable, match=r"value -> \[0\] -> .*Local, which that name does not import"):
        pickling.dumps([Local()])


class Unbound:
    """A proxy for what is not there now: it raises whatever it is asked for, as those of web frameworks do."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("working outside of a context")


def test_proxies_in_modules_are_not_asked_for_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("a_module_of_proxies")
    module.proxy = Unbound()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "a_module_of_proxies", module)
    with pytest.raises(Unpicklable, match="which no name imports"):
        pickling.dumps(np.frompyfunc(math.sin, 1, 1))
    with pytest.raises(Unfingerprintable):
        fingerprint(np.random.default_rng(1).normal)


SCRIPT = """
from cachegraph import pickling

def function():
    return 1

for by_value in (False, True):
    try:
        content = pickling.dumps([function], by_value=by_value)
    except pickling.Unpicklable as error:
        print(error.path, error.found)
    else:
        print(pickling.loads(content, pickling.EVERYTHING)[0]())
"""


@pytest.mark.parametrize("how", ["a file", "a directory", "a module"])
def test_functions_of_a_script_are_in_no_other_process(how: str, tmp_path: Path) -> None:
    (tmp_path / "__main__.py").write_text(SCRIPT)
    (tmp_path / "script.py").write_text(SCRIPT)
    what = {"a file": ["script.py"], "a directory": [str(tmp_path)], "a module": ["-m", "script"]}[how]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, *what], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    refused, result = done.stdout.splitlines()
    assert refused == "('[0]',) function function of __main__, which no name imports"
    assert result == "1"


# By value


def test_code_is_pickled_by_value_if_asked_and_loads_only_where_everything_is_trusted() -> None:
    scale = 2.5
    content = pickling.dumps(lambda x: [scale * x, math.sqrt(x), np.sin(0.0 * x)], by_value=True)
    for trusted in (("engine",), ("cloudpickle",), ("numpy", "math", "cloudpickle", "builtins")):
        with pytest.raises(UntrustedPickle):
            pickling.loads(content, trusted)
    assert pickling.loads(content, pickling.EVERYTHING)(4.0) == [10.0, 2.0, 0.0]


def test_by_value_functions_that_import_are_still_named() -> None:
    value = functools.partial(lambda f, x: f(x), math.cos)
    content = pickling.dumps(value, by_value=True)
    assert b"math" in content
    assert pickling.loads(content, pickling.EVERYTHING)(0.0) == 1.0


def test_by_value_a_native_function_without_a_name_is_refused_with_the_way_to_it() -> None:
    made = np.frompyfunc(math.sin, 1, 1)
    with pytest.raises(Unpicklable, match=r"value -> cell 'made': found ufunc"):
        pickling.dumps(lambda x: made(x), by_value=True)


# What a pickle may do with what it is given


SIN = b"\x8c\x06import\x8c\x04math\x8c\x03sin\x87Q"
GIVEN = b"K\x00Q"
LIST = b"\x8c\x08builtins\x8c\x04list\x93"
SET = b"\x8c\x08builtins\x8c\x03set\x93"


@pytest.mark.parametrize(
    "content",
    [
        SIN + b"G\x3f\xf0\x00\x00\x00\x00\x00\x00\x85R",
        SIN + b"\x94h\x00G\x3f\xf0\x00\x00\x00\x00\x00\x00\x85R",
        SIN + b")\x81",
        SIN + b")}\x92",
        b"(" + SIN + b"o",
        SIN + b"}\x8c\x01aK\x01sb",
        GIVEN + b")R",
        GIVEN + b"K\x01a",
        GIVEN + b"(K\x01K\x02e",
        GIVEN + b"K\x00K\x01s",
        GIVEN + b"(K\x00K\x01u",
        GIVEN + b"}\x8c\x01aK\x01sb",
        b"\x8c\x09functools\x8c\x07partial\x93" + SIN + b"\x85R)R",
        SET + b"}\x8c\x01aK\x01sb",
        SET + b"(K\x01\x90",
    ],
    ids=range(15),
)
def test_what_a_pickle_was_given_is_neither_called_nor_changed(content: bytes) -> None:
    given = [7, 8, 9]
    with pytest.raises(
        (UntrustedPickle, InvalidPickle), match=r"a (call|change) of|an instance of|opcode|set, where"
    ):
        pickling.loads(b"\x80\x05" + content + b".", ("engine",), [given], declared=[("math", "sin")])
    assert given == [7, 8, 9]


def test_a_length_that_is_not_there_is_refused_before_memory_is_taken() -> None:
    with pytest.raises(InvalidPickle):
        pickling.loads(b"\x80\x05\x96" + (2**60).to_bytes(8, "little") + b".", ())


@pytest.mark.parametrize("pid", [("import", "math"), ("import", "math", 3), ("other", "a", "b"), None, 1.5])
def test_a_persistent_id_of_another_form_is_refused(pid: Any) -> None:
    content = pickle.dumps(pid, protocol=4)[2:-1]
    start = content.index(b"\x00\x00\x00\x00\x00\x00") + 6 if content[:1] == b"\x95" else 0
    with pytest.raises(InvalidPickle):
        pickling.loads(b"\x80\x05" + content[start:] + b"Q.", (), ["given"], declared=[("math", "sin")])


def test_what_damaged_bytes_raise_is_one_error() -> None:
    whole = pickling.dumps([np.arange(3), {"a": (1, 2.5, b"x")}, slice(1, 2), operator.add])
    for position in range(0, len(whole), 3):
        content = whole[:position] + bytes((whole[position] ^ 0x55,)) + whole[position + 1 :]
        try:
            pickling.loads(content, (), declared=[("_operator", "add")])
        except (InvalidPickle, UntrustedPickle):
            continue


def test_what_is_at_hand_is_named_and_neither_called_nor_changed() -> None:
    held = {"a": 1}
    content = pickling.dumps([held, held, "x"], name_of=lambda item: "held" if item is held else None)
    first, second, _ = pickling.loads(content, (), at_hand={"held": held})
    assert first is second is held
    with pytest.raises(InvalidPickle, match="external object 'held'"):
        pickling.loads(content, (), at_hand={"other": held})
    with pytest.raises(UntrustedPickle, match="a change of"):
        pickling.loads(b"\x80\x05\x8c\x04heldQ(K\x01K\x02u.", (), at_hand={"held": held})
