"""Prints the fingerprints of generated callables, of this process or of its children.

    python MODULE.py HOW                                    a generated module with `FOOTER`, as a script: its own
    python callable_process.py MODULE.py HOW                the module, imported

HOW is a comma-separated list of here, fork and spawn.
"""

from __future__ import annotations

import importlib
import json
import multiprocessing
import os
import sys
from typing import Any

from cachegraph.fingerprint import fingerprint

FOOTER = """
if __name__ == "__main__":
    import sys
    from tests.cachegraph.fingerprint.callable_process import report
    report(__name__, sys.argv[1])
"""


def fingerprints(module: str) -> dict[str, str]:
    """Name -> fingerprint (hex) of each callable that the loaded module lists."""
    listed: dict[str, Any] = sys.modules[module].ALL  # type: ignore[attr-defined]
    return {name: fingerprint(value).hex() for name, value in listed.items()}


def _in_child(module: str, method: str) -> dict[str, str]:
    with multiprocessing.get_context(method).Pool(1) as pool:
        return pool.apply(fingerprints, (module,))


def report(module: str, how: str) -> None:
    """Print what each of `how` finds, as JSON."""
    json.dump(
        {way: fingerprints(module) if way == "here" else _in_child(module, way) for way in how.split(",")},
        sys.stdout,
    )


if __name__ == "__main__":
    directory, file = os.path.split(sys.argv[1])
    sys.path.insert(0, directory)
    name = file.removesuffix(".py")
    importlib.import_module(name)
    report(name, sys.argv[2])
