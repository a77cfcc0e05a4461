"""Another process finds the compiled code of a PyTensor function: linked, not compiled, and right."""

from __future__ import annotations

import ast
import gc
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cachegraph.pytensor.code_process import ROOT, basis_of_nothing, finish, in_fresh_process, start

NAMES = ("doubled", "solved", "drawn", "asserted", "listed")


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store that has the code of `doubled`."""
    directory = tmp_path_factory.mktemp("filled") / "cachegraph"
    [row, _] = in_fresh_process("doubled", CACHEGRAPH_DIR=str(directory))
    assert row["compiled"] > 0
    return directory


@pytest.fixture
def store(filled: Path, cache_directory: Path) -> Path:
    """Return a copy of it for one test."""
    subprocess.run(["cp", "-r", str(filled), str(cache_directory)], check=True)
    return cache_directory


def changed(directory: Path, change: Callable[[bytes], bytes]) -> int:
    """Change the indexed compiled code; return how many entries there were."""
    with closing(sqlite3.connect(directory / "v1" / "index.sqlite")) as database, database:
        rows = database.execute(
            "SELECT record.rowid, content FROM record JOIN entry ON entry.id = entry_id WHERE level = 'numba'"
        ).fetchall()
        for row, content in rows:
            database.execute("UPDATE record SET content = ? WHERE rowid = ?", (change(content), row))
    return len(rows)


def flipped(content: bytes) -> bytes:
    damaged = bytearray(content)
    damaged[len(damaged) // 2] ^= 4
    return bytes(damaged)


def function_of(name: str) -> Any:
    from tests.cachegraph.pytensor import code_process

    return code_process.function_of(name)


@pytest.mark.slow
def test_a_second_process_links_and_gives_the_same_bits_and_errors() -> None:
    *first, _ = in_fresh_process(*NAMES)
    *second, warm = in_fresh_process(*NAMES[1:])
    assert [row["results"] for row in first[1:]] == [row["results"] for row in second]
    assert "must be positive" in json.dumps(first[3]["results"])
    assert [row["compiled"] for row in second] == [0] * 4
    assert {kind for row in second for kind in row["held"]} == {"LinkedOverload"}
    assert warm["code"]["misses"] == 0
    assert warm["imported"] == []


@pytest.mark.slow
def test_a_model_gives_the_same_bits_where_it_was_compiled_and_where_it_was_found() -> None:
    """numba's own linking does not: under fastmath, code compiled earlier changes what a function calls."""
    script = ROOT / "tests/cachegraph/pytensor/regression.py"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    first, second = (
        json.loads(
            subprocess.run(
                [sys.executable, str(script)], env=environment, capture_output=True, check=True
            ).stdout
        )
        for _ in range(2)
    )
    assert (first["outcome"], second["outcome"]) == ("miss", "hit")
    assert first["results"] == second["results"]


