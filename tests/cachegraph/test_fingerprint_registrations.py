"""What others have registered with numba is described: by their releases, or by their code."""

import subprocess
import sys
from pathlib import Path

import pytest

from cachegraph.fingerprint import registrations
from cachegraph.fingerprint.extensions import encode_extensions

ROOT = Path(__file__).parents[2]
PROGRAM = """
import numba
from numba.extending import intrinsic, overload, overload_method, register_jitable
from cachegraph.fingerprint.extensions import encode_extensions
print(encode_extensions().hex())

def helper(x):
    pass

@overload(helper)
def _helper(x):
    return lambda x: x + {number}

print(encode_extensions().hex())

@overload_method(numba.types.Array, "halved")
def _halved(x):
    return lambda x: x / 2

print(encode_extensions().hex())

@intrinsic
def same(context, x):
    return x(x), lambda context, builder, signature, arguments: arguments[0]

print(encode_extensions().hex())
"""


def encodings(number: int) -> list[str]:
    program = PROGRAM.format(number=number)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_every_registration_is_told_by_its_code() -> None:
    first, other, again = (encodings(number) for number in (1, 2, 1))
    assert first == again
    assert len(set(first)) == 4
    assert first[0] == other[0]
    assert not set(first[1:]) & set(other[1:])


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


def test_whether_numba_checks_bounds_is_known_before_it_is_loaded(tmp_path: Path) -> None:
    printed = [
        subprocess.run(
            [sys.executable, "-c", BOUNDS],
            env={"PYTHONPATH": str(ROOT)} | setting,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for setting in ({}, {"NUMBA_BOUNDSCHECK": "1"}, {"NUMBA_BOUNDSCHECK": "0"})
    ]
    assert len({first for first, _ in printed}) == 3
    assert {second for _, second in printed} == {printed[1][0]}
