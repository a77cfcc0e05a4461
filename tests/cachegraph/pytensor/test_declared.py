"""All flags, tags, tables and attributes of the installed PyTensor and PyMC are declared, in the key or
not."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pytensor.configdefaults import config
from pytensor.graph.op import Op

from cachegraph.pytensor.describe import flags, registries, tags
from cachegraph.pytensor.describe.attributes import NOT_IDENTITY

OTHER_BACKENDS = (
    "/jax/",
    "/pytorch/",
    "/mlx/",
    "/d3viz/",
    "/bin/",
    "ipython.py",
    "/misc/check_duplicate_key.py",
)
LATER_FLAGS = {"generated_src_dir"}
"""Flags that only some releases of PyTensor 3.3 have."""
LATER_MODULES = {"pytensor.conditional"}
"""Modules that only some releases of PyTensor 3.3 have."""
OF_NO_TAG = {"removed_by", "name", "position_cutoff", "append", "clear", "__dict__"}


def sources() -> Iterator[tuple[str, str]]:
    """Return (module, text) of all installed modules of PyTensor and PyMC but those for other backends."""
    for package in ("pytensor", "pymc"):
        spec = importlib.util.find_spec(package)
        if spec is None or spec.origin is None:
            continue
        root = Path(spec.origin).parent
        for path in sorted(root.rglob("*.py")):
            if not any(part in path.as_posix() for part in OTHER_BACKENDS):
                relative = path.relative_to(root.parent).with_suffix("")
                yield ".".join(relative.parts).removesuffix(".__init__"), path.read_text()


SOURCES = dict(sources())


def test_every_flag_is_in_the_key_or_not() -> None:
    declared = {**flags.IN_KEY, **flags.NOT_IN_KEY}
    known = set(config._config_var_dict)
    assert known - declared.keys() == set(), "flags of this release that are not declared"
    assert declared.keys() - known <= LATER_FLAGS, "flags that this release has not"
    assert not flags.IN_KEY.keys() & flags.NOT_IN_KEY.keys()


def tags_read(text: str) -> set[str]:
    return set(re.findall(r"\.tag\.(\w+)", text)) | set(
        re.findall(r"(?:getattr|hasattr|setattr)\(\s*[\w.\[\]]+\.tag,\s*\"(\w+)\"", text)
    )


def test_every_tag_is_identity_or_not() -> None:
    declared = {*tags.OF_VARIABLES, *tags.OF_NODES, *tags.NOT_IDENTITY, *OF_NO_TAG}
    undeclared = {
        (module, tag) for module, text in SOURCES.items() for tag in tags_read(text) if tag not in declared
    }
    assert undeclared == set()


def test_the_search_for_tags_finds_each_way_to_read_one() -> None:
    text = 'a.tag.one; getattr(l.tag, "two", False); hasattr(node.tag, "three"); setattr(\n  x[0].tag, "four", 1)'
    assert tags_read(text) == {"one", "two", "three", "four"}


def test_every_table_that_others_can_register_in_is_read_or_not() -> None:
    read = {f"{module}.{name}" for module, names in registries.DISPATCHERS.items() for name in names}
    found = {
        f"{module}.{name}"
        for module, text in SOURCES.items()
        if module.startswith("pytensor.")
        for name in re.findall(r"^@(?:functools\.)?singledispatch\ndef (\w+)", text, re.MULTILINE)
    }
    assert found - read - registries.NOT_READ.keys() == set()


def test_tables_are_where_they_are_said_to_be() -> None:

    for module, names in registries.DISPATCHERS.items():
        for name in names:
            assert getattr(importlib.import_module(module), name).registry, f"{module}.{name}"


def ops() -> set[type]:
    """Return every class of Ops in the modules of PyTensor and PyMC that can be imported here."""
    for module, text in SOURCES.items():
        if re.search(r"^class \w+\(\w*(Op|RV|RandomVariable|Variable)\w*[,)]", text, re.MULTILINE):
            try:
                importlib.import_module(module)
            except (ImportError, NameError):
                continue
    pending, found = [Op], set[type]()
    while pending:
        cls = pending.pop()
        found.add(cls)
        pending.extend(sub for sub in cls.__subclasses__() if sub not in found)
    return {cls for cls in found if cls.__module__.partition(".")[0] in ("pytensor", "pymc")}


def set_later(cls: type) -> Iterator[str]:
    """Return the attributes that methods of `cls` set on self after its construction."""
    for method in methods(cls.__module__).get(cls.__name__, ()):
        if method.name not in ("__init__", "__setstate__"):
            yield from assigned(method)


@cache
def methods(module: str) -> dict[str, list[ast.FunctionDef]]:
    """Yield the methods of each class that `module` defines."""
    found = [node for node in ast.walk(ast.parse(SOURCES.get(module, ""))) if isinstance(node, ast.ClassDef)]
    return {cls.name: [item for item in cls.body if isinstance(item, ast.FunctionDef)] for cls in found}


def assigned(method: ast.FunctionDef) -> Iterator[str]:
    if any("cached_property" in ast.dump(decorator) for decorator in method.decorator_list):
        yield method.name
    for node in ast.walk(method):
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AugAssign | ast.AnnAssign):
            targets = [node.target]
        for target in targets:
            for item in target.elts if isinstance(target, ast.Tuple) else [target]:
                if (
                    isinstance(item, ast.Attribute)
                    and isinstance(item.value, ast.Name)
                    and item.value.id == "self"
                ):
                    yield item.attr


@pytest.mark.slow
def test_every_attribute_that_an_op_sets_when_it_is_used_is_no_identity() -> None:
    found = set()
    for cls in ops():
        declared = {
            name
            for base in cls.__mro__
            for name in NOT_IDENTITY.get(f"{base.__module__}.{base.__qualname__}", ())
        }
        found |= {(cls.__module__, cls.__name__, name) for name in set_later(cls) if name not in declared}
    assert found == set()


def test_what_is_no_identity_is_of_classes_that_there_are() -> None:
    for name in NOT_IDENTITY:
        module, _, qualname = name.rpartition(".")
        if module in LATER_MODULES - SOURCES.keys():
            continue
        assert hasattr(importlib.import_module(module), qualname), name


LATER = """
import sys
import pytensor, pytensor.tensor
from pytensor.compile.mode import optdb
from pytensor.tensor.basic import infer_shape_db
from cachegraph.pytensor.describe import rewrites

def entries():
    reached = rewrites._reached((optdb, infer_shape_db)).values()
    return {(id(base), name): members[name][0] for base, members in reached for name in base._names}

first = entries()
import pytensor.link.numba.dispatch
late = {name: item for name, item in entries().items() if name not in first}
unused = tuple(package for package in rewrites.LATE if package in sys.modules)
assert unused
print(len(late), [name for name, item in late.items() if rewrites._rewrites_beyond(item, unused)])
"""


def test_what_numbas_dispatch_has_registered_counts_only_where_its_ops_are(repository: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LATER], cwd=repository, capture_output=True, text=True, check=True
    )
    count, _, counted = done.stdout.strip().partition(" ")
    assert int(count) > 10
    assert counted == "[]"


@pytest.fixture
def repository() -> Any:
    return Path(__file__).parents[3]
