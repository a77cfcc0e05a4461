"""A machine with an empty cache and a bundle compiles nothing."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from click.testing import CliRunner

from cachegraph.cli.app import app
from tests.cachegraph.store.signers import signing_key
from tests.flow.model_process import in_fresh_process
from tests.flow.pytensor_process import reports


def exported(directory: Path, *options: str) -> dict[str, str]:
    """Export what `directory` has; return the variables of a machine that has the bundle and nothing else."""
    signing_key()
    bundle = directory.parent / "models.bundle"
    told = CliRunner().invoke(app, ["export", str(bundle), "--dir", str(directory), *options])
    assert told.exit_code == 0, told.output
    return {
        "CACHEGRAPH_DIR": str(directory.parent / "empty"),
        "CACHEGRAPH_REMOTE": f"bundle:{bundle}",
        "CACHEGRAPH_ON_MISS": "error",
    }


def test_a_function_and_its_kernels_come_from_a_bundle_then_from_the_copies(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cold = in_fresh_process("regression", CACHEGRAPH_DIR=str(cache))
    elsewhere = exported(cache, "--key", cold["key"])
    warm = in_fresh_process("regression", **elsewhere)
    assert (warm["outcome"], warm["compilations"], warm["rewrites"]) == ("hit", 0, 0)
    assert warm["results"] == cold["results"]
    assert warm["imported"] == []
    (tmp_path / "models.bundle").unlink()
    assert in_fresh_process("regression", **elsewhere)["outcome"] == "hit"


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("pytensor") is None, reason="PyTensor is not installed (it needs Python 3.12)"
)
@pytest.mark.parametrize("backend", ["numba", "engine"])
def test_functions_of_pytensor_come_from_a_bundle(tmp_path: Path, backend: str) -> None:
    cases = ("elementwise", "layers")
    cache = tmp_path / "cache"
    cold = reports(*cases, CACHEGRAPH_DIR=str(cache), CACHEGRAPH_PYTENSOR=backend)
    warm = reports(*cases, CACHEGRAPH_PYTENSOR=backend, **exported(cache, "--used-by-last-run"))
    assert warm["misses"] == {}
    for case in cases:
        assert (warm[case]["info"]["outcome"], warm[case]["rewrites"]) == ("hit", 0)
        assert warm[case]["results"] == cold[case]["results"]
