"""Processes that pickle native functions, load them, and fingerprint them; each prints JSON, by the
name of the case.

python tests/extensions/process.py pickle DIRECTORY MODULE...       (path of import, pickle in
hexadecimal) python tests/extensions/process.py load DIRECTORY FILE              what `pickle`
printed; whether each is as it should be python tests/extensions/process.py fingerprint DIRECTORY
MODULE...  fingerprint in hexadecimal

DIRECTORY may be several, as on a path.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from cachegraph import pickling
from cachegraph.fingerprint import fingerprint
from tests.extensions.cases import CASES, EXPRESSIONS, Case


def pickled(*modules: str) -> dict[str, Any]:
    found = {}
    for case in _cases(modules):
        function = case.function()
        (path,) = pickling.import_paths(function)
        found[str(case)] = (path, pickling.dumps({"f": [function]}).hex())
    return found


def loaded(file: str) -> dict[str, Any]:
    rows = json.loads(Path(file).read_text())
    assert not {*EXPRESSIONS, "_with_swig"} & sys.modules.keys()
    functions = {}
    for name, (path, content) in rows.items():
        functions[name] = pickling.loads(bytes.fromhex(content), (), declared=[tuple(path)])["f"][0]
    return {str(case): _judged(case, functions[str(case)]) for case in CASES if str(case) in functions}


def _judged(case: Case, function: Any) -> dict[str, Any]:
    """Whether `function` is the one that importing gives, and what it computes."""
    return {"identical": _is_same(function, case.function()), "result": case.call(function, 1.5)}


def _is_same(function: Any, due: Any) -> bool:
    """Whether both are one object; or one method, which Python makes anew each time, bound to one object."""
    if function is due or not _is_bound(due):
        return function is due
    same = getattr(function, "__func__", function) == getattr(due, "__func__", due)
    return function.__self__ is due.__self__ and same


def _is_bound(due: Any) -> bool:
    return getattr(due, "__name__", "") == "apply" and type(due.__self__).__name__ == "Scale"


def fingerprinted(*modules: str) -> dict[str, str]:
    return {str(case): fingerprint(case.function()).hex() for case in _cases(modules)}


def _cases(modules: tuple[str, ...]) -> list[Case]:
    return [case for case in CASES if case.module in modules]


if __name__ == "__main__":
    what, directory, *arguments = sys.argv[1:]
    sys.path[:0] = directory.split(os.pathsep)
    print(json.dumps({"pickle": pickled, "load": loaded, "fingerprint": fingerprinted}[what](*arguments)))
