"""Generated callables of every kind: one fingerprint in every process, and another for every mutant."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from cachegraph.fingerprint import fingerprint
from tests.cachegraph.fingerprint.callable_process import FOOTER
from tests.cachegraph.fingerprint.generated_callables import HELPERS, PRELUDE, Piece, module_source, pieces
from tests.cachegraph.fingerprint.mutations import mutants

ROOT = Path(__file__).parents[3]
PROGRAM = Path(__file__).with_name("callable_process.py")
SEED = 20
FULL = os.environ.get("CACHEGRAPH_STRESS") == "full"

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def chosen() -> list[Piece]:
    return pieces(SEED, 12 if FULL else 4)


def _helpers(source: str = HELPERS) -> types.ModuleType:
    module = types.ModuleType("generated_helpers")
    exec(_compiled(source), vars(module))
    return module


def _compiled(source: str) -> types.CodeType:
    return compile(source, "generated", "exec", dont_inherit=True)


def _prelude(helpers: types.ModuleType) -> dict[str, Any]:
    space: dict[str, Any] = {"__name__": "generated"}
    sys.modules[helpers.__name__] = helpers
    try:
        exec(_compiled(PRELUDE.format(helpers=helpers.__name__)), space)
    finally:
        del sys.modules[helpers.__name__]
    return space


def _defined(prelude: dict[str, Any], name: str, source: str) -> object:
    space = dict(prelude)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of `1 is 2`, and the like, in mutants
        exec(_compiled(source), space)
    return space[name]


@pytest.fixture(scope="module")
def known(chosen: list[Piece]) -> dict[str, str]:
    """What this process finds."""
    return _all(chosen, HELPERS)


def _all(chosen: list[Piece], helpers: str) -> dict[str, str]:
    space: dict[str, Any] = {"__name__": "generated"}
    module = _helpers(helpers)
    sys.modules[module.__name__] = module
    try:
        exec(_compiled(module_source(chosen)), space)
    finally:
        del sys.modules[module.__name__]
    return {name: fingerprint(value).hex() for name, value in space["ALL"].items()}


def test_no_two_share_a_fingerprint(known: dict[str, str]) -> None:
    assert len(known) >= 200
    assert len(set(known.values())) == len(known)


# The same


@pytest.fixture(scope="module")
def printed(chosen: list[Piece], tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """What processes find: of the module as a script, and of its definitions in another order, file and directory."""
    one, other = tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("other")
    (one / "generated_helpers.py").write_text(HELPERS)
    (one / "script.py").write_text(module_source(chosen) + FOOTER)
    (other / "renamed_helpers.py").write_text(f"# moved\n\n\n{HELPERS}")
    source = module_source(chosen, "renamed_helpers", Random(7), decorated=True)
    (other / "renamed.py").write_text(source)
    script = _run("1", one, [str(one / "script.py"), "here,fork,spawn"])
    imported = _run("2", other, [str(PROGRAM), str(other / "renamed.py"), "here"])
    return {**script, "renamed": imported["here"]}


def _run(hash_seed: str, directory: Path, arguments: list[str]) -> dict[str, dict[str, str]]:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", *arguments],
        env=os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)},
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, dict[str, str]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("how", ["here", "fork", "spawn", "renamed"])
def test_another_process_finds_the_same(
    how: str, printed: dict[str, dict[str, str]], known: dict[str, str]
) -> None:
    assert {name for name in known if printed[how][name] != known[name]} == set()


# Another


def _mutated(piece: Piece, random: Random) -> Iterator[tuple[str, str]]:
    found = [(what, source) for what, source in mutants(piece.source)]
    yield from found if FULL else random.sample(found, min(len(found), 5))


@pytest.mark.slow
def test_every_mutant_has_a_fingerprint_of_its_own(chosen: list[Piece]) -> None:
    prelude, random = _prelude(_helpers()), Random(SEED)
    count, same = 0, []
    for piece in chosen:
        seen = {_fingerprint_of_mutant(prelude, piece.name, piece.source): "the original"}
        for what, source in _mutated(piece, random):
            found = _fingerprint_of_mutant(prelude, piece.name, source)
            count += found is not None
            if found in seen:
                same.append((piece.name, what, seen[found], source))
            elif found is not None:
                seen[found] = what
    assert same == []
    assert count > 3 * len(chosen)


def _fingerprint_of_mutant(prelude: dict[str, Any], name: str, source: str) -> str | None:
    """None of a mutant that Python refuses to define, or that has no fingerprint."""
    try:
        value = _defined(prelude, name, source)
    except Exception:
        return None
    return fingerprint(value).hex()


HELPER_CHANGES = {
    "a constant": ("_OFFSET = 3", "_OFFSET = 4", "of_other_module imported"),
    "a body": ("x * SCALE", "x / SCALE", "of_other_module imported"),
    "what a helper calls": ("math.sqrt(2.0)", "math.cbrt(2.0)", "of_other_module imported"),
    "a default": ("by=STARRED", "by=2 * STARRED", "imported partial_of_partial"),
    "a class": ("second(x) % self.size", "second(x) // self.size", "of_other_module"),
    "an attribute of a class": ("size = 4", "size = 5", "of_other_module"),
}


@pytest.mark.parametrize("change", HELPER_CHANGES)
def test_what_another_module_has_is_identity_where_it_is_used(change: str, chosen: list[Piece]) -> None:
    old, new, kinds = HELPER_CHANGES[change]
    chosen = [piece for piece in chosen if piece.name.endswith("_0")]
    known = _all(chosen, HELPERS)
    assert HELPERS.count(old) == 1
    found = _all(chosen, HELPERS.replace(old, new))
    changed = {name for name in known if found[name] != known[name]}
    assert changed >= {name for name in known if name.rpartition("_")[0] in kinds.split()}
    assert len(changed) < len(known) / 2
