"""What others have registered with numba is described: by their releases, or by their code."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from numba.extending import overload

from cachegraph.fingerprint import registrations
from cachegraph.fingerprint.extensions import encode_extensions

ROOT = Path(__file__).parents[3]
PROGRAM = """
import json
import numba
from numba.extending import intrinsic, overload, overload_method
from cachegraph.fingerprint import encode
from cachegraph.fingerprint.extensions import encode_extensions

def helper(x):
    pass

def caller(x):
    return helper(x)

def other(x):
    return x

rows = []
def describe():
    found = encode_extensions(), encode(caller), encode(numba.njit(caller)), encode(other), encode(numba.njit(other))
    rows.append([content.hex() for content in found])

describe()

@overload(helper)
def _helper(x):
    return lambda x: x + {number}

describe()

@intrinsic
def same(context, x):
    return x(x), lambda context, builder, signature, arguments: arguments[0]

describe()

@overload_method(numba.types.Array, "halved")
def _halved(x):
    return lambda x: x / {number}

describe()

@overload(len)
def _len(x):
    if isinstance(x, numba.types.Float):
        return lambda x: {number}

describe()
print(json.dumps(rows))
"""


def encodings(number: int) -> list[list[str]]:
    program = PROGRAM.format(number=number)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    found: list[list[str]] = json.loads(done.stdout)
    return found


def test_what_is_registered_is_told_where_code_can_reach_it() -> None:
    first, other, again = (encodings(number) for number in (1, 2, 1))
    assert first == again
    begin, with_helper, with_intrinsic, with_method, with_len = first
    changed = [a != b for a, b in zip(begin, with_helper, strict=True)]
    assert changed == [False, True, True, False, False]
    assert with_intrinsic == with_helper
    assert len({row[0] for row in (with_helper, with_method, with_len)}) == 3
    assert [a != b for a, b in zip(first[1], other[1], strict=True)] == changed
    assert first[3][0] != other[3][0]
    assert {tuple(row[3:]) for row in (*first, *other)} == {tuple(begin[3:])}


def test_what_numba_has_is_looked_at_once_and_what_is_registered_later_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[object] = []
    module_of = registrations._module_of
    registrations.registered_for(encodings)
    monkeypatch.setattr(registrations, "_module_of", lambda made: looked.append(made) or module_of(made))
    for number in range(3):

        def called(x: float) -> float:
            return x

        overload(called)(lambda x: lambda x: x + number)  # noqa: B023
        assert len(registrations.registered_for(called)) == 1
    assert 3 <= len(looked) < 30
    step_by_step = registrations._registered()
    monkeypatch.setattr(registrations, "_scanned", registrations._Scanned())
    assert registrations._registered() == step_by_step


def test_an_installed_extension_is_known_before_numba_loads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = encode_extensions()
    for version in ("1.0", "1.1"):
        about = tmp_path / version / "numba_more-1.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: numba-more\nVersion: {version}\n")
        (about / "entry_points.txt").write_text("[numba_extensions]\ninit = numba_more:init\n")
    found = {without}
    for version in ("1.0", "1.1"):
        with monkeypatch.context() as patch:
            patch.syspath_prepend(tmp_path / version)
            registrations._installed.cache_clear()
            found.add(encode_extensions())
    registrations._installed.cache_clear()
    assert len(found) == 3
    assert encode_extensions() == without


BOUNDS = """
import os, sys
from cachegraph.fingerprint.extensions import encode_extensions
first = encode_extensions()
assert "numba" not in sys.modules
import numba
assert encode_extensions() == first
print(first.hex())
numba.config.BOUNDSCHECK = 1
print(encode_extensions().hex())
"""


def printed_by(program: str, setting: dict[str, str], directory: Path) -> list[str]:
    """Return the words that a fresh process prints with `setting` in its environment."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(ROOT)} | setting,
        cwd=directory,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def test_whether_numba_checks_bounds_is_known_before_it_is_loaded(tmp_path: Path) -> None:
    printed = [
        printed_by(BOUNDS, setting, tmp_path)
        for setting in ({}, {"NUMBA_BOUNDSCHECK": "1"}, {"NUMBA_BOUNDSCHECK": "0"})
    ]
    assert [row == printed[0] for row in printed] == [True, False, True]
    assert {second for _, second in printed} == {printed[1][0]}


DECORATED = """
import numba
from cachegraph.fingerprint import encode
def f(x): return x
print(*[encode(numba.njit(f, boundscheck=checks)).hex() for checks in (None, True)])
"""


def test_that_bounds_are_checked_nowhere_is_told_of_what_asks_for_it_alone(tmp_path: Path) -> None:
    (unset, unset_asked), (nowhere, nowhere_asked) = [
        printed_by(DECORATED, setting, tmp_path) for setting in ({}, {"NUMBA_BOUNDSCHECK": "0"})
    ]
    assert unset == nowhere == nowhere_asked != unset_asked
