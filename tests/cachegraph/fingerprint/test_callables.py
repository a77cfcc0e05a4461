"""A callable is what it does: the same in every process and file, and another when anything that it reads is another."""

import functools
import importlib.util
import logging
import math
import operator
import re
import subprocess
import sys
import textwrap
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cachegraph.errors import Unfingerprintable
from cachegraph.fingerprint import encode, fingerprint
from cachegraph.fingerprint.native import _is_space_of

SOURCE = """
import enum
import functools
import operator
import re
from dataclasses import dataclass

import numpy as np

SCALE = 3.0
TABLE = {"a": 1, "b": (2, 3)}
UNIT = np.array([1.0, 2.0])


def helper(x):
    return x * SCALE


def plain(x, y=2, *rest, key=None, **more):
    if x is NotImplemented:
        raise ValueError(f"no {key}")
    try:
        return np.sin(x) + helper(y) + len(rest)
    except (TypeError, ZeroDivisionError) as error:
        return str(error)
    finally:
        more.clear()


def even(n):
    return n == 0 or odd(n - 1)


def odd(n):
    return n != 0 and even(n - 1)


def nested(x):
    def inner(y):
        return [y * z + SCALE for z in TABLE["b"]]

    return inner(x)


def make(scale):
    def scaled(x):
        return x * scale

    return scaled


def local_import(x):
    from math import sqrt

    return sqrt(x)


def generator(n):
    for i in range(n):
        yield i


class Kind(enum.Enum):
    ONE = 1
    TWO = 2

    def doubled(self):
        return self.value * 2


@dataclass
class Point:
    x: float
    kind: Kind = Kind.ONE

    def moved(self, by):
        return Point(self.x + by * SCALE, self.kind)


class Base:
    def __init__(self, n):
        super().__init__()
        self.n = n


class Derived(Base):
    factor = 2

    def run(self, x):
        return Point(x).moved(self.n * self.factor), Kind.TWO.doubled()

    @property
    def size(self):
        return self.n

    @staticmethod
    def still(x):
        return helper(x)

    @classmethod
    def of(cls, n):
        return cls(n)


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args)

    return wrapper


@decorated
@functools.lru_cache
def wrapped(x):
    return x + SCALE


ALL = {
    "plain": plain,
    "even": even,
    "nested": nested,
    "closure": make(2.5),
    "lambda": lambda x: x + SCALE,
    "local_import": local_import,
    "generator": generator,
    "Kind": Kind,
    "Point": Point,
    "Derived": Derived,
    "method": Derived(3).run,
    "static": Derived.still,
    "class method": Derived.of,
    "partial": functools.partial(plain, 1, key=UNIT),
    "wrapped": wrapped,
    "vectorized": np.vectorize(helper),
    "ufunc": np.add,
    "reduce": np.add.reduce,
    "getter": operator.itemgetter(1, 2),
    "builtin": len,
}
"""

PRINT = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location(sys.argv[2], sys.argv[1])
module = importlib.util.module_from_spec(spec)
sys.modules[sys.argv[2]] = module
spec.loader.exec_module(module)
from cachegraph.fingerprint import fingerprint
for name, value in module.ALL.items():
    print(name, fingerprint((value, "wherever it is")).hex(), sep=": ")
