"""What PyTensor makes easy to get wrong: each trap with a store that another process filled.

Four processes compile the same cases: one without the adapter, a first and a second with it on one store,
and one whose cases look like those that are stored and are others.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pytensor", reason="PyTensor is not installed")

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("pytensor_traps_process.py")
STORED = ("solve:plain", "zeros:plus", "nans:1", "inner", "deep:1", "dispatched", "regression")
OPS_WITHOUT_NAMES = ("local:2", "wrapped:2")
RUN_IN_PYTHON = ("taken_for_equal:3", "density:1")
NOT_FOR_NUMBAS_CACHE = ("fallback:2", "large:1")
MINUS_ZEROS = ("zeros:both", "zeros:turned", "zeros:minus")
COMPILED = (*STORED, *NOT_FOR_NUMBAS_CACHE, *OPS_WITHOUT_NAMES, *RUN_IN_PYTHON, *MINUS_ZEROS)
ALIKE = (
    "solve:psd",
    "nans:2",
    "deep:2",
    "local:3",
    "wrapped:3",
    "taken_for_equal:4",
    "density:2",
    "fallback:4",
    "large:2",
)
Rows = dict[str, dict[str, Any]]

USERS_OP = """
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.link.numba.dispatch.basic import numba_njit, register_funcify_default_op_cache_key

class Scale(Op):
    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0] * FACTOR

@register_funcify_default_op_cache_key(Scale)
def numba_funcify_scale(op, node, **kwargs):
    factor = FACTOR

    @numba_njit
    def scale(x):
        return x * factor

    return scale
"""


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("traps")


def process(directory: Path, name: str, *cases: str, factor: float = 2.0) -> Rows:
    """What a fresh process reports, with a hash seed, a temporary and a compilation directory of its own, and
    the user's Op scaling by `factor`."""
    code, temporary = directory / "code", directory / name / "temporary"
    code.mkdir(exist_ok=True)
    temporary.mkdir(parents=True)
    (code / "scaling.py").write_text(USERS_OP.replace("FACTOR", str(factor)))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(PROGRAM), *cases],
        env=os.environ
        | {
            "PYTHONPATH": str(ROOT),
            "PYTHONHASHSEED": str(len(name)),
            "PYTHONDONTWRITEBYTECODE": "1",
            "CACHEGRAPH_DIR": str(directory / "cache"),
            "PYTENSOR_FLAGS": f"cxx=,base_compiledir={directory / name / 'compiled'}",
            "TMPDIR": str(temporary),
            "USER_CODE": str(code),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows: Rows = json.loads(done.stdout.splitlines()[-1])
    return rows


@pytest.fixture(scope="module")
def plain(directory: Path) -> Rows:
    return process(directory, "plain", "--plain", *COMPILED, *ALIKE)


@pytest.fixture(scope="module")
def first(directory: Path) -> Rows:
    return process(directory, "first", *COMPILED)


@pytest.fixture(scope="module")
def second(directory: Path, first: Rows) -> Rows:
    return process(directory, "second", *COMPILED)


@pytest.fixture(scope="module")
def alike(directory: Path, second: Rows) -> Rows:
    return process(directory, "others", *ALIKE, "dispatched", factor=3.0)


@pytest.mark.parametrize("case", [*STORED, *NOT_FOR_NUMBAS_CACHE, *OPS_WITHOUT_NAMES, *RUN_IN_PYTHON])
def test_a_second_process_hits_and_computes_the_same_bits(first: Rows, second: Rows, case: str) -> None:
    assert (first[case]["outcome"], second[case]["outcome"]) == ("miss", "hit")
    assert second[case]["key"] == first[case]["key"]
    assert second[case]["bits"] == first[case]["bits"]


@pytest.mark.parametrize("case", COMPILED)
def test_what_is_computed_is_what_pytensor_computes_alone(plain: Rows, first: Rows, case: str) -> None:
    for found, due in zip(first[case]["values"], plain[case]["values"], strict=True):
        np.testing.assert_allclose(found, due, rtol=1e-12)


@pytest.mark.parametrize("case", [*ALIKE, "solve:plain"])
def test_what_looks_like_a_stored_function_is_not_taken_for_it(
    plain: Rows, first: Rows, alike: Rows, case: str
) -> None:
    found = (alike | first)[case] if case == "solve:plain" else alike[case]
    assert found["outcome"] != "hit"
    for values, due in zip(found["values"], plain[case]["values"], strict=True):
        np.testing.assert_allclose(values, due, rtol=1e-12)


def test_tags_that_rewrites_read_decide_what_is_computed(plain: Rows, first: Rows, alike: Rows) -> None:
    assert not np.allclose(plain["solve:psd"]["values"], plain["solve:plain"]["values"])
    assert alike["solve:psd"]["key"] != first["solve:plain"]["key"]


@pytest.mark.parametrize("case", MINUS_ZEROS)
def test_minus_zero_is_what_pytensor_makes_of_it_hit_or_miss(
    plain: Rows, first: Rows, second: Rows, case: str
) -> None:
    assert first[case]["bits"] == second[case]["bits"] == plain[case]["bits"]
    assert (first[case]["outcome"], second[case]["outcome"]) == ("miss", "hit")


def test_the_payload_of_a_nan_is_not_lost(first: Rows, second: Rows, alike: Rows) -> None:
    assert first["nans:1"]["bits"] == second["nans:1"]["bits"] == ["010000000000f87f"]
    assert alike["nans:2"]["bits"] == ["020000000000f87f"]


def test_an_edited_implementation_of_a_users_op_is_a_miss(first: Rows, second: Rows, alike: Rows) -> None:
    assert first["dispatched"]["values"] == second["dispatched"]["values"] == [[2.0, 2.0]]
    assert (alike["dispatched"]["outcome"], alike["dispatched"]["values"]) == ("miss", [[3.0, 3.0]])


@pytest.mark.parametrize("case", OPS_WITHOUT_NAMES)
def test_ops_of_no_name_are_told_apart_by_their_code(first: Rows, alike: Rows, case: str) -> None:
    other = case.replace("2", "3")
    assert (first[case]["values"], alike[other]["values"]) == ([[3.0, 3.0]], [[4.0, 4.0]])
    assert alike[other]["key"] != first[case]["key"]


@pytest.mark.parametrize("case", STORED)
def test_a_hit_leaves_no_file_in_the_temporary_directory(plain: Rows, second: Rows, case: str) -> None:
    assert plain[case]["files"] > 0
    assert second[case]["files"] == 0
