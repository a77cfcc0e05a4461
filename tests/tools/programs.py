"""Programs of tools/ as modules of a test."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

TOOLS = Path(__file__).parents[2] / "tools"


def load_program(path: str) -> ModuleType:
    """Return the program at `path` in tools/ as a module.

    Its folder, and tools/, are on sys.path only while it loads: a folder there can hide the absence of a package. Its
    neighbours leave sys.modules again: other programs have neighbours of the same names.
    """
    file = TOOLS / path
    spec = spec_from_file_location("_".join(Path(path).with_suffix("").parts), file)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    before = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(file.parent), str(TOOLS), *sys.path])
        spec.loader.exec_module(module)
    for name in set(sys.modules) - before:
        if Path(getattr(sys.modules[name], "__file__", None) or "/").is_relative_to(file.parent):
            del sys.modules[name]
    return module
