"""Modules under PyTensor's paths: they import names or look them up, define nothing, and list none that PyTensor
lacks there.
"""

import ast
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("compile", "conditional", "graph/rewriting", "link", "scan", "tensor/random")
FILES = (
    *("ifelse.py", "graph/basic.py", "graph/fg.py", "graph/null_type.py", "graph/type.py"),
    *("tensor/sharedvar.py", "tensor/type_other.py"),
)
PATHS = sorted(
    str(path.relative_to(ROOT))
    for path in [
        *(file for folder in FOLDERS for file in (ROOT / "engine" / folder).rglob("*.py")),
        *(ROOT / "engine" / file for file in FILES),
    ]
)


def module_name(path: str) -> str:
    """Return the dotted name of a module."""
    return ".".join(Path(path).with_suffix("").parts).removesuffix(".__init__")


@pytest.mark.parametrize("path", PATHS)
def test_a_path_gives_names_of_pytensors_module_and_defines_none(path: str):
    theirs = pytest.importorskip("pytensor") and import_module(
        module_name(path).replace("engine", "pytensor", 1)
    )
    ours = import_module(module_name(path))
    listed = getattr(ours, "__all__", ())
    assert [name for name in listed if not hasattr(theirs, name)] == []
    assert all(hasattr(ours, name) for name in listed)
    body = ast.parse((ROOT / path).read_text()).body
    assert [node.name for node in body if isinstance(node, ast.FunctionDef)] in ([], ["__getattr__"])


def test_scan_is_a_function_before_and_after_its_path_is_imported():
    import engine
    import engine.tensor as pt

    before = engine.scan
    scan = import_module("engine.scan")
    total = engine.scan(lambda x: x + 1, sequences=pt.arange(3), return_updates=False)
    assert total.type.ndim == 1
    assert scan.scan is before or before is scan


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("basic", "arange as_tensor_variable constant infer_static_shape join split zeros"),
        ("extra_ops", "cumsum diff repeat searchsorted unique"),
        ("exceptions", "NotScalarConstantError"),
        ("functional", "vectorize"),
    ],
)
def test_names_of_tensors_are_found_under_the_paths_that_people_import(path: str, names: str):
    import engine.tensor as pt

    theirs = pytest.importorskip("pytensor") and import_module(f"pytensor.tensor.{path}")
    ours = import_module(f"engine.tensor.{path}")
    for name in names.split():
        assert hasattr(theirs, name)
        assert getattr(ours, name) is getattr(pt, name, ours.infer_static_shape if path == "basic" else None)
    for name in ("no_such_name", "_private"):
        with pytest.raises(AttributeError):
            getattr(ours, name)