"""


def _load(directory: Path, source: str, name: str = "subject") -> types.ModuleType:
    path = directory / f"{name}.py"
    path.write_text(textwrap.dedent(source))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    finally:
        sys.modules.pop(name)
    return module


def _fingerprints(directory: Path, source: str) -> dict[str, bytes]:
    return {name: fingerprint(value) for name, value in _load(directory, source).ALL.items()}


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return _fingerprints(tmp_path_factory.mktemp("known"), SOURCE)


# The same -------------------------------------------------------------------------------------------------------------


def test_processes_hash_seeds_and_renamed_files_agree(tmp_path: Path) -> None:
    printed = set()
    for seed, directory, name in (("1", "one", "first"), ("2", "two", "second_name")):
        path = tmp_path / directory / f"{name}.py"
        path.parent.mkdir()
        path.write_text(SOURCE)
        environment = {"PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parents[3])}
        arguments = [sys.executable, "-c", PRINT, str(path), name]
        printed.add(
            subprocess.run(arguments, env=environment, capture_output=True, text=True, check=True).stdout
        )
    assert len(printed) == 1
    assert printed.pop().count("\n") == 20


def test_comments_formatting_docstrings_and_the_order_of_definitions_are_not_identity(
    tmp_path: Path, known: dict[str, bytes]
) -> None:
    moved = 'def helper(x):\n    """A docstring."""\n\n    # a comment\n    return (\n        x\n        * SCALE\n    )\n'
    body = "def helper(x):\n    return x * SCALE\n"
    source = SOURCE.replace(body, "").replace("\nclass Kind", f"\n{moved}\n\nclass Kind")
    assert source.count("def helper") == 1
    assert _fingerprints(tmp_path, source) == known


def test_what_a_cache_of_results_holds_is_not_identity(tmp_path: Path) -> None:
    module = _load(tmp_path, SOURCE)
    before = fingerprint(module.wrapped)
    module.wrapped(1)
    assert fingerprint(module.wrapped) == before


def test_callables_in_a_set_do_not_depend_on_order_but_those_in_a_dict_do(tmp_path: Path) -> None:
    module = _load(tmp_path, SOURCE)
    one = functools.partial(len, {module.plain, module.even}, {"p": module.plain, "q": module.even})
    other = functools.partial(len, {module.even, module.plain}, {"p": module.plain, "q": module.even})
    third = functools.partial(len, {module.even, module.plain}, {"q": module.even, "p": module.plain})
    assert encode(one) == encode(other) != encode(third)


# Another --------------------------------------------------------------------------------------------------------------

CHANGES = {
    "a constant": ("z + SCALE", "z + SCALE + 0.0", {"nested"}),
    "a default": ("y=2", "y=3", {"plain", "partial"}),
    "an operator": ("n == 0 or", "n == 0 and", {"even"}),
    "a global number": ("SCALE = 3.0", "SCALE = 4.0", None),
    "a called helper": (
        "return x * SCALE",
        "return x / SCALE",
        {"plain", "partial", "static", "vectorized", "Derived"},
    ),
    "the second of a cycle": ("n != 0 and", "n > 0 and", {"even"}),
    "a captured value": ("make(2.5)", "make(2.25)", {"closure"}),
    "a global table": ("(2, 3)", "(2, 4)", {"nested"}),
    "an imported name": ("import sqrt", "import cbrt as sqrt", {"local_import"}),
    "a member of an enum": ("TWO = 2", "TWO = 5", {"Kind", "Derived", "method"}),
    "a method of a class that is used": ("by * SCALE", "by + SCALE", {"Point", "Derived", "method"}),
    "an attribute of a class": ("factor = 2", "factor = 3", {"Derived", "method", "class method"}),
    "a base": ("self.n = n", "self.n = -n", {"Derived", "method"}),
    "what a method is bound to": ("Derived(3)", "Derived(4)", {"method"}),
    "an argument of a partial": ("plain, 1,", "plain, 2,", {"partial"}),
    "an array": ("[1.0, 2.0]", "[1.0, -2.0]", {"partial"}),
    "a numpy function": ("np.sin", "np.cos", {"plain", "partial"}),
    "a caught exception": ("(TypeError, Zero", "(ValueError, Zero", {"plain"}),
    "the order of a try block": ("more.clear()", "rest = more.clear()", {"plain"}),
    "what a getter takes": ("itemgetter(1, 2)", "itemgetter(2, 1)", {"getter"}),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_of(what: str, tmp_path: Path, known: dict[str, bytes]) -> None:
    old, new, expected = CHANGES[what]
    assert old in SOURCE
    found = _fingerprints(tmp_path, SOURCE.replace(old, new))
    changed = {name for name in known if found[name] != known[name]}
    assert changed >= (expected or {"plain", "nested", "lambda", "wrapped", "Point"})
    assert changed < set(known)


def test_all_are_different(known: dict[str, bytes]) -> None:
    assert len(set(known.values())) == len(known)


def _mutants() -> list[str]:
    """Bodies that differ from each other in one place."""
    constants = (0, 1, 2, 0.0, -0.0, 1.0, True, "1", b"1", None, (1,), 1j)
    bodies = [f"x {op} {constant!r}" for op in "+-*/%" for constant in constants]
    names = [f"np.{name}(x)" for name in ("sin", "cos", "exp", "log", "sqrt", "abs", "tanh", "floor")]
    calls = [f"{name}(x)" for name in ("len", "abs", "sum", "max", "min", "sorted", "tuple", "list", "set")]
    shapes = [f"x[{index}]" for index in ("0", "1", "-1", "0:1", "::2", "..., 0", "None", "1:", ":1")]
    tests = [f"x {test} 1" for test in ("<", "<=", ">", ">=", "==", "!=", "is", "is not", "in", "not in")]
    loops = [f"[y {op} {n} for y in x]" for op in "+-*" for n in range(10)]
    lambdas = [f"(lambda y={n}: y {op} x)()" for op in "+-*" for n in range(10)]
    return bodies + names + calls + shapes + tests + loops + lambdas


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_every_mutated_body_has_another_fingerprint() -> None:
    bodies = _mutants()
    assert len(bodies) > 150
    scope: dict[str, Any] = {"np": np, "__name__": "mutants"}
    functions = [eval(f"lambda x: {body}", scope) for body in bodies]
    assert len({fingerprint(function) for function in functions}) == len(bodies)


# Refused --------------------------------------------------------------------------------------------------------------


def test_code_that_may_reach_anything_is_refused() -> None:
    for body in ("eval('1')", "globals()['x']", "__import__('os')"):
        with pytest.raises(Unfingerprintable, match="what it reaches cannot be told"):
            fingerprint(eval(f"lambda: {body}", {"__name__": "anywhere"}))


def test_a_followed_module_used_as_a_whole_is_refused(tmp_path: Path) -> None:
    module = _load(tmp_path, SOURCE)
    with pytest.raises(Unfingerprintable, match="used as a whole") as caught:
        fingerprint(lambda: getattr(module, "plain"))  # noqa: B009
    assert caught.value.path[-1] == "cell 'module'"


def test_what_holds_a_file_is_refused_with_the_way_to_it(tmp_path: Path) -> None:
    with open(tmp_path / "log", "w") as log, pytest.raises(Unfingerprintable) as caught:
        fingerprint(functools.partial(lambda x: log.write(x)))
    assert "cell 'log'" in caught.value.path
    assert "TextIOWrapper" in str(caught.value)


def test_what_code_logs_is_not_identity() -> None:
    def logging_to(log: logging.Logger, factor: int) -> Any:
        return lambda x: log.debug("shown %s", x) or x * factor

    one, other = logging.getLogger("one"), logging.getLogger("other")
    assert fingerprint(logging_to(one, 2)) == fingerprint(logging_to(other, 2))
    assert fingerprint(logging_to(one, 2)) == fingerprint(logging_to(logging.getLogger(), 2))
    assert fingerprint(logging_to(one, 2)) != fingerprint(logging_to(one, 3))


def test_a_native_function_that_no_name_imports_is_refused() -> None:
    with pytest.raises(Unfingerprintable, match="no name imports it"):
        fingerprint(np.random.default_rng(1).normal)


def test_a_ufunc_made_of_a_python_function_is_refused_wherever_it_is_put(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(np, "sin", np.frompyfunc(lambda x: x, 1, 1))
    with pytest.raises(Unfingerprintable, match=r"numpy\.frompyfunc hides what it calls"):
        fingerprint(np.sin)


def test_the_keywords_of_a_call_are_a_part_of_it() -> None:
    functions = [lambda x: sorted(x, key=None), lambda x: sorted(x, reverse=None), lambda x: sorted(x)]
    assert len({fingerprint(function) for function in functions}) == len(functions)


# Not followed ---------------------------------------------------------------------------------------------------------


def test_what_an_installed_release_holds_is_its_name_and_version() -> None:
    solve = encode(np.linalg.solve)
    assert np.__version__.encode() in solve
    assert len(solve) < 100


def test_described_packages_are_named(tmp_path: Path) -> None:
    import cachegraph.key

    by_name = encode(cachegraph.key.CacheKey.build.__func__, described=("cachegraph",))
    assert len(by_name) < 100
    assert len(encode(cachegraph.key.CacheKey.build.__func__)) > 200


def test_native_functions_are_known_by_the_name_that_imports_them() -> None:
    functions = (math.sin, len, np.sin, np.dot, "a".join, operator.add, str.upper, np.ndarray.sum)
    assert len({fingerprint(function) for function in functions}) == len(functions)


def test_an_object_with_native_state_is_not_taken_for_its_attributes() -> None:
    match = re.match("a", "a")
    with pytest.raises(Unfingerprintable, match="Match"):
        fingerprint(lambda: match)


def test_pickling_an_instance_leaves_its_class_what_it_was() -> None:
    class Pickled:
        def __init__(self, value: int) -> None:
            self.value = value

    before = fingerprint(Pickled)
    assert Pickled(1).__reduce_ex__(2)[1] == (Pickled,)  # Python notes in the class which slots it has
    assert fingerprint(Pickled) == before


def test_a_class_without_a_module_does_not_stop_the_search_for_a_name() -> None:
    class OfExtension(type):
        @property
        def __module__(cls) -> str:
            raise AttributeError("__module__")

    nowhere = OfExtension("nowhere", (), {})
    assert not hasattr(nowhere, "__module__")
    assert not _is_space_of(nowhere, math)
