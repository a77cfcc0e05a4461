"""Addresses of SciPy's C functions are those that importing them gives, without importing scipy.linalg."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cachegraph.errors import CythonFunctionError
from cachegraph.object_code.cython_functions import cython_function

ROOT = Path(__file__).resolve().parents[3]


def test_an_address_is_the_same_before_and_after_scipy_is_imported() -> None:
    script = (
        "import sys\n"
        "from cachegraph.object_code.cython_functions import cython_function\n"
        "names = [('scipy.linalg.cython_blas', 'dgemm'), ('scipy.linalg.cython_lapack', 'dpotrf')]\n"
        "before = [cython_function(*name) for name in names]\n"
        "assert 'scipy.linalg' not in sys.modules\n"
        "from numba.core.extending import get_cython_function_address\n"
        "print(before == [get_cython_function_address(*name) for name in names])\n"
        "import scipy.linalg; print(float(scipy.linalg.inv([[2.0]])[0, 0]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["True", "0.5"]


@pytest.mark.parametrize(
    "place", [("scipy.linalg.cython_blas", "nothing"), ("no_such_module", "f"), ("json", "f")]
)
def test_what_is_not_there_is_refused(place: tuple[str, str]) -> None:
    with pytest.raises(CythonFunctionError, match=place[1]):
        cython_function(*place)