@pytest.mark.slow
def test_numba_inlines_what_was_found(store: Path) -> None:
    [row, counted] = in_fresh_process("doubled")
    assert (row["inlined"], row["compiled"], counted["misses"]) == (9.0, 0, {})
    assert "CompileResult" in row["held"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "change", [flipped, lambda content: content[: len(content) // 2], lambda content: b""]
)
def test_damaged_code_is_a_miss(store: Path, change: Callable[[bytes], bytes]) -> None:
    assert changed(store, change) > 2
    [row, counted] = in_fresh_process("doubled")
    assert row["results"] == in_fresh_process("doubled")[0]["results"]
    assert row["compiled"] > 0
    assert counted["misses"].keys() <= {"damaged", "unreadable"}


@pytest.mark.slow
def test_code_for_another_processor_is_a_miss(store: Path) -> None:
    [row, counted] = in_fresh_process("doubled", NUMBA_CPU_NAME="x86-64", NUMBA_CPU_FEATURES="")
    assert row["compiled"] > 0
    assert any("target" in reason for reason in counted["misses"])


@pytest.mark.slow
def test_what_runs_in_python_is_not_stored_and_is_linked_at_once() -> None:
    for _ in range(2):
        [row, counted] = in_fresh_process("performed")
        assert row["results"] == [[np.array([4.0, 2.0, 0.0]).tobytes().hex()]]
    assert counted["bypasses"] == {"without a key": 1}


def test_where_numba_compiles_nothing_the_python_function_is_called_and_nothing_stored() -> None:
    """People replace `numba.njit` by a function that does nothing, to look into an implementation."""
    from cachegraph.cache import default_cache
    from cachegraph.pytensor.code.stored_function import stored_function

    f = stored_function(b"of no graph", lambda: lambda x: (x + 1.0,), basis_of_nothing())
    for _ in range(2):
        (found,) = f(np.arange(3.0))
        assert found.tolist() == [1.0, 2.0, 3.0]
    assert default_cache()._store.scan() == []  # type: ignore[union-attr]


@pytest.mark.slow
def test_numbers_that_are_multiplied_by_share_the_code_of_the_product(adapter: Any) -> None:
    import pytensor
    import pytensor.tensor as pt

    from cachegraph.cache import default_cache

    x = pt.vector("x")
    f = pytensor.function([x], pt.exp(x * 2.0) * 3.0 + pt.sin(x * 5.0), mode="NUMBA")
    assert f(np.zeros(2)).tolist() == [3.0, 3.0]
    kept = [entry.summary for entry in default_cache()._store.scan()]  # type: ignore[union-attr]
    assert len([summary for summary in kept if summary.startswith("mul(")]) == 1, kept


def test_pytensors_own_functions_for_numba_read_no_constant_of_a_graph() -> None:
    """Only the linking of a whole graph does; it puts each constant into a key."""
    import pytensor.link.numba.dispatch as dispatch

    directory = Path(dispatch.__file__).parent
    readers = {
        (str(path.relative_to(directory)), found)
        for path in directory.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        for found in names_of_constants(node)
    }
    assert readers == {("basic.py", "Constant")}


def names_of_constants(node: ast.AST) -> list[str]:
    """Return the names that a statement imports for constants, and the data of a node's input."""
    if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pytensor"):
        return [name.name for name in node.names if "constant" in name.name.lower()]
    if isinstance(node, ast.Attribute) and node.attr == "data" and "inputs[" in ast.unparse(node.value):
        return [ast.unparse(node)]
    return []


def test_only_pytensors_own_functions_are_known_to_read_no_constants() -> None:
    from pytensor.link.numba.dispatch import basic
    from pytensor.scalar.basic import Mul, mul

    from cachegraph.pytensor.code.op_code import _is_compiled_by_types

    assert _is_compiled_by_types(mul)
    table = basic.numba_funcify_default_op_cache_key
    own = table.dispatch(Mul)
    table.register(Mul)(lambda op, node, **kwargs: own(op, node=node, **kwargs))
    try:
        assert not _is_compiled_by_types(mul)
    finally:
        table.register(Mul)(own)
    assert _is_compiled_by_types(mul)


@pytest.mark.slow
def test_processes_that_start_together_compile_once() -> None:
    started = [start("asserted") for _ in range(3)]
    rows = [finish(process)[0] for process in started]
    assert sum(row["compiled"] > 0 for row in rows) == 1
    assert all(row["results"] == rows[0]["results"] for row in rows)


@pytest.mark.slow
def test_a_killed_compiler_is_replaced() -> None:
    leader = start("asserted")
    time.sleep(4)
    follower = start("asserted")
    os.kill(leader.pid, signal.SIGKILL)
    leader.communicate()
    [row, _] = finish(follower)
    assert row["results"][1] == ["AssertionError", "must be positive"]


@pytest.mark.slow
def test_an_op_of_another_definition_does_not_get_the_code_of_the_first(tmp_path: Path) -> None:
    """PyTensor's key of an Op is its class name: the second process would get the code of the first."""
    source = (ROOT / "tests/cachegraph/pytensor/redefined_op.py").read_text()
    results = []
    for factor in (2, 3, 2):
        script = tmp_path / "redefined_op.py"
        script.write_text(source.replace("FACTOR = 2", f"FACTOR = {factor}"))
        done = subprocess.run(
            [sys.executable, str(script)],
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        results.append(float(done.stdout))
    assert results == [2.0, 3.0, 2.0]


@pytest.mark.slow
def test_calls_keep_nothing(store: Path) -> None:
    function, [arguments, _] = function_of("doubled")
    for _ in range(1000):
        function(*arguments)
    gc.collect()
    held = sys.getrefcount(np.dtype("float64")), _resident()
    for _ in range(100_000):
        function(*arguments)
    gc.collect()
    assert abs(sys.getrefcount(np.dtype("float64")) - held[0]) < 100
    assert _resident() - held[1] < 2 << 20


def test_what_numba_is_not_to_compile_is_called_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    from pytensor.link.numba.linker import NumbaLinker

    from cachegraph.pytensor.code.numba_linking import StoredLinker, expects_code

    def plain(*args: Any) -> Any:
        return args

    monkeypatch.setattr(NumbaLinker, "jit_compile", lambda self, fn: plain)
    linker = StoredLinker.like(NumbaLinker(), b"plain", basis_of_nothing())
    assert linker.jit_compile((plain, "key")) is plain
    assert not expects_code(b"plain")


def test_pytensor_names_the_addresses_that_it_fills() -> None:
    """PyTensor fills a variable of its code by its name, so the name determines the address."""
    import pytensor.link.numba.dispatch as dispatch

    root = Path(os.path.dirname(dispatch.__file__)) / "linalg"
    checked = 0
    for file, library in (("_BLAS.py", "blas"), ("_LAPACK.py", "lapack")):
        # PyTensor 3.3.0 calls no BLAS itself.
        text = (root / file).read_text() if (root / file).exists() else ""
        for piece in re.split(r"\n    @classmethod\n", text):
            if named := re.search(r'unique_func_name = f"scipy\.(\w+)\.\{kind\}(\w+)"', piece):
                resolved = re.search(r'get_(\w+)_ptr\(\s*dtype, "(\w+)"\s*\)', piece)
                assert resolved is not None
                assert resolved.groups() == named.groups() == (library, named[2])
                checked += 1
    assert checked > 25


def test_an_address_is_that_of_the_function_it_is_named_after() -> None:
    from numba.core.extending import get_cython_function_address

    from cachegraph.object_code.cython_functions import cython_function
    from cachegraph.pytensor.code.stored_function import pytensor_address

    found = pytensor_address("_ptr_cache_scipy.lapack.dpotrf.12.7")
    assert found == ("scipy.linalg.cython_lapack", "dpotrf")
    assert cython_function(*found) == get_cython_function_address(*found)
    assert pytensor_address("_ptr_cache_scipy.special.cython_special.__pyx_fuse_1betainc") == (
        "scipy.special.cython_special",
        "__pyx_fuse_1betainc",
    )
    assert pytensor_address("cached_objmode_dispatcher") is None


def _resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")
