"""A process that makes functions of PyTensor whose code is kept in the store, and prints what happened as
JSON.

    python tests/cachegraph/pytensor/code_process.py NAME [NAME ...]

NAME is a function below that makes inputs, outputs, updates and arguments. Printed for each: results or
errors, what was compiled, and what the function held; then what the process has imported and counted.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[3]


def doubled() -> Any:
    import pytensor.tensor as pt

    x = pt.vector("x")
    return [x], [x * 2 + 1], {}, [[np.arange(3.0)], [np.arange(6.0)[::2]]]


def solved() -> Any:
    """Call LAPACK, at addresses that PyTensor's code asks Python for."""
    import pytensor.tensor as pt

    a = pt.matrix("a")
    return [a], [pt.linalg.cholesky(a)], {}, [[np.eye(3) + 0.25], [-np.eye(3)]]


def drawn() -> Any:
    import pytensor
    import pytensor.tensor as pt

    rng = pytensor.shared(np.random.default_rng(1))
    following, x = pt.random.normal(0, 1, size=(3,), rng=rng).owner.outputs
    return [], [x], {rng: following}, [[], []]


def asserted() -> Any:
    import pytensor.tensor as pt
    from pytensor.raise_op import Assert

    x, y = pt.vectors("x", "y")
    checked = Assert("must be positive")(x, (x > 0).all())
    one, two = np.ones(3), np.ones(4)
    return [x, y], [checked + y], {}, [[one, one], [-one, one], [one, two]]


def listed() -> Any:
    import pytensor.tensor as pt
    import pytensor.typed_list as typed

    items = typed.TypedListType(pt.dvector)("items")
    return [items], [items[0] + items[1]], {}, [[[np.ones(2), np.arange(2.0)]]]


def performed() -> Any:
    """Run in Python: numba has no code of its own for it, and cannot cache callbacks."""
    import pytensor.tensor as pt
    from pytensor import wrap_py

    @wrap_py(itypes=[pt.dvector], otypes=[pt.dvector])
    def reversed_(x: Any) -> Any:
        return x[::-1].copy()

    x = pt.vector("x")
    return [x], [reversed_(x) * 2], {}, [[np.arange(3.0)]]


def function_of(name: str) -> tuple[Any, list[Any]]:
    import pytensor
    from pytensor.compile.mode import Mode, get_default_mode
    from pytensor.link.numba.linker import NumbaLinker

    from cachegraph.fingerprint import encode
    from cachegraph.pytensor.code.numba_linking import StoredLinker

    inputs, outputs, updates, calls = globals()[name]()
    linker = StoredLinker.like(NumbaLinker(), encode(name), basis_of_nothing())
    mode = Mode(linker, get_default_mode().provided_optimizer)
    return pytensor.function(inputs, outputs, updates=updates, mode=mode), calls


def basis_of_nothing() -> Any:
    from cachegraph.pytensor.describe.basis import Basis
    from cachegraph.pytensor.describe.graphs import encode_frozen
    from cachegraph.pytensor.describe.values import EncodingContext

    return Basis(EncodingContext((), encode_frozen))


def called(function: Any, arguments: list[Any]) -> Any:
    try:
        return [np.asarray(item).tobytes().hex() for item in function(*arguments)]
    except Exception as error:
        return [type(error).__name__, str(error).partition("\n")[0]]


def report(name: str) -> dict[str, Any]:
    from numba.core import event

    function, calls = function_of(name)
    with event.install_recorder("numba:compile") as recorder:
        results = [called(function, arguments) for arguments in calls]
        through_numba = inlined(function.vm.jit_fn) if name == "doubled" else None
    compiled = [happened.data["dispatcher"].py_func.__name__ for _, happened in recorder.buffer]
    code = function.vm.jit_fn
    return {
        "results": results,
        "compiled": compiled.count("numba_funcified_fgraph"),
        "held": [type(item).__name__ for item in code.overloads.values()] if name != "performed" else [],
        "inlined": through_numba,
    }


def inlined(code: Any) -> Any:
    """Return the result of a function that numba compiles and that calls `code`."""
    import numba

    @numba.njit
    def calling(x: Any) -> Any:
        return code(x)[0].sum()

    return float(calling(np.arange(3.0)))


def counted() -> dict[str, Any]:
    import cachegraph

    counters = cachegraph.counters()
    watched = ("pytensor.link.numba.dispatch", "scipy.linalg", "numba.np.linalg")
    return {
        "imported": [name for name in watched if name in sys.modules],
        "misses": dict(counters.misses),
        "bypasses": dict(counters.bypasses),
        "code": dict(counters.levels["numba"]),
    }


def start(*arguments: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, __file__, *arguments],
        env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> list[dict[str, Any]]:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, out + err
    return json.loads(out)


def in_fresh_process(*arguments: str, **environment: str) -> list[dict[str, Any]]:
    return finish(start(*arguments, **environment))


if __name__ == "__main__":
    reports = [report(name) for name in sys.argv[1:]]
    print(json.dumps([*reports, counted()]))
